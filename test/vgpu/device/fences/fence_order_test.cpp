// Clocks and views: the tasks that are known to have happened before.
#include "device/fences/order.hpp"

#include <optional>
#include <utility>

#include "device/fences/view.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu::fences;
using uptempo::vgpu::FenceScope;

TEST_CASE("a prefix contains all tasks below it") {
  Progress progress;
  CHECK_FALSE(progress.contains(0));
  progress.add_below(3);
  CHECK(progress.contains(0));
  CHECK(progress.contains(2));
  CHECK_FALSE(progress.contains(3));
  progress.add_below(1);
  CHECK(progress.contains(2));
}

TEST_CASE("tasks beyond the prefix are stored one by one until the prefix reaches them") {
  Progress progress;
  progress.add(2);
  progress.add(4);
  CHECK_FALSE(progress.contains(0));
  CHECK(progress.contains(2));
  CHECK_FALSE(progress.contains(3));
  progress.add_below(2);
  CHECK(progress.contains(2));
  CHECK_FALSE(progress.contains(3));
  progress.add(3);
  for (uint64_t index = 0; index < 5; ++index) CHECK(progress.contains(index));
  CHECK_FALSE(progress.contains(5));
}

TEST_CASE("a join contains what either side contains, and nothing else") {
  for (uint64_t below : {0u, 1u, 3u, 6u}) {
    for (uint64_t mask = 0; mask < 64; ++mask) {
      Progress left, right;
      left.add_below(below);
      right.add(3);
      for (uint64_t index = 0; index < 6; ++index)
        if ((mask >> index & 1) != 0) (index % 2 != 0 ? left : right).add(index);
      Progress both = left;
      both.join(right);
      for (uint64_t index = 0; index < 8; ++index) {
        CAPTURE(below, mask, index);
        CHECK(both.contains(index) == (left.contains(index) || right.contains(index)));
      }
    }
  }
}

TEST_CASE("a clock separates actors") {
  Clock clock, other;
  clock.add({1, 0});
  other.add_below(3, 2);
  clock.join(other);
  CHECK(clock.contains({1, 0}));
  CHECK(clock.contains({3, 1}));
  CHECK_FALSE(clock.contains({0, 0}));
  CHECK_FALSE(clock.contains({2, 0}));
  CHECK_FALSE(clock.contains({9, 0}));
}

namespace {
constexpr TaskId kDispatch{1, 0}, kCopy{2, 0}, kOther{3, 0};  // the last one on agent 1
std::optional<uint32_t> agent_of(ActorId actor) {
  if (actor == kCopy.actor) return std::nullopt;
  return actor == kOther.actor ? 1 : 0;
}

View after_both() {
  View view;
  view.ordered.add(kDispatch);
  view.ordered.add(kCopy);
  return view;
}
}  // namespace

TEST_CASE("an acquire makes visible what had been released when it executed") {
  View view = after_both();
  view.acquire(FenceScope::agent, 0, agent_of);
  CHECK_FALSE(view.visible.contains(kDispatch));
  view.release(FenceScope::agent, 0, agent_of);
  CHECK_FALSE(view.visible.contains(kDispatch));
  view.acquire(FenceScope::agent, 0, agent_of);
  CHECK(view.visible.contains(kDispatch));
}

TEST_CASE("only a system acquire makes a copy visible") {
  View view = after_both();
  view.acquire(FenceScope::agent, 0, agent_of);
  CHECK_FALSE(view.visible.contains(kCopy));
  CHECK(view.l1_clean.contains(kCopy));
  view.acquire(FenceScope::system, 0, agent_of);
  CHECK(view.visible.contains(kCopy));
}

TEST_CASE("a release covers ended tasks at its scope") {
  View view = after_both();
  view.release(FenceScope::none, 0, agent_of);
  CHECK_FALSE(view.released_agent.contains(kDispatch));
  view.release(FenceScope::agent, 0, agent_of);
  CHECK(view.released_agent.contains(kDispatch));
  CHECK_FALSE(view.released_system.contains(kDispatch));
  view.release(FenceScope::system, 0, agent_of);
  CHECK(view.released_system.contains(kDispatch));
  const TaskId later{1, 1};
  view.ordered.add(later);
  CHECK_FALSE(view.released_agent.contains(later));
}

TEST_CASE("a release covers tasks of its own agent only") {
  View view = after_both();
  view.ordered.add(kOther);
  view.release(FenceScope::system, 0, agent_of);
  CHECK(view.released_system.contains(kDispatch));
  CHECK_FALSE(view.released_system.contains(kOther));
  view.release(FenceScope::agent, 1, agent_of);
  CHECK(view.released_agent.contains(kOther));
  CHECK_FALSE(view.released_system.contains(kOther));
}

TEST_CASE("an acquire of system scope makes visible what another agent released at system scope") {
  View view;
  view.ordered.add(kOther);
  view.release(FenceScope::agent, 1, agent_of);
  view.acquire(FenceScope::system, 0, agent_of);
  CHECK_FALSE(view.visible.contains(kOther));
  view.release(FenceScope::system, 1, agent_of);
  view.acquire(FenceScope::agent, 0, agent_of);
  CHECK_FALSE(view.visible.contains(kOther));
  view.acquire(FenceScope::system, 0, agent_of);
  CHECK(view.visible.contains(kOther));
}

TEST_CASE("an acquire serves its own agent only") {
  View view = after_both();
  view.release(FenceScope::system, 0, agent_of);
  view.acquire(FenceScope::system, 1, agent_of);
  CHECK_FALSE(view.visible.contains(kDispatch));
  CHECK_FALSE(view.l1_clean.contains(kDispatch));
  CHECK(std::as_const(view).of(1).visible.contains(kDispatch));
  CHECK(std::as_const(view).of(1).l1_clean.contains(kDispatch));
  CHECK_FALSE(std::as_const(view).of(2).visible.contains(kDispatch));
  View later;
  later.join(view);
  CHECK(later.of(1).visible.contains(kDispatch));
}
