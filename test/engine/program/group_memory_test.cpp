// Dynamic group memory on every dispatch path: the place of each part, the hidden arguments that
// describe it, and its limit.
#include <algorithm>
#include <array>
#include <cstring>
#include <ostream>
#include <string>
#include <tuple>
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

constexpr uint32_t kBlockBytes = 64, kStaticBytes = 20;

using Plain = Kernel<uint32_t>;
using Arrays = Kernel<uint32_t, LocalBytes, LocalBytes>;

DoubleKernel double_kernel(std::string name, uint32_t limit) {
  return {.name = std::move(name),
          .kernarg_bytes = 24,
          .arguments = {argument(ArgumentKind::by_value, 0, 4),
                        argument(ArgumentKind::hidden_dynamic_lds_size, 16, 4)},
          .group_segment_bytes = kStaticBytes,
          .max_group_segment_bytes = limit};
}
Plain plain_kernel(uint32_t limit = UINT32_MAX) {
  return kernel_of<uint32_t>(double_kernel("plain", limit));
}
Arrays arrays_kernel(uint32_t limit = UINT32_MAX) {
  DoubleKernel kernel = double_kernel("arrays", limit);
  kernel.arguments.insert(kernel.arguments.begin() + 1,
                          {argument(ArgumentKind::dynamic_shared_pointer, 4, 4),
                           argument(ArgumentKind::dynamic_shared_pointer, 8, 4)});
  return kernel_of<uint32_t, LocalBytes, LocalBytes>(kernel);
}

// The group memory fields of one dispatch.
struct Seen {
  uint32_t segment, first_array, second_array, hidden_size;
  friend bool operator==(const Seen&, const Seen&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Seen& seen) {
    return out << seen.segment << ' ' << seen.first_array << ' ' << seen.second_array << ' '
               << seen.hidden_size;
  }
};

std::vector<Seen> seen_by(DoubleDevice& device) {
  std::vector<Completed> ran = device.processor().completed();
  std::ranges::sort(ran, {}, &Completed::index);
  std::vector<Seen> all;
  for (const Completed& completed : ran) {
    const auto packet = aql::packet_as<hsa_kernel_dispatch_packet_t>(completed.packet);
    std::array<uint32_t, 5> words{};
    std::memcpy(words.data(), packet.kernarg_address, sizeof words);
    all.push_back({packet.group_segment_size, words[1], words[2], words[4]});
  }
  return all;
}

struct alignas(64) Lines {
  std::byte bytes[64 << 10];
};
const RecordingOptions kWithFewSpares{.spare_kernarg_bytes = 4 << 10};

}  // namespace

TEST_CASE("grids with different dynamic group memory are different", "[group_memory]") {
  CHECK(Grid{64}.lds(16) == Grid{64}.lds(16));
  CHECK(Grid{64}.lds(16) != Grid{64});
  CHECK(Grid{64}.lds(16).by(32) == Grid{64}.by(32).lds(16));
  CHECK(Grid{64}.lds(16).lds_bytes == 16);
}

TEST_CASE("dynamic group memory follows the static part, and LocalBytes arrays follow both",
          "[group_memory]") {
  const Arrays arrays = arrays_kernel();
  const Grid grid = Grid{64}.lds(100);
  // 20 + 100 = 120, rounded up to 128; 40 bytes, rounded up to 176; 24 bytes.
  const Seen expected{.segment = 200, .first_array = 128, .second_array = 176, .hidden_size = 100};
  const LocalBytes first{40}, second{24};

  DoubleDevice device;
  Lines lines, kernargs;
  BatchSubmitter batch(device.queue(), {});
  batch.dispatch(arrays, grid, 1u, first, second);
  REQUIRE(batch.try_dispatch(arrays, grid, 1u, first, second));
  batch.dispatch_at({lines.bytes, kBlockBytes}, arrays, grid, 1u, first, second);
  const auto prepared = batch.prepare(arrays, grid);
  prepared.dispatch(1u, first, second);
  prepared.dispatch_each(2, [&](uint32_t) noexcept { return std::tuple(1u, first, second); });
  REQUIRE(batch.submit().wait(soon(), kActiveWait));

  const auto made = device.recording(kernargs.bytes, kWithFewSpares);
  Recording& recording = *made;
  recording.dispatch(arrays, grid, 1u, first, second);
  const Node replaced = recording.dispatch(plain_kernel(), Grid{64}, 1u);
  recording.replace(replaced, arrays, grid, 1u, first, second);
  const Node moved = recording.dispatch(arrays, Grid{64}.lds(3), 1u, first, second);
  recording.set_grid(moved, grid);
  REQUIRE(recording.replay(device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(seen_by(device) == std::vector<Seen>(6 + 3, expected));

  recording.set_grid(moved, Grid{64});
  REQUIRE(recording.replay(device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(seen_by(device).back() ==
        Seen{.segment = 104, .first_array = 32, .second_array = 80, .hidden_size = 0});
}

TEST_CASE("a kernel gets the amount of dynamic group memory of each of its dispatches",
          "[group_memory]") {
  const Plain plain = plain_kernel();
  DoubleDevice device;
  BatchSubmitter batch(device.queue(), {});
  std::vector<Seen> expected;
  for (const uint32_t bytes : {0u, 7u, 7u, 1024u, 0u, 1u}) {
    batch.dispatch(plain, Grid{64}.lds(bytes), 1u);
    expected.push_back({kStaticBytes + bytes, 0, 0, bytes});
  }
  REQUIRE(batch.submit().wait(soon(), kActiveWait));
  CHECK(seen_by(device) == expected);
}

TEST_CASE("a dispatch may request all group memory of the agent, and not one byte more",
          "[group_memory]") {
  const Plain plain = plain_kernel(kStaticBytes + 100);
  const Arrays arrays = arrays_kernel(200);
  const Grid fits = Grid{64}.lds(100), too_much = Grid{64}.lds(101);
  const LocalBytes first{40}, second{24}, third{25};
  DoubleDevice device;
  Lines lines, kernargs;
  BatchSubmitter batch(device.queue(), {});

  const auto refused = [&](auto&& dispatch) {
    const std::string error = error_of<Error>(dispatch);
    CAPTURE(error);
    CHECK(
        contains(error,
                 "dispatch of 'plain': 101 bytes of dynamic group memory: with 20 bytes of static "
                 "group memory the sum is 121; the limit is 120"));
  };
  refused([&] { batch.dispatch(plain, too_much, 1u); });
  refused([&] { throw_refusal(batch.try_dispatch(plain, too_much, 1u)); });
  refused([&] { batch.dispatch_at({lines.bytes, kBlockBytes}, plain, too_much, 1u); });
  refused([&] { batch.prepare(plain, too_much); });
  CHECK(contains(error_of<Error>([&] { batch.dispatch(plain, Grid{64}.lds(UINT32_MAX), 1u); }),
                 "the sum is 4294967315; the limit is 120"));

  const auto refused_arrays = [&](auto&& dispatch) {
    const std::string error = error_of<Error>(dispatch);
    CAPTURE(error);
    CHECK(contains(
        error,
        "dispatch of 'arrays': 181 bytes of dynamic group memory (100 of Grid::lds, the rest for "
        "LocalBytes arguments): with 20 bytes of static group memory the sum is 201; the limit is "
        "200"));
  };
  refused_arrays([&] { batch.dispatch(arrays, fits, 1u, first, third); });
  refused_arrays([&] { throw_refusal(batch.try_dispatch(arrays, fits, 1u, first, third)); });
  refused_arrays([&] {
    batch.dispatch_at({lines.bytes, kBlockBytes}, arrays, fits, 1u, first, third);
  });
  const auto prepared = batch.prepare(arrays, fits);
  refused_arrays([&] { prepared.dispatch(1u, first, third); });
  // An amount that overflows 32 bits is also too much.
  CHECK(contains(error_of<Error>([&] { prepared.dispatch(1u, LocalBytes{UINT32_MAX}, second); }),
                 "the limit is 200"));
  CHECK(batch.size() == 0);
  refused_arrays([&] {
    prepared.dispatch_each(
        3, [&](uint32_t i) noexcept { return std::tuple(i, first, i < 2 ? second : third); });
  });
  CHECK(batch.size() == 2);

  const auto made = device.recording(kernargs.bytes, kWithFewSpares);
  Recording& recording = *made;
  refused([&] { recording.dispatch(plain, too_much, 1u); });
  refused_arrays([&] { recording.dispatch(arrays, fits, 1u, first, third); });
  CHECK(recording.size() == 0);
  const Node node = recording.dispatch(plain, fits, 1u);
  const Node local = recording.dispatch(arrays, fits, 1u, first, second);
  refused([&] { recording.set_grid(node, too_much); });
  refused([&] { recording.replace(node, plain, too_much, 1u); });
  refused_arrays([&] { recording.replace(node, arrays, fits, 1u, first, third); });
  CHECK(contains(
      error_of<Error>([&] { recording.set_grid(local, Grid{64}.lds(109)); }),
      "(109 of Grid::lds, the rest for LocalBytes arguments): with 20 bytes of static group memory "
      "the sum is 216; the limit is 200"));

  batch.dispatch(plain, fits, 1u);
  REQUIRE(batch.submit().wait(soon(), kActiveWait));
  REQUIRE(recording.replay(device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(seen_by(device) == std::vector<Seen>{{200, 128, 176, 100},
                                             {200, 128, 176, 100},
                                             {120, 0, 0, 100},
                                             {120, 0, 0, 100},
                                             {200, 128, 176, 100}});
}
