// Arguments given at run time, on every way of dispatching: packed bytes and pointers reach the
// kernarg block as declared by the metadata, and others are refused before anything is taken.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <uptempo/program/metadata.hpp>
#include <uptempo/recording/recording.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/double_device.hpp"
#include "test/engine/error_code.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

constexpr uint32_t kStaticBytes = 20, kHiddenAt = 40, kKernargBytes = 48, kBlockBytes = 64;

// An address, a byte, three bytes without use, a 32-bit word, 12 bytes by value, four bytes without
// use, then the hidden arguments.
struct Packed {
  uint64_t address;
  uint8_t byte;
  uint32_t word;
  std::array<uint32_t, 3> wide;
};
static_assert(offsetof(Packed, word) == 12 && offsetof(Packed, wide) == 16);
static_assert(sizeof(Packed) == 32);  // 28 bytes of arguments, padding at the end

DoubleKernel mixed() {
  return {.name = "mixed",
          .kernarg_bytes = kKernargBytes,
          .arguments = {
              argument(ArgumentKind::global_buffer, 0, 8), argument(ArgumentKind::by_value, 8, 1),
              argument(ArgumentKind::by_value, 12, 4), argument(ArgumentKind::by_value, 16, 12),
              argument(ArgumentKind::hidden_grid_dims, kHiddenAt, 2)}};
}
Kernel<Arguments> mixed_kernel() { return kernel_of<Arguments>(mixed()); }

// Without gaps, so that one copy serves.
struct Dense {
  uint64_t address;
  uint32_t word, another;
};
Kernel<Arguments> dense_kernel() {
  return kernel_of<Arguments>({.name = "dense",
                               .kernarg_bytes = kKernargBytes,
                               .arguments = {argument(ArgumentKind::global_buffer, 0, 8),
                                             argument(ArgumentKind::by_value, 8, 4),
                                             argument(ArgumentKind::by_value, 12, 4),
                                             argument(ArgumentKind::hidden_grid_dims, 40, 2)}});
}

// Three words in a segment that hidden arguments align to 8 bytes.
Kernel<Arguments> words_kernel() {
  return kernel_of<Arguments>(
      {.name = "words",
       .kernarg_bytes = 24,
       .arguments = {argument(ArgumentKind::by_value, 0, 4), argument(ArgumentKind::by_value, 4, 4),
                     argument(ArgumentKind::by_value, 8, 4),
                     argument(ArgumentKind::hidden_grid_dims, 16, 2)}});
}

Kernel<Arguments> arrays_kernel(uint32_t limit = UINT32_MAX) {
  return kernel_of<Arguments>({.name = "arrays",
                               .kernarg_bytes = 24,
                               .arguments = {argument(ArgumentKind::by_value, 0, 4),
                                             argument(ArgumentKind::dynamic_shared_pointer, 4, 4),
                                             argument(ArgumentKind::dynamic_shared_pointer, 8, 4)},
                               .group_segment_bytes = kStaticBytes,
                               .max_group_segment_bytes = limit});
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

struct Seen {
  uint32_t group_segment;
  std::array<std::byte, kKernargBytes> block;
};

std::vector<Seen> seen_by(DoubleDevice& device) {
  std::vector<Completed> ran = device.processor().completed();
  std::ranges::sort(ran, {}, &Completed::index);
  std::vector<Seen> all;
  for (const Completed& completed : ran) {
    const auto packet = dispatch_of(completed);
    Seen& seen = all.emplace_back(Seen{packet.group_segment_size, {}});
    std::memcpy(seen.block.data(), packet.kernarg_address, seen.block.size());
  }
  return all;
}

struct alignas(64) Lines {
  std::byte bytes[64 << 10];
};
const RecordingOptions kWithFewSpares{.spare_kernarg_bytes = 4 << 10};

// Dispatches `given` in each way that a batch and a recording have, and returns how often.
size_t dispatch_in_each_way(DoubleDevice& device, Lines& lines, Lines& kernargs,
                            const Kernel<Arguments>& kernel, const Grid& grid,
                            const Arguments& given) {
  BatchSubmitter batch(device.queue(), {});
  batch.dispatch(kernel, grid, given);
  REQUIRE(batch.try_dispatch(kernel, grid, given));
  batch.dispatch_at({lines.bytes, kBlockBytes}, kernel, grid, given);
  const auto prepared = batch.prepare(kernel, grid);
  prepared.dispatch(given);
  prepared.dispatch_each(2, [&](uint32_t) noexcept { return std::tuple(given); });
  REQUIRE(batch.submit().wait(soon(), kActiveWait));

  const auto recording = device.recording(kernargs.bytes, kWithFewSpares);
  recording->dispatch(kernel, grid, given);
  const Node replaced = recording->dispatch(number_kernel(), Grid{64}, 1u);
  recording->replace(replaced, kernel, grid, given);
  const Node moved = recording->dispatch(kernel, Grid{32}, given);
  recording->set_grid(moved, grid);
  REQUIRE(recording->replay(device.queue(), soon()).wait(soon(), kActiveWait));
  return 6 + 3;
}

template <class T>
T at(const Seen& seen, size_t offset) {
  T value;
  std::memcpy(&value, seen.block.data() + offset, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("packed bytes and pointers give the kernel the same arguments", "[arguments]") {
  Packed packed;
  std::memset(&packed, 0xee, sizeof packed);  // padding that the kernel must not depend on
  packed.address = 0x1122334455667788;
  packed.byte = 0x99;
  packed.word = 0xaabbccdd;
  packed.wide = {1, 2, 3};
  void* params[] = {&packed.address, &packed.byte, &packed.word, &packed.wide};
  void** unsized = params;
  const std::vector<const void*> list(std::begin(params), std::end(params));
  const std::pair<const char*, Arguments> forms[] = {
      {"packed with padding", bytes_of(packed)},
      {"packed without padding", bytes_of(packed).first(28)},
      {"array of pointers", params},
      {"pointers without a count", unsized},
      {"vector of pointers", list},
  };
  const Grid grid = Grid{8, 8}.by(8, 8);
  for (const auto& [form, given] : forms) {
    CAPTURE(form);
    DoubleDevice device;
    Lines lines, kernargs;
    const size_t times = dispatch_in_each_way(device, lines, kernargs, mixed_kernel(), grid, given);
    const std::vector<Seen> all = seen_by(device);
    REQUIRE(all.size() == times);
    for (const Seen& seen : all) {
      CHECK(at<uint64_t>(seen, 0) == packed.address);
      CHECK(at<uint32_t>(seen, 8) == 0x99);  // gaps are zero
      CHECK(at<uint32_t>(seen, 12) == packed.word);
      CHECK(at<std::array<uint32_t, 3>>(seen, 16) == packed.wide);
      CHECK(at<uint16_t>(seen, kHiddenAt) == 2);
    }
  }
}

TEST_CASE("arguments without gaps arrive, and so does none", "[arguments]") {
  const Dense dense{0x1122334455667788, 7, 8};
  void* params[] = {const_cast<uint64_t*>(&dense.address), const_cast<uint32_t*>(&dense.word),
                    const_cast<uint32_t*>(&dense.another)};
  for (const Arguments& given : {Arguments(bytes_of(dense)), Arguments(params)}) {
    CAPTURE(given.is_packed());
    DoubleDevice device;
    Lines lines, kernargs;
    dispatch_in_each_way(device, lines, kernargs, dense_kernel(), Grid{64}, given);
    for (const Seen& seen : seen_by(device)) {
      CHECK(at<uint64_t>(seen, 0) == dense.address);
      CHECK(at<uint64_t>(seen, 8) == (7 | uint64_t{8} << 32));
      CHECK(at<uint16_t>(seen, kHiddenAt) == 1);
    }
  }
  DoubleDevice device;
  BatchSubmitter batch(device.queue(), {});
  const auto none = kernel_of<Arguments>({.name = "none"});
  batch.dispatch(none, Grid{64}, std::span<const std::byte>());
  batch.dispatch(none, Grid{64}, static_cast<void**>(nullptr));
  REQUIRE(batch.submit().wait(soon(), kActiveWait));
  for (const Completed& ran : device.processor().completed())
    CHECK(dispatch_of(ran).kernarg_address == nullptr);
}

TEST_CASE("an LDS array is given as its size", "[arguments]") {
  const std::array<uint32_t, 3> packed{1, 40, 24};
  void* params[] = {const_cast<uint32_t*>(&packed[0]), const_cast<uint32_t*>(&packed[1]),
                    const_cast<uint32_t*>(&packed[2])};
  for (const Arguments& given : {Arguments(bytes_of(packed)), Arguments(params)}) {
    CAPTURE(given.is_packed());
    DoubleDevice device;
    Lines lines, kernargs;
    dispatch_in_each_way(device, lines, kernargs, arrays_kernel(), Grid{64}.lds(100), given);
    // 20 + 100 = 120, rounded up to 128; 40 bytes, rounded up to 176; 24 bytes.
    for (const Seen& seen : seen_by(device)) {
      CHECK(seen.group_segment == 200);
      CHECK(at<uint32_t>(seen, 4) == 128);
      CHECK(at<uint32_t>(seen, 8) == 176);
    }
  }
}

TEST_CASE("arguments that do not fit are refused on every way, and nothing is taken",
          "[arguments]") {
  const Packed packed{};
  void* params[] = {const_cast<uint64_t*>(&packed.address), nullptr,
                    const_cast<uint32_t*>(&packed.word), const_cast<uint8_t*>(&packed.byte),
                    const_cast<uint8_t*>(&packed.byte)};
  const std::array<uint32_t, 3> arrays{1, 40, 25};
  const std::vector<std::byte> long_bytes(33);
  const std::string list =
      "argument 0 (8 bytes, an address, at offset 0), argument 1 (1 byte, by value, at offset 8), "
      "argument 2 (4 bytes, by value, at offset 12), argument 3 (12 bytes, by value, at offset "
      "16); ";
  struct Case {
    Kernel<Arguments> kernel;
    Arguments given;
    std::string error;
  };
  const std::vector<Case> cases{
      {mixed_kernel(), bytes_of(packed).first(27),
       "kernel 'mixed': 27 bytes of packed arguments: the kernel takes 28 to 32 bytes: " + list +
           "pack each argument at its offset"},
      {mixed_kernel(), long_bytes,
       "kernel 'mixed': 33 bytes of packed arguments: the kernel takes 28 to 32 bytes: " + list},
      {dense_kernel(), long_bytes,
       "kernel 'dense': 33 bytes of packed arguments: the kernel takes 16 bytes: "},
      {words_kernel(), std::span(long_bytes).first(16),  // a fourth word, which would be lost
       "kernel 'words': 16 bytes of packed arguments: the kernel takes 12 bytes: "},
      {dense_kernel(), std::span<const std::byte>(),
       "kernel 'dense': 0 bytes of packed arguments: the kernel takes 16 bytes: "},
      {mixed_kernel(), std::span(params).first(3),
       "kernel 'mixed': pointers to 3 arguments: the kernel takes 4: " + list},
      {mixed_kernel(), params, "kernel 'mixed': pointers to 5 arguments: the kernel takes 4: "},
      {mixed_kernel(), std::span(params).first(4),
       "kernel 'mixed': pointers to the arguments: a null pointer for argument 1 (1 byte, by "
       "value, at offset 8)"},
      {mixed_kernel(), static_cast<void**>(nullptr), "a null pointer for argument 0"},
      {arrays_kernel(100), bytes_of(arrays),
       "dispatch of 'arrays': 85 bytes of dynamic group memory (0 of Grid::lds, the rest for "
       "LocalBytes arguments): with 20 bytes of static group memory the sum is 105; the limit is "
       "100"},
  };
  DoubleDevice device;
  Lines lines, kernargs;
  BatchSubmitter batch(device.queue(), {});
  const auto recording = device.recording(kernargs.bytes, kWithFewSpares);
  const Node node = recording->dispatch(number_kernel(), Grid{64}, 1u);
  for (const auto& [kernel, given, expected] : cases) {
    CAPTURE(expected);
    const auto refused = [&, &expected = expected](const std::function<void()>& dispatch) {
      const std::string error = error_of<Error>(dispatch);
      CAPTURE(error);
      CHECK(contains(error, expected));
    };
    const Grid grid{64};
    const auto prepared = batch.prepare(kernel, grid);
    refused([&, &k = kernel, &g = given] { batch.dispatch(k, grid, g); });
    refused([&, &k = kernel, &g = given] { throw_refusal(batch.try_dispatch(k, grid, g)); });
    refused([&, &k = kernel, &g = given] {
      batch.dispatch_at({lines.bytes, kBlockBytes}, k, grid, g);
    });
    refused([&, &g = given] { prepared.dispatch(g); });
    refused([&, &g = given] {
      prepared.dispatch_each(2, [&](uint32_t) noexcept { return std::tuple(g); });
    });
    refused([&, &k = kernel, &g = given] { recording->dispatch(k, grid, g); });
    refused([&, &k = kernel, &g = given] { recording->replace(node, k, grid, g); });
  }
  CHECK(batch.size() == 0);
  CHECK(recording->size() == 1);
  REQUIRE(recording->replay(device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(at<uint32_t>(seen_by(device).front(), 0) == 1);
  CHECK(device.in_use().empty());
}

TEST_CASE("a recorded node's arguments change one by one or all at once", "[arguments]") {
  Packed packed{.address = 1, .byte = 2, .word = 3, .wide = {4, 5, 6}};
  DoubleDevice device;
  Lines kernargs;
  const auto recording = device.recording(kernargs.bytes, kWithFewSpares);
  const Node node = recording->dispatch(mixed_kernel(), Grid{64}, bytes_of(packed));
  const auto replayed = [&] {
    REQUIRE(recording->replay(device.queue(), soon()).wait(soon(), kActiveWait));
    return seen_by(device).back();
  };
  const uint32_t word = 33;
  recording->set(node, 2, bytes_of(word));
  Seen seen = replayed();
  CHECK(at<uint64_t>(seen, 0) == 1);
  CHECK(at<uint32_t>(seen, 12) == 33);

  packed = {.address = 11, .byte = 22, .word = 44, .wide = {55, 66, 77}};
  recording->set(node, bytes_of(packed));
  seen = replayed();
  CHECK(at<uint64_t>(seen, 0) == 11);
  CHECK(at<uint32_t>(seen, 8) == 22);
  CHECK(at<uint32_t>(seen, 12) == 44);
  CHECK(at<std::array<uint32_t, 3>>(seen, 16) == std::array<uint32_t, 3>{55, 66, 77});
  CHECK(at<uint16_t>(seen, kHiddenAt) == 1);

  const auto refused = [&](auto&& change, const std::string& expected) {
    const std::string error = error_of<Error>(change);
    CAPTURE(error);
    CHECK(contains(error, expected));
  };
  refused([&] { recording->set(node, 2, bytes_of(packed)); },
          "32 bytes for argument 2 of node 0: kernel 'mixed' takes 4");
  refused([&] { recording->set(node, 4, bytes_of(word)); },
          "4 bytes for argument 4 of node 0: kernel 'mixed' takes 4 arguments");
  refused([&] { recording->set(node, bytes_of(word)); }, "4 bytes of packed arguments");

  const std::array<uint32_t, 3> sizes{1, 16, 16};
  const Node arrays = recording->dispatch(arrays_kernel(), Grid{64}, bytes_of(sizes));
  refused([&] { recording->set(arrays, 1, bytes_of(word)); }, "it is an LDS array");
  refused([&] { recording->set(arrays, bytes_of(sizes)); }, "LDS arrays are among them");
  recording->set(arrays, 0, bytes_of(word));
  CHECK(at<uint32_t>(replayed(), 0) == 33);
}

TEST_CASE("a replay in flight keeps the arguments that it was given", "[arguments]") {
  DoubleDevice device;
  Lines kernargs;
  const auto recording = device.recording(kernargs.bytes, kWithFewSpares);
  Dense dense{1, 2, 3};
  const Node node = recording->dispatch(dense_kernel(), Grid{64}, bytes_of(dense));
  device.processor().pause();
  recording->replay(device.queue(), soon());
  const uint32_t four = 4;
  recording->set(node, 2, bytes_of(four));
  recording->replay(device.queue(), soon());
  dense = {5, 6, 7};
  recording->set(node, bytes_of(dense));
  const Completion last = recording->replay(device.queue(), soon());
  device.processor().resume();
  REQUIRE(last.wait(soon(), kActiveWait));
  std::vector<std::array<uint64_t, 2>> seen;
  for (const Seen& one : seen_by(device)) seen.push_back(at<std::array<uint64_t, 2>>(one, 0));
  const auto words = [](uint64_t address, uint64_t low, uint64_t high) {
    return std::array<uint64_t, 2>{address, low | high << 32};
  };
  CHECK(seen == std::vector{words(1, 2, 3), words(1, 2, 4), words(5, 6, 7)});
}

TEST_CASE("dispatch_each takes bytes and pointers by value", "[arguments]") {
  DoubleDevice device;
  BatchSubmitter batch(device.queue(), {});
  const auto prepared = batch.prepare(words_kernel(), Grid{64});
  prepared.dispatch_each(3, [](uint32_t i) noexcept {
    const std::array<uint32_t, 3> words{i, 10 * i, 100 * i};
    return std::tuple(std::bit_cast<std::array<std::byte, 12>>(words));
  });
  REQUIRE(batch.submit().wait(soon(), kActiveWait));
  std::vector<std::array<uint32_t, 3>> seen;
  for (const Seen& one : seen_by(device)) seen.push_back(at<std::array<uint32_t, 3>>(one, 0));
  CHECK(seen == std::vector<std::array<uint32_t, 3>>{{0, 0, 0}, {1, 10, 100}, {2, 20, 200}});
}

TEST_CASE("an LDS array has an offset of 32 bits", "[arguments]") {
  const std::string error = error_of<Error>([] {
    (void)info_of({.name = "odd",
                   .kernarg_bytes = 8,
                   .arguments = {argument(ArgumentKind::dynamic_shared_pointer, 7, 1)}});
  });
  CAPTURE(error);
  CHECK(
      contains(error, "kernel 'odd': LDS arrays with a 32-bit offset: one of 1 byte at offset 7"));
}

TEST_CASE("an address of a recorded node stays if its declared range starts elsewhere",
          "[arguments]") {
  std::array<uint32_t, 4> memory{};
  Dense dense{reinterpret_cast<uint64_t>(memory.data()), 1, 2};
  DoubleDevice device;
  Lines kernargs;
  const auto recording = device.recording(kernargs.bytes, kWithFewSpares);
  const Node node = recording->dispatch(dense_kernel(), Grid{64}, bytes_of(dense))
                        .writes(memory.data() + 1, memory.size() - 1);
  dense.word = 10;
  recording->set(node, bytes_of(dense));  // the same address
  dense.address += 4;
  dense.another = 20;
  const std::string error = error_of<Error>([&] { recording->set(node, bytes_of(dense)); });
  CHECK(contains(error, "another address for argument 0 of node 0"));
  REQUIRE(recording->replay(device.queue(), soon()).wait(soon(), kActiveWait));
  const Seen seen = seen_by(device).front();
  CHECK(at<uint64_t>(seen, 0) == reinterpret_cast<uint64_t>(memory.data()));
  CHECK(at<uint32_t>(seen, 8) == 10);
  CHECK(at<uint32_t>(seen, 12) == 2);
}

TEST_CASE("types given at run time are compared with the metadata", "[arguments]") {
  const std::shared_ptr<const KernelInfo> info = info_of(mixed());
  using Kind = ArgumentType::Kind;
  std::vector<ArgumentType> types{{.kind = Kind::address, .size = 8, .alignment = 8},
                                  {.kind = Kind::value, .size = 1},
                                  {.kind = Kind::value, .size = 4, .alignment = 4},
                                  {.kind = Kind::value, .size = 12, .alignment = 4}};
  info->arguments.require(types);
  types[2].alignment = 8;
  types[2].name = "long_word";
  const std::string error = error_of<Error>([&] { info->arguments.require(types); });
  CAPTURE(error);
  CHECK(contains(error,
                 "argument 2 as 'long_word' (4 bytes, aligned to 8): the kernel takes "
                 "argument 2 (4 bytes, by value, at offset 12)"));
}

TEST_CASE("a grid counts blocks and threads as HIP does", "[grid]") {
  CHECK(Grid::blocks(64).threads(256) == Grid{16384}.by(256));
  CHECK(Grid::blocks(3, 5).threads(8, 4) == Grid{24, 20}.by(8, 4));
  CHECK(Grid::blocks(3).threads(8, 4) == Grid{24, 4}.by(8, 4));
  CHECK(Grid::blocks(1, 1, 7).threads(32) == Grid{32, 1, 7}.by(32));
  struct {
    uint32_t x, y, z;
  } const blocks{2, 3, 4}, threads{5, 6, 7};
  CHECK(Grid::blocks(blocks).threads(threads) == Grid{10, 18, 28}.by(5, 6, 7));
  static_assert(Grid::blocks(2).threads(3).lds(4).lds_bytes == 4);
  const std::string wide =
      error_of<Error>([] { (void)Grid::blocks((uint64_t{1} << 32) + 1).threads(1); });
  CHECK(contains(wide, "Grid::blocks: 4294967297 x 1 x 1 workgroups of 1 x 1 x 1"));
  struct Wide {
    uint64_t x, y, z;
  };
  static_assert(!detail::HasThreeSizes<Wide>);
  CHECK(Grid::blocks(UINT32_MAX).threads(1).items.x == UINT32_MAX);
  const std::string error =
      error_of<Error>([] { (void)Grid::blocks(1, 1u << 24).threads(1, 256); });
  CAPTURE(error);
  CHECK(contains(error,
                 "Grid::blocks: 1 x 16777216 x 1 workgroups of 1 x 256 x 1: a dispatch has "
                 "at most 4294967295 work-items in a dimension"));
}
