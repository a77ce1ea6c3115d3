// Call stacks of the program, and the addresses that instructions access.
#include "device/host/host_stacks.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "device/fences/instruction_ranges.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;

namespace {

// Stacks that differ for each `path`: each bit chooses between two functions that call.
HostStackId capture_path(HostStacks& stacks, unsigned path, unsigned calls);

[[gnu::noinline]] HostStackId capture_even(HostStacks& stacks, unsigned path, unsigned calls) {
  const HostStackId id = capture_path(stacks, path, calls);
  asm volatile("nop");  // no tail call
  return id;
}
[[gnu::noinline]] HostStackId capture_odd(HostStacks& stacks, unsigned path, unsigned calls) {
  const HostStackId id = capture_path(stacks, path, calls);
  asm volatile("nop; nop");  // so that the compiler does not join the two functions
  return id;
}
[[gnu::noinline]] HostStackId capture_path(HostStacks& stacks, unsigned path, unsigned calls) {
  const HostStackId id = calls == 0      ? stacks.capture()
                         : path % 2 == 0 ? capture_even(stacks, path / 2, calls - 1)
                                         : capture_odd(stacks, path / 2, calls - 1);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // no tail call
  return id;
}

// The address is in the caller's frame, so it differs for each place that calls here.
[[gnu::noinline]] HostStackId capture(HostStacks& stacks) {
  const HostStackId id = stacks.capture();
  std::atomic_signal_fence(std::memory_order_seq_cst);  // no tail call
  return id;
}

[[gnu::noinline]] HostStackId capture_deep(HostStacks& stacks, unsigned depth) {
  const HostStackId id = depth == 0 ? stacks.capture() : capture_deep(stacks, depth - 1);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return id;
}

}  // namespace

TEST_CASE("one place has one stack, which its functions' addresses are on") {
  HostStacks stacks;
  std::vector<HostStackId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(capture(stacks));
  const HostStackId other = capture(stacks);
  CHECK(ids[0] != 0);
  CHECK(ids == std::vector<HostStackId>(3, ids[0]));
  CHECK(other != ids[0]);
  const auto frames = stacks.frames(ids[0]);
  REQUIRE(frames.size() > 2);
  const auto begin = reinterpret_cast<uintptr_t>(&capture);
  const bool holds_capture = std::ranges::any_of(
      frames, [&](uintptr_t frame) { return frame >= begin && frame < begin + 256; });
  CHECK(holds_capture);
}

TEST_CASE("an unknown stack has no frames, a deep one its innermost") {
  HostStacks stacks;
  CHECK(stacks.frames(0).empty());
  CHECK(stacks.frames(1).empty());
  CHECK(stacks.frames(HostStacks::kStacks + 1).empty());
  CHECK(stacks.frames(capture_deep(stacks, 100)).size() == HostStacks::kCodeFrames);
}

TEST_CASE("more stacks than there is room for are not known, and known ones stay") {
  HostStacks stacks;
  constexpr unsigned kCalls = 14;
  static_assert(1u << kCalls > HostStacks::kStacks);
  const HostStackId first = capture_path(stacks, 0, kCalls);
  const std::vector<uintptr_t> before(stacks.frames(first).begin(), stacks.frames(first).end());
  REQUIRE(before.size() > kCalls);
  std::array<std::vector<HostStackId>, 4> ids;
  std::vector<std::thread> threads;
  for (std::vector<HostStackId>& own : ids)
    threads.emplace_back([&] {
      for (unsigned path = 0; path < 1u << kCalls; ++path)
        own.push_back(capture_path(stacks, path, kCalls));
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(std::ranges::equal(stacks.frames(first), before));
  for (const std::vector<HostStackId>& own : ids) CHECK(own == ids[0]);
  std::vector<HostStackId> known = ids[0];
  std::erase(known, 0u);
  CHECK(known.size() <= HostStacks::kStacks);
  CHECK(known.size() >= HostStacks::kStacks / 8);
  std::ranges::sort(known);
  CHECK(std::ranges::adjacent_find(known) == known.end());
}

TEST_CASE("each instruction has the range of its accesses, and what it did") {
  fences::InstructionRanges ranges;
  ranges.add(0x100, 64, 128, Access::read);
  ranges.add(0x108, 4096, 4100, Access::atomic);
  ranges.add(0x100, 32, 36, Access::read);
  ranges.add(0x104, 64, 128, Access::write);
  const auto list = ranges.list();
  REQUIRE(list->size() == 3);
  const auto is = [](const fences::InstructionRange& range, GpuAddress instruction,
                     GpuAddress begin, GpuAddress end, bool reads, bool writes) {
    return range.instruction == instruction && range.begin == begin && range.end == end &&
           range.reads == reads && range.writes == writes;
  };
  CHECK(is((*list)[0], 0x100, 32, 128, true, false));
  CHECK(is((*list)[1], 0x104, 64, 128, false, true));
  CHECK(is((*list)[2], 0x108, 4096, 4100, true, true));
}

TEST_CASE("threads add ranges together, and a full table keeps the first instructions") {
  fences::InstructionRanges ranges;
  std::vector<std::thread> threads;
  for (GpuAddress thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (GpuAddress i = 0; i < fences::InstructionRanges::kInstructions; ++i)
        ranges.add(4 + 4 * i, 100 + thread, 200 + thread, Access::read);
    });
  for (std::thread& thread : threads) thread.join();
  ranges.add(1 << 20, 0, 1, Access::write);
  const auto list = ranges.list();
  REQUIRE(list->size() == fences::InstructionRanges::kInstructions);
  for (const fences::InstructionRange& range : *list) {
    CHECK(range.begin == 100);
    CHECK(range.end == 203);
    CHECK_FALSE(range.writes);
  }
}
