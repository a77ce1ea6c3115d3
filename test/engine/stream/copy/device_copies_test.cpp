// Copies, fills and frees in stream order, on a device.
#include <dlfcn.h>
#include <hsa/hsa_ext_amd.h>

#include <bit>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>
#include <vector>

#include <uptempo/stream/copy/retired.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/support/own_process.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

struct CopyDevice : OnDevice {
  Program basics{gpu, builtin_kernels::basics()};
  Kernel<uint32_t*, uint32_t> chain = basics.kernel<uint32_t*, uint32_t>("chain_increment");
};

std::vector<uint8_t> some_bytes(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

// The register that flushes the host data path. On the virtual GPU it is a word of memory that
// keeps stored values. On hardware it cannot be read, so it is null there.
volatile uint32_t* readable_hdp_flush(const Agent& gpu) {
  if (dlsym(RTLD_DEFAULT, "uptempo_vgpu_packets") == nullptr) return nullptr;
  constexpr int attribute = HSA_AMD_AGENT_INFO_HDP_FLUSH;
  hsa_amd_hdp_flush_t hdp{};
  REQUIRE(hsa_agent_get_info(gpu.handle(), std::bit_cast<hsa_agent_info_t>(attribute), &hdp) ==
          HSA_STATUS_SUCCESS);
  REQUIRE(hdp.HDP_MEM_FLUSH_CNTL != nullptr);
  return hdp.HDP_MEM_FLUSH_CNTL;
}

constexpr CopyPath kBoth[] = {CopyPath::engine, CopyPath::kernel};
constexpr size_t kSizes[] = {1,  2,   3,    4,    15,   16,    17,     63,
                             64, 100, 4095, 4096, 4097, 65536, 262144, 300001};

}  // namespace

TEST_CASE("every path copies every size and alignment, and not a byte more",
          "[device][stream][copy]") {
  CopyDevice device;
  Streams streams(device.gpu);
  Stream stream(streams);
  constexpr size_t room = 300001 + 64;
  DeviceBuffer<uint8_t> one(device.gpu, room), other(device.gpu, room);
  PinnedBuffer<uint8_t> pinned(device.gpu, room), back(device.gpu, room);
  std::mt19937_64 random(1);
  for (const CopyPath path : kBoth) {
    for (const size_t size : kSizes) {
      const size_t a = random() % 32, b = random() % 32, c = random() % 32, d = random() % 32;
      CAPTURE(name_of(path), size, a, b, c, d);
      const auto bytes = some_bytes(room, size);
      std::ranges::copy(bytes, pinned.begin());
      for (uint8_t& byte : back) byte = 0xcc;
      stream.fill(other, uint8_t{0xaa});
      REQUIRE(stream.copy(CopyTarget::device(one.data() + b, size),
                          CopySource::pinned(pinned.data() + a, size), path) == path);
      stream.copy(CopyTarget::device(other.data() + c, size),
                  CopySource::device(one.data() + b, size), path);
      stream.copy(CopyTarget::pinned(back.data() + d, size),
                  CopySource::device(other.data() + c, size), path);
      std::vector<uint8_t> whole(room);
      stream.copy(std::span(whole), other, path);
      stream.synchronize();
      for (size_t i = 0; i < room; ++i) {
        if (whole[i] != (i >= c && i < c + size ? bytes[a + i - c] : 0xaa)) FAIL("byte " << i);
        if (back[i] != (i >= d && i < d + size ? bytes[a + i - d] : 0xcc)) FAIL("byte " << i);
      }
    }
  }
}

TEST_CASE("kernels and copies of one stream, and of several, read each other's bytes",
          "[device][stream][copy]") {
  CopyDevice device;
  Streams streams(device.gpu);
  constexpr size_t count = 3000;
  for (const CopyPath path : kBoth) {
    CAPTURE(name_of(path));
    std::deque<Stream> all;
    for (int i = 0; i < 6; ++i) all.emplace_back(streams);
    DeviceBuffer<uint32_t> values[] = {{device.gpu, count}, {device.gpu, count}};
    PinnedBuffer<uint32_t> pinned(device.gpu, count);
    std::vector<uint32_t> expected(count, 3), pageable(count);
    all[0].copy(values[0], std::span(expected), path);
    Event last = all[0].record();
    size_t at = 0;
    for (uint32_t step = 0; step < 120; ++step) {
      Stream& stream = all[step * 5 % all.size()];
      stream.after(last);
      stream.launch(device.chain, Grid{count}.by(64), values[at].data(), step);
      for (uint32_t& value : expected) value = value * 3 + step;
      switch (step % 4) {
        case 0:
          stream.copy(values[1 - at], values[at], path);
          at = 1 - at;
          break;
        case 1:
          stream.copy(pinned, values[at], path);
          stream.copy(values[1 - at], pinned, path);
          at = 1 - at;
          break;
        case 2:
          stream.copy(std::span(pageable), values[at], path);
          stream.copy(values[1 - at], std::span(pageable), path);  // waits for the bytes
          at = 1 - at;
          break;
        default:
          break;
      }
      last = stream.record();
    }
    all[1].after(last);
    all[1].copy(std::span(pageable), values[at], path);
    all[1].record().wait();
    CHECK(pageable == expected);
  }
}

TEST_CASE("a staged source may change when the call returns", "[device][stream][copy]") {
  CopyDevice device;
  Streams streams(device.gpu);
  Stream stream(streams);
  constexpr size_t count = 200000;
  for (const CopyPath path : kBoth) {
    CAPTURE(name_of(path));
    DeviceBuffer<uint8_t> memory(device.gpu, count);
    std::vector<uint8_t> bytes = some_bytes(count, 5), back(count);
    const std::vector<uint8_t> sent = bytes;
    stream.copy(memory, std::span(bytes), path);
    std::ranges::fill(bytes, uint8_t{0});
    stream.copy(std::span(back), memory, path);
    std::ranges::fill(back, uint8_t{0x11});
    stream.synchronize();
    CHECK(back == sent);
  }
}

TEST_CASE("pageable memory is pinned for a large copy, and unpinned when it is complete",
          "[device][stream][copy]") {
  CopyDevice device;
  Streams streams(device.gpu, {.copies = {.stage_bytes = 4096}});
  for (const CopyPath path : kBoth) {
    CAPTURE(name_of(path));
    Stream stream(streams);
    constexpr size_t count = 100000;
    DeviceBuffer<uint8_t> memory(device.gpu, count);
    const std::vector<uint8_t> bytes = some_bytes(count, 6);
    std::vector<uint8_t> back(count);
    const Counters before = Counters::now();
    stream.copy(memory, std::span(bytes), path);
    stream.copy(std::span(back), memory, path);
    stream.synchronize();
    const Counters spent = Counters::now() - before;
    CHECK(spent.pins == 2);
    CHECK(spent.unpins == 2);
    CHECK(spent.copies_pinned_for_once == 2);
    CHECK(spent.copies_staged == 0);
    CHECK(back == bytes);
  }
}

// Newer ROCr reports a largest grid of 65,535 in y, which is HIP's limit in workgroups.
TEST_CASE("more than 65,535 rows are filled and copied", "[device][stream][copy]") {
  CopyDevice device;
  Streams streams(device.gpu, {});
  Stream stream(streams);
  constexpr size_t kRows = 70'000, kPitch = 3;
  DeviceBuffer<uint8_t> from(device.gpu, kRows * kPitch), to(device.gpu, kRows * kPitch);
  const CopyRows rows{.width_bytes = 2, .height = kRows, .to_pitch = kPitch, .from_pitch = kPitch};
  stream.fill(from, uint8_t{1});
  stream.fill(to, uint8_t{2});
  stream.fill_2d(from, rows, uint8_t{7});
  stream.copy_2d(to, from, rows);
  std::vector<uint8_t> back(kRows * kPitch), expected(kRows * kPitch, 2);
  stream.copy(std::span(back), to);
  stream.synchronize();
  for (size_t row = 0; row < kRows; ++row) expected[row * kPitch] = expected[row * kPitch + 1] = 7;
  CHECK(back == expected);
}

TEST_CASE("rows of any width, pitch and place are copied, and nothing between them",
          "[device][stream][copy]") {
  CopyDevice device;
  Streams streams(device.gpu, {.copies = {.staging_bytes = 64 << 10, .piece_bytes = 4 << 10}});
  Stream stream(streams);
  constexpr size_t room = 64 << 10;
  DeviceBuffer<uint8_t> memory(device.gpu, room);
  PinnedBuffer<uint8_t> pinned(device.gpu, room);
  struct Shape {
    size_t width, height, to_pitch, from_pitch;
  };
  for (const Shape s :
       {Shape{1, 7, 3, 5}, Shape{16, 20, 48, 33}, Shape{100, 9, 101, 100},
        Shape{5000, 3, 5001, 6000}, Shape{64, 64, 64, 64}, Shape{333, 100, 400, 334}}) {
    for (const bool pageable : {false, true}) {
      CAPTURE(s.width, s.height, s.to_pitch, s.from_pitch, pageable);
      const std::vector<uint8_t> bytes = some_bytes(room, s.width);
      std::ranges::copy(bytes, pinned.begin());
      std::vector<uint8_t> expected(room, 0xee), back(room, 0xee);
      stream.fill(memory, uint8_t{0xdd});
      const CopyRows rows{s.width, s.height, s.to_pitch, s.from_pitch};
      stream.copy_2d(memory, pageable ? CopySource(std::span(bytes)) : CopySource(pinned), rows);
      const CopyRows returned{s.width, s.height, s.from_pitch, s.to_pitch};
      if (pageable) {
        stream.copy_2d(std::span(back), memory, returned);
        stream.synchronize();
      } else {
        stream.synchronize();
        for (uint8_t& byte : pinned) byte = 0xee;
        stream.copy_2d(pinned, memory, returned);
        stream.synchronize();
        std::ranges::copy(pinned, back.begin());
      }
      for (size_t row = 0; row < s.height; ++row)
        std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(row * s.from_pitch), s.width,
                    expected.begin() + static_cast<ptrdiff_t>(row * s.from_pitch));
      CHECK(back == expected);
      std::vector<uint8_t> whole(room), on_device(room, 0xdd);
      stream.copy(std::span(whole), memory);
      stream.synchronize();
      for (size_t row = 0; row < s.height; ++row)
        std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(row * s.from_pitch), s.width,
                    on_device.begin() + static_cast<ptrdiff_t>(row * s.to_pitch));
      CHECK(whole == on_device);
    }
  }
}

TEST_CASE("patterns of 1 to 16 bytes fill memory and rows", "[device][stream][copy]") {
  CopyDevice device;
  Streams streams(device.gpu);
  Stream stream(streams);
  constexpr size_t room = 4800;
  DeviceBuffer<uint8_t> memory(device.gpu, room);
  const auto filled = [&](const auto& pattern, size_t from, size_t bytes) {
    std::vector<uint8_t> back(room), expected(room, 0x77);
    stream.fill(memory, uint8_t{0x77});
    stream.fill(CopyTarget::device(memory.data() + from, bytes), pattern);
    stream.copy(std::span(back), memory);
    stream.synchronize();
    for (size_t i = 0; i < bytes; i += sizeof(pattern))
      std::memcpy(&expected[from + i], &pattern, sizeof(pattern));
    CAPTURE(sizeof(pattern), from, bytes);
    CHECK(back == expected);
  };
  filled(uint8_t{0x12}, 3, 1001);
  filled(uint16_t{0x1234}, 1, 1002);
  filled(uint32_t{0x12345678}, 5, 1004);
  filled(uint64_t{0x123456789abcdef0}, 7, 1008);
  filled(std::array<uint32_t, 4>{1, 2, 3, 4}, 9, 1008);
  stream.fill(memory, uint8_t{0});
  stream.fill_2d(memory, {.width_bytes = 12, .height = 40, .to_pitch = 100}, uint32_t{0xabcdef01});
  std::vector<uint8_t> back(room), expected(room);
  stream.copy(std::span(back), memory);
  stream.synchronize();
  for (size_t row = 0; row < 40; ++row)
    for (size_t i = 0; i < 12; i += 4) {
      const uint32_t pattern = 0xabcdef01;
      std::memcpy(&expected[row * 100 + i], &pattern, 4);
    }
  CHECK(back == expected);
  CHECK_THROWS_AS(stream.fill(CopyTarget::device(memory.data(), 6), uint32_t{1}), Error);
}

TEST_CASE("a stream that waits for the host copies by kernel, and blocks no other stream's copies",
          "[device][stream][copy]") {
  CopyDevice device;
  Streams streams(device.gpu);
  Stream held(streams), free(streams);
  constexpr size_t count = 100000;
  DeviceBuffer<uint8_t> one(device.gpu, count), other(device.gpu, count);
  std::vector<uint8_t> bytes = some_bytes(count, 9), back(count), free_back(count);
  const std::vector<uint8_t> sent = bytes;
  Signal gate;
  held.after(gate);
  CHECK_THROWS_AS(held.copy(one, std::span(bytes), CopyPath::engine), Error);
  for (int i = 0; i < 60; ++i) CHECK(held.copy(one, std::span(bytes)) == CopyPath::kernel);
  std::ranges::fill(bytes, uint8_t{0});
  held.copy(std::span(back), one);
  for (int i = 0; i < 60; ++i) free.copy(other, std::span(sent));
  free.copy(std::span(free_back), other);
  free.synchronize();
  CHECK(free_back == sent);
  CHECK(back == std::vector<uint8_t>(count));
  hsa_signal_store_screlease(gate.handle(), 0);
  held.synchronize();
  CHECK(back == sent);
}

TEST_CASE("the host copies small data of an idle stream if it can access both ends",
          "[device][stream][copy]") {
  CopyDevice device;
  Streams streams(device.gpu);
  Stream stream(streams);
  PinnedBuffer<uint8_t> pinned(device.gpu, 4096);
  DeviceBuffer<uint8_t> memory(device.gpu, 4096);
  const std::vector<uint8_t> bytes = some_bytes(4096, 10);
  std::vector<uint8_t> back(4096);
  const Counters before = Counters::now();
  CHECK(stream.copy(pinned, std::span(bytes)) == CopyPath::host);
  CHECK(std::ranges::equal(pinned, bytes));
  CHECK((Counters::now() - before).copies_by_host == 1);
  CHECK((Counters::now() - before).packets == 0);
  // Device memory that the host has been given access to.
  CHECK(stream.copy(memory, std::span(bytes)) != CopyPath::host);
  CHECK_THROWS_AS(stream.copy(memory, std::span(bytes), CopyPath::host), Error);
  stream.synchronize();
  stream.fill(memory, uint8_t{0});
  stream.synchronize();
  if (!host_can_reach(device.gpu)) {  // no large BAR
    CHECK_THROWS_AS(allow_host_access(device.gpu, memory.data()), Error);
    return;
  }
  allow_host_access(device.gpu, memory.data());
  volatile uint32_t* const hdp_flush = readable_hdp_flush(device.gpu);
  if (hdp_flush != nullptr) *hdp_flush = 0;
  CHECK(stream.copy(CopyTarget(memory).host_writes(), std::span(bytes)) == CopyPath::host);
  if (hdp_flush != nullptr) CHECK(*hdp_flush == 1);
  CHECK(stream.copy(std::span(back), memory) != CopyPath::host);
  CHECK_THROWS_AS(stream.copy(CopyTarget(memory).host_writes(), pinned, CopyPath::host), Error);
  stream.synchronize();
  CHECK(back == bytes);
}

TEST_CASE("buffers are freed in the order of their stream, by a call that waits",
          "[device][stream][free]") {
  CopyDevice device;
  Streams streams(device.gpu);
  const auto is_there = [](const void* data) {
    hsa_amd_pointer_info_t info{};
    info.size = sizeof(info);
    REQUIRE(hsa_amd_pointer_info(data, &info, nullptr, nullptr, nullptr) == HSA_STATUS_SUCCESS);
    return info.type == HSA_EXT_POINTER_TYPE_HSA;
  };
  for (const int waiter : {0, 1, 2, 3, 4}) {
    CAPTURE(waiter);
    std::optional<Stream> stream(streams);
    Stream other(streams);
    // ROCr allocates small ones from larger blocks
    DeviceBuffer<uint32_t> values(device.gpu, 1 << 20);
    PinnedBuffer<uint32_t> result(device.gpu, 1000), source(device.gpu, 1000);
    for (uint32_t& value : source) value = 1;
    const void* const freed = values.data();
    const void* const source_freed = source.data();
    Signal gate;
    stream->after(gate);
    stream->copy(CopyTarget::device(values.data(), 4000), source);
    for (uint32_t i = 0; i < 50; ++i) stream->launch(device.chain, Grid{1000}, values.data(), i);
    stream->copy(result, CopySource::device(values.data(), 4000));
    stream->free_after_work(std::move(values));
    stream->free_after_work(std::move(source));
    const Event after = stream->record();
    CHECK(values.data() == nullptr);
    DeviceBuffer<uint32_t> others(device.gpu, 1000);
    other.fill(others, 1u);
    other.synchronize();
    CHECK(is_there(freed));
    hsa_signal_store_screlease(gate.handle(), 0);
    while (!after.ready()) std::this_thread::yield();
    for (uint32_t i = 0; i < 50; ++i) other.launch(device.chain, Grid{1000}, others.data(), i);
    stream->launch(device.chain, Grid{1000}, result.data(), 0u);
    CHECK(is_there(freed));
    CHECK(is_there(source_freed));
    switch (waiter) {
      case 0:
        stream->synchronize();
        break;
      case 1:
        streams.synchronize();
        break;
      case 2:
        stream->free_after_work(DeviceBuffer<uint32_t>(device.gpu, 1));
        break;
      case 3:
        other.synchronize();
        break;
      default:
        stream.reset();
    }
    CHECK_FALSE(is_there(freed));
    CHECK_FALSE(is_there(source_freed));
    streams.synchronize();
    uint32_t expected = 1;
    for (uint32_t i = 0; i < 50; ++i) expected = expected * 3 + i;
    for (const uint32_t value : result) REQUIRE(value == expected * 3);
  }
}

TEST_CASE("an engine copy with an unmapped address ends the copies of its engine with an error",
          "[device][stream][copy]") {
  in_own_process("", [&] {
    CopyDevice device;
    Streams streams(device.gpu, {.queue = {.drain_timeout = 1s}});
    Stream stream(streams), other(streams);
    DeviceBuffer<uint8_t> memory(device.gpu, 4096);
    std::vector<uint8_t> back(4096, 1);
    const CopyPath by_engine = CopyPath::engine;
    CHECK_THROWS_AS(
        ([&] {
          stream.copy(memory,
                      CopySource::device(reinterpret_cast<void*>(uintptr_t{0x7f0000001000}), 4096),
                      by_engine);
          stream.copy(std::span(back), memory, by_engine);
          stream.synchronize();
        }()),
        Error);
    CHECK(back == std::vector<uint8_t>(4096, 1));
    CHECK_THROWS_AS(other.copy(memory, memory, by_engine), Error);
  });
}

TEST_CASE(
    "random programs of kernels, copies and fills on several streams compute what the host does",
    "[device][stream][copy]") {
  CopyDevice device;
  constexpr size_t count = 512, buffers = 4;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    Streams streams(device.gpu, {.hardware_queues = 2,
                                 .legacy_default = seed % 2 == 0,
                                 .copies = {.stage_bytes = seed == 3 ? size_t{0} : size_t{1} << 20,
                                            .staging_bytes = 16 << 10,
                                            .piece_bytes = 1 << 10}});
    std::mt19937_64 random(seed);
    std::deque<Stream> all;
    for (int i = 0; i < 4; ++i) all.emplace_back(streams);
    std::vector<DeviceBuffer<uint32_t>> memory;
    for (size_t i = 0; i < buffers; ++i) memory.emplace_back(device.gpu, count);
    PinnedBuffer<uint32_t> pinned(device.gpu, count);
    std::vector<std::vector<uint32_t>> model(buffers + 2, std::vector<uint32_t>(count));
    std::vector<uint32_t> pageable(count);
    for (uint32_t& value : pinned) value = 0;
    for (auto& buffer : memory) all[0].fill(buffer, uint32_t{0});
    Event last = all[0].record();
    // Buffers 0 to 3 are on the device, 4 is pinned, 5 pageable.
    const auto target = [&](size_t i, size_t from, size_t n) {
      if (i < buffers) return CopyTarget::device(memory[i].data() + from, n * 4);
      return i == buffers ? CopyTarget::pinned(pinned.data() + from, n * 4)
                          : CopyTarget::pageable(pageable.data() + from, n * 4);
    };
    const auto source = [&](size_t i, size_t from, size_t n) {
      if (i < buffers) return CopySource::device(memory[i].data() + from, n * 4);
      return i == buffers ? CopySource::pinned(pinned.data() + from, n * 4)
                          : CopySource::pageable(pageable.data() + from, n * 4);
    };
    for (uint32_t step = 0; step < 300; ++step) {
      Stream& stream = seed % 2 == 0 && random() % 8 == 0 ? streams.default_stream()
                                                          : all[random() % all.size()];
      stream.after(last);
      const size_t n = 1 + random() % count, from = random() % (count - n + 1),
                   to = random() % (count - n + 1);
      switch (random() % 4) {
        case 0: {
          const size_t which = random() % buffers;
          stream.launch(device.chain, Grid{count}.by(64), memory[which].data(), step);
          for (uint32_t& value : model[which]) value = value * 3 + step;
          break;
        }
        case 1: {
          const size_t which = random() % buffers;
          stream.fill(target(which, to, n), step);
          std::fill_n(model[which].begin() + static_cast<ptrdiff_t>(to), n, step);
          break;
        }
        default: {
          const size_t a = random() % (buffers + 2);
          size_t b = random() % (buffers + 2);
          if (a == b) b = (b + 1) % (buffers + 2);
          const CopyPath path = random() % 3 == 0   ? CopyPath::engine
                                : random() % 2 == 0 ? CopyPath::kernel
                                                    : CopyPath::automatic;
          stream.copy(target(b, to, n), source(a, from, n), path);
          const std::vector<uint32_t> moved(model[a].begin() + static_cast<ptrdiff_t>(from),
                                            model[a].begin() + static_cast<ptrdiff_t>(from + n));
          std::ranges::copy(moved, model[b].begin() + static_cast<ptrdiff_t>(to));
        }
      }
      last = stream.record();
      if (random() % 50 == 0) {
        last.wait();
        REQUIRE(pageable == model[buffers + 1]);
        REQUIRE(std::ranges::equal(pinned, model[buffers]));
      }
    }
    streams.synchronize();
    CHECK(detail::RetiredList::of_process().size() == 0);
    CHECK(pageable == model[buffers + 1]);
    CHECK(std::ranges::equal(pinned, model[buffers]));
    for (size_t i = 0; i < buffers; ++i) {
      std::vector<uint32_t> back(count);
      all[0].copy(std::span(back), memory[i]);
      all[0].synchronize();
      CHECK(back == model[i]);
    }
  }
}

TEST_CASE("copies in flight outlive their stream, and complete with the Streams at the latest",
          "[device][stream][copy]") {
  CopyDevice device;
  constexpr size_t count = 300000;
  const std::vector<uint8_t> bytes = some_bytes(count, 12);
  std::vector<uint8_t> back(count);
  DeviceBuffer<uint8_t> memory(device.gpu, count);
  {
    Streams streams(device.gpu);
    {
      Stream stream(streams);
      stream.copy(memory, std::span(bytes));
      stream.copy(std::span(back), memory);
      DeviceBuffer<uint8_t> extra(device.gpu, 100);
      stream.free_after_work(std::move(extra));
    }
  }
  CHECK(back == bytes);
  CHECK(detail::RetiredList::of_process().size() == 0);
}

TEST_CASE("the error of an impossible copy names the reason", "[device][stream][copy]") {
  CopyDevice device;
  Streams streams(device.gpu);
  Stream stream(streams);
  DeviceBuffer<uint8_t> memory(device.gpu, 64), small(device.gpu, 32);
  std::vector<uint8_t> one(64), other(64);
  CHECK(contains(error_of<Error>([&] { stream.copy(small, memory); }), "a target of 32 bytes"));
  CHECK(contains(
      error_of<Error>([&] { stream.copy(std::span(one), std::span(other), CopyPath::kernel); }),
      "the device can access neither end"));
  CHECK(contains(error_of<Error>([&] {
                   stream.copy_2d(memory, memory,
                                  {.width_bytes = 8, .height = 9, .to_pitch = 8, .from_pitch = 8});
                 }),
                 "inside the memory"));
  CHECK(contains(error_of<Error>([&] {
                   stream.copy_2d(small, memory,
                                  {.width_bytes = 8, .height = 3, .to_pitch = 9, .from_pitch = 16},
                                  CopyPath::engine);
                 }),
                 "copy engines copy contiguous bytes only"));
  CHECK(contains(error_of<Error>([&] { stream.fill(std::span(one), 1, CopyPath::kernel); }),
                 "kernels cannot access pageable memory"));
  CHECK(stream.copy(CopyTarget::device(memory.data(), 0), CopySource::device(small.data(), 0)) ==
        CopyPath::automatic);
}

TEST_CASE("Streams with copies in flight may outlive the Runtime", "[device][stream][copy]") {
  const std::vector<uint8_t> bytes = some_bytes(5000, 13);
  std::vector<uint8_t> back(5000);
  std::optional<CopyDevice> device(std::in_place);
  DeviceBuffer<uint8_t> memory(device->gpu, 5000);
  Streams streams(device->gpu);
  Stream stream(streams);
  stream.copy(memory, std::span(bytes));
  stream.copy(std::span(back), memory);
  const Event done = stream.record();
  while (!done.completion().ready()) {
  }
  CHECK(back != bytes);  // no call has queried the event
  device.reset();
  CHECK(back == bytes);
  CHECK(done.ready());
  CHECK(detail::RetiredList::of_process().size() == 0);
}
