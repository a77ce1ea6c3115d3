// Copies and fills by kernels: every small size at every alignment, any grid, and no byte outside
// the ranges.
#include <uptempo/kernels/transfer.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/support/own_process.hpp"

using namespace uptempo;

namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint8_t kUntouched = 0xee;

struct TransferDevice : test::OnDevice {
  Program program{gpu, builtin_kernels::transfer()};
  Kernel<uint8_t*, const uint8_t*, uint64_t> copy_bytes =
      program.kernel<uint8_t*, const uint8_t*, uint64_t>("copy_bytes");
  Kernel<uint8_t*, const uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t> copy_rows =
      program.kernel<uint8_t*, const uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t>("copy_rows");
  Kernel<uint8_t*, uint64_t, uint64_t, uint64_t> fill_bytes =
      program.kernel<uint8_t*, uint64_t, uint64_t, uint64_t>("fill_bytes");
  Kernel<uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t> fill_rows =
      program.kernel<uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t>("fill_rows");
  Kernel<uint8_t*, const uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
         uint64_t>
      copy_slices = program.kernel<uint8_t*, const uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t,
                                   uint64_t, uint64_t, uint64_t>("copy_slices");
  Queue queue{gpu};
  Copier copier{gpu};
  BatchSubmitter batch{queue};

  DeviceBuffer<uint8_t> upload(const Bytes& host) {
    DeviceBuffer<uint8_t> buffer{gpu, host.size()};
    copier.copy(buffer, host);
    return buffer;
  }
  Bytes download(const DeviceBuffer<uint8_t>& buffer) {
    Bytes host(buffer.size());
    copier.copy(host, buffer);
    return host;
  }
  void run() { batch.submit().wait(); }
};

Bytes random_bytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

// Index of the first difference between an image and the expected one; its size if there is none.
size_t first_difference(const Bytes& is, const Bytes& expected) {
  return static_cast<size_t>(
      std::mismatch(is.begin(), is.end(), expected.begin(), expected.end()).first - is.begin());
}

// A pattern of `size` bytes in the form that the kernels take.
struct Pattern {
  Pattern(size_t size, uint32_t seed) : bytes(random_bytes(size, seed)) {
    std::array<uint8_t, 16> repeated{};
    for (size_t i = 0; i < 16; ++i) repeated[i] = bytes[i % size];
    std::memcpy(&low, repeated.data(), 8);
    std::memcpy(&high, repeated.data() + 8, 8);
  }
  void put(std::span<uint8_t> host) const {
    for (size_t i = 0; i < host.size(); ++i) host[i] = bytes[i % bytes.size()];
  }
  Bytes bytes;
  uint64_t low = 0, high = 0;
};

constexpr std::array<size_t, 5> kPatternSizes{1, 2, 4, 8, 16};

// All sizes up to three units plus an edge at each end. Longer ranges only have more units.
std::vector<size_t> edge_sizes() {
  std::vector<size_t> sizes;
  for (size_t size = 0; size <= 50; ++size) sizes.push_back(size);
  for (const size_t size : {63, 64, 65, 79, 80, 81}) sizes.push_back(size);
  return sizes;
}

// Each case has 128 bytes of the destination, so that a write outside its range is detected.
constexpr size_t kRoom = 128;

// A 2-D range: row width, number of rows, offsets and pitches.
struct Shape {
  size_t width, height, to_offset, to_pitch, from_offset, from_pitch;
};
const Shape kShapes[] = {
    {1, 1, 0, 1, 0, 1},           {16, 7, 0, 16, 0, 16},       {16, 7, 0, 32, 16, 48},
    {33, 5, 3, 41, 9, 37},        {100, 30, 1, 111, 0, 100},   {3, 200, 5, 7, 2, 3},
    {1000, 3, 15, 1001, 1, 1003}, {64, 9, 0, 64, 7, 0},        {0, 9, 0, 16, 0, 16},
    {16, 0, 0, 16, 0, 16},        {4096, 2, 0, 5000, 0, 4096},
};
const Grid kRowGrids[] = {Grid{1, 1}, Grid{64, 1}.by(64, 1), Grid{8, 8}.by(8, 8),
                          Grid{20, 6}.by(8, 4), Grid{256, 16}.by(64, 4)};

}  // namespace

TEST_CASE("copy_bytes copies every size from every alignment to every alignment, and nothing else",
          "[kernels]") {
  TransferDevice device;
  const std::vector<size_t> sizes = edge_sizes();
  const Bytes source = random_bytes(kRoom, 1);
  const auto from = device.upload(source);
  for (size_t from_offset = 0; from_offset < 16; ++from_offset) {
    Bytes expected(sizes.size() * 16 * kRoom, kUntouched);
    const auto to = device.upload(expected);
    size_t at = 0;
    for (const size_t size : sizes) {
      for (size_t offset = 0; offset < 16; ++offset, at += kRoom) {
        device.batch.dispatch(device.copy_bytes, Grid{64}, to.data() + at + 16 + offset,
                              from.data() + from_offset, size);
        std::copy_n(source.begin() + static_cast<ptrdiff_t>(from_offset), size,
                    expected.begin() + static_cast<ptrdiff_t>(at + 16 + offset));
      }
    }
    device.run();
    const size_t wrong = first_difference(device.download(to), expected);
    INFO("case " << wrong / kRoom << ", byte " << wrong % kRoom << " of its room, from offset "
                 << from_offset);
    CHECK(wrong == expected.size());
  }
}

TEST_CASE("copy_bytes copies any size with any grid", "[kernels]") {
  TransferDevice device;
  const Bytes source = random_bytes(200'000, 2);
  const auto from = device.upload(source);
  const Bytes clean(source.size(), kUntouched);
  for (const Grid& grid :
       {Grid{1}, Grid{7}.by(7), Grid{64}, Grid{100}.by(64), Grid{1024}.by(256)}) {
    for (const size_t size : {size_t{1000}, size_t{4097}, size_t{65'536}, size_t{199'950}}) {
      if (size > 5000 && grid.items.x < 64) continue;
      for (const auto& [to_offset, from_offset] : {std::pair{0, 0}, {5, 5}, {4, 8}, {1, 14}}) {
        const auto to = device.upload(clean);
        device.batch.dispatch(device.copy_bytes, grid, to.data() + to_offset,
                              from.data() + from_offset, size);
        device.run();
        Bytes expected = clean;
        std::copy_n(source.begin() + from_offset, size, expected.begin() + to_offset);
        CAPTURE(grid.items.x, size, to_offset, from_offset);
        CHECK(first_difference(device.download(to), expected) == expected.size());
      }
    }
  }
}

TEST_CASE("copy_rows copies rows of any width and pitch, and leaves the bytes between them",
          "[kernels]") {
  TransferDevice device;
  const Bytes source = random_bytes(16'384, 3);
  const auto from = device.upload(source);
  const Bytes clean(16'384, kUntouched);
  for (const Shape& s : kShapes) {
    for (const Grid& grid : kRowGrids) {
      const auto to = device.upload(clean);
      device.batch.dispatch(device.copy_rows, grid, to.data() + s.to_offset,
                            from.data() + s.from_offset, s.width, s.height, s.to_pitch,
                            s.from_pitch);
      device.run();
      Bytes expected = clean;
      for (size_t row = 0; row < s.height; ++row)
        std::memcpy(expected.data() + s.to_offset + row * s.to_pitch,
                    source.data() + s.from_offset + row * s.from_pitch, s.width);
      CAPTURE(s.width, s.height, s.to_pitch, s.from_pitch, grid.items.x, grid.items.y);
      CHECK(first_difference(device.download(to), expected) == expected.size());
    }
  }
}

TEST_CASE("copy_slices copies slices of any pitch, and leaves the bytes between them",
          "[kernels]") {
  TransferDevice device;
  const Bytes source = random_bytes(16'384, 8);
  const auto from = device.upload(source);
  const Bytes clean(16'384, kUntouched);
  for (const Shape& s : kShapes) {
    if (s.height > 10) continue;
    const size_t to_slice = s.height * s.to_pitch + 5, from_slice = s.height * s.from_pitch + 3;
    for (const size_t depth : {size_t{0}, size_t{1}, size_t{2}, size_t{4}}) {
      if (depth * std::max(to_slice, from_slice) > 16'000) continue;
      for (const Grid& grid : kRowGrids) {
        const auto to = device.upload(clean);
        device.batch.dispatch(device.copy_slices, grid, to.data() + s.to_offset,
                              from.data() + s.from_offset, s.width, s.height, depth, s.to_pitch,
                              s.from_pitch, to_slice, from_slice);
        device.run();
        Bytes expected = clean;
        for (size_t slice = 0; slice < depth; ++slice)
          for (size_t row = 0; row < s.height; ++row)
            std::memcpy(expected.data() + s.to_offset + slice * to_slice + row * s.to_pitch,
                        source.data() + s.from_offset + slice * from_slice + row * s.from_pitch,
                        s.width);
        CAPTURE(s.width, s.height, depth, s.to_pitch, s.from_pitch, grid.items.x, grid.items.y);
        CHECK(first_difference(device.download(to), expected) == expected.size());
      }
    }
  }
}

TEST_CASE("fill_bytes repeats patterns of every size from every alignment, and writes nothing else",
          "[kernels]") {
  TransferDevice device;
  const std::vector<size_t> sizes = edge_sizes();
  for (const size_t pattern_size : kPatternSizes) {
    const Pattern pattern(pattern_size, 4);
    Bytes expected(sizes.size() * 16 * kRoom, kUntouched);
    const auto to = device.upload(expected);
    size_t at = 0;
    for (const size_t size : sizes) {
      for (size_t offset = 0; offset < 16; ++offset, at += kRoom) {
        device.batch.dispatch(device.fill_bytes, Grid{64}, to.data() + at + 16 + offset, size,
                              pattern.low, pattern.high);
        pattern.put(std::span(expected).subspan(at + 16 + offset, size));
      }
    }
    device.run();
    const size_t wrong = first_difference(device.download(to), expected);
    INFO("case " << wrong / kRoom << ", byte " << wrong % kRoom << " of its room, pattern of "
                 << pattern_size);
    CHECK(wrong == expected.size());
  }
}

TEST_CASE("fill_bytes fills any size with any grid", "[kernels]") {
  TransferDevice device;
  const Pattern pattern(16, 5);
  const Bytes clean(100'000, kUntouched);
  for (const Grid& grid : {Grid{1}, Grid{7}.by(7), Grid{100}.by(64), Grid{1024}.by(256)}) {
    for (const size_t size : {size_t{1000}, size_t{4097}, size_t{99'950}}) {
      if (size > 5000 && grid.items.x < 64) continue;
      const auto to = device.upload(clean);
      device.batch.dispatch(device.fill_bytes, grid, to.data() + 11, size, pattern.low,
                            pattern.high);
      device.run();
      Bytes expected = clean;
      pattern.put(std::span(expected).subspan(11, size));
      CAPTURE(grid.items.x, size);
      CHECK(first_difference(device.download(to), expected) == expected.size());
    }
  }
}

TEST_CASE("fill_rows restarts the pattern in every row", "[kernels]") {
  TransferDevice device;
  const Bytes clean(16'384, kUntouched);
  for (const size_t pattern_size : kPatternSizes) {
    const Pattern pattern(pattern_size, 6);
    for (const Shape& s : kShapes) {
      const Grid& grid = kRowGrids[(s.width + pattern_size) % std::size(kRowGrids)];
      const auto to = device.upload(clean);
      device.batch.dispatch(device.fill_rows, grid, to.data() + s.to_offset, s.width, s.height,
                            s.to_pitch, pattern.low, pattern.high);
      device.run();
      Bytes expected = clean;
      for (size_t row = 0; row < s.height; ++row)
        pattern.put(std::span(expected).subspan(s.to_offset + row * s.to_pitch, s.width));
      CAPTURE(s.width, s.height, s.to_pitch, pattern_size, grid.items.x, grid.items.y);
      CHECK(first_difference(device.download(to), expected) == expected.size());
    }
  }
}

TEST_CASE("rows may be further apart than 32 bits can express", "[kernels]") {
  TransferDevice device;
  const uint64_t pitch = (uint64_t{1} << 32) + 48;
  const DeviceBuffer<uint8_t> filled{device.gpu, 2 * pitch}, copied{device.gpu, 2 * pitch};
  const auto rows = device.upload(Bytes(64, kUntouched));
  const Pattern pattern(16, 7);
  device.batch.dispatch(device.fill_rows, Grid{1, 2}, filled.data(), 20u, 2u, pitch, pattern.low,
                        pattern.high);
  device.batch.dispatch(device.copy_rows, Grid{1, 1}, copied.data(), filled.data(), 20u, 2u, pitch,
                        pitch);
  // copy_bytes, which has no pitch, must find the rows at their addresses.
  for (const uint64_t row : {0u, 1u})
    device.batch.dispatch(device.copy_bytes, Grid{64}, rows.data() + row * 32,
                          copied.data() + row * pitch, 20u);
  device.run();
  Bytes expected(64, kUntouched);
  pattern.put(std::span(expected).subspan(0, 20));
  pattern.put(std::span(expected).subspan(32, 20));
  CHECK(device.download(rows) == expected);
}

// ROCT leaves the page after every allocation unmapped (fmm.c, "Leave at least one guard page after
// every object"). ROCr cuts device memory of less than 2 MiB out of larger pieces. From 2 MiB on,
// an access past the end is a memory fault.
namespace {

constexpr size_t kPage = 4096, kOwnPages = 2 << 20;
constexpr MemoryKind kKinds[] = {MemoryKind::device, MemoryKind::pinned, MemoryKind::pinned_coarse,
                                 MemoryKind::kernarg};

uint8_t* bytes_of(const Allocation& memory) { return static_cast<uint8_t*>(memory.data()); }

}  // namespace

TEST_CASE(
    "copies and fills reach the first and the last byte of mapped memory of any kind, and no "
    "further",
    "[kernels]") {
  TransferDevice device;
  for (const MemoryKind kind : kKinds) {
    const Allocation memory{device.gpu, kind, kOwnPages};
    uint8_t* const begin = bytes_of(memory);
    uint8_t* const end = begin + kOwnPages;
    const Bytes source = random_bytes(kPage, 8);
    const auto elsewhere = device.upload(source);
    const auto back = device.upload(Bytes(kPage, kUntouched));
    const Pattern pattern(16, 9);
    for (const size_t size : edge_sizes()) {
      CAPTURE(name_of(kind), size);
      // Writes both ends by copies from another alignment, reads them back, and fills them.
      device.batch.dispatch(device.copy_bytes, Grid{64}, begin, elsewhere.data() + 3, size);
      device.batch.dispatch(device.copy_bytes, Grid{64}, end - size, elsewhere.data() + 128, size);
      device.batch.dispatch(device.copy_rows, Grid{16, 2}.by(16, 2), back.data(), begin, size, 1u,
                            size, size);
      device.batch.dispatch(device.copy_bytes, Grid{64}, back.data() + 129, end - size, size);
      device.batch.dispatch(device.fill_bytes, Grid{64}, begin, size, pattern.low, pattern.high);
      device.batch.dispatch(device.fill_rows, Grid{64, 1}, end - size, size, 1u, size, pattern.low,
                            pattern.high);
      device.batch.dispatch(device.copy_bytes, Grid{64}, back.data() + 258, begin, size);
      device.batch.dispatch(device.copy_bytes, Grid{64}, back.data() + 387, end - size, size);
      device.run();
      const Bytes got = device.download(back);
      Bytes filled(size);
      pattern.put(filled);
      CHECK(
          std::equal(got.begin(), got.begin() + static_cast<ptrdiff_t>(size), source.begin() + 3));
      CHECK(std::equal(got.begin() + 129, got.begin() + 129 + static_cast<ptrdiff_t>(size),
                       source.begin() + 128));
      CHECK(std::equal(filled.begin(), filled.end(), got.begin() + 258));
      CHECK(std::equal(filled.begin(), filled.end(), got.begin() + 387));
    }
  }
}

TEST_CASE("a read or a write of one byte more than is mapped is a memory fault", "[kernels]") {
  for (const bool reads : {true, false}) {
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
      const std::string part = std::string(reads ? "read " : "write ") + std::string(name_of(kind));
      test::in_own_process(part, [&] {
        TransferDevice device;
        const Allocation memory{device.gpu, kind, kOwnPages}, other{device.gpu, kind, kOwnPages};
        uint8_t* const edge = bytes_of(memory) + kOwnPages - 20;
        if (reads)
          device.batch.dispatch(device.copy_bytes, Grid{64}, bytes_of(other), edge, 21u);
        else
          device.batch.dispatch(device.copy_bytes, Grid{64}, edge, bytes_of(other), 21u);
        const Completion completion = device.batch.submit();
        const std::string error = test::error_of([&] { completion.wait(); });
        CAPTURE(error);
        CHECK(test::contains(error, "the GPU accessed address 0x"));
      });
    }
  }
}

TEST_CASE("transfer kernels take no hidden arguments but those of version 5", "[kernels]") {
  TransferDevice device;
  CHECK(device.program.kernel_names() == std::vector<std::string>{"copy_bytes", "copy_rows",
                                                                  "copy_slices", "fill_bytes",
                                                                  "fill_rows"});
  constexpr uint32_t kHidden = 256;
  CHECK(device.copy_bytes.info().arguments.size_bytes() == 24 + kHidden);
  CHECK(device.copy_rows.info().arguments.size_bytes() == 48 + kHidden);
  CHECK(device.copy_slices.info().arguments.size_bytes() == 72 + kHidden);
  CHECK(device.fill_bytes.info().arguments.size_bytes() == 32 + kHidden);
  CHECK(device.fill_rows.info().arguments.size_bytes() == 48 + kHidden);
}
