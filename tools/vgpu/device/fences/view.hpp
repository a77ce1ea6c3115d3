// View: the tasks that happened before a task, and how far fences have carried their writes. The
// task may rely on all of it.
//
// Fences act on the whole agent (HSA System Architecture 1.2, 2.9; ROCr's packet processors do the
// same). Every task that comes after a packet, on any queue, may rely on what that packet released
// or acquired. So a View is passed as a whole along each edge of order: to the next packet of a
// queue, through a completion signal, through the host.
//
// A release covers what had ended when it executed: the tasks in `ordered` at that time. An acquire
// makes visible what had been released when it executed.
//
// Thread safety: none; a value type.
#pragma once

#include "device/caching.hpp"
#include "device/fences/order.hpp"

namespace uptempo::vgpu::fences {

struct View {
  Clock ordered;         // ended before
  Clock released_agent;  // covered by a release of agent scope or wider since then
  // covered by a release of system scope. Writes of the host and of SDMA engines count as such
  Clock released_system;
  // By the specification: dispatches' writes that were released and then acquired at agent scope or
  // wider; writes of the host and of SDMA engines that were acquired at system scope.
  Clock visible;
  // By the caches: what had ended when the agent's L1 caches were last invalidated.
  Clock l1_clean;

  void join(const View& other) {
    ordered.join(other.ordered);
    released_agent.join(other.released_agent);
    released_system.join(other.released_system);
    visible.join(other.visible);
    l1_clean.join(other.l1_clean);
  }

  // `is_dispatcher(actor)`: whether it is a compute queue of the agent.
  template <typename IsDispatcher>
  void acquire(FenceScope scope, IsDispatcher is_dispatcher) {
    if (scope == FenceScope::none) return;
    visible.join_if(released_agent, is_dispatcher);
    if (scope == FenceScope::system)
      visible.join_if(ordered, [&](ActorId actor) { return !is_dispatcher(actor); });
    l1_clean.join(ordered);
  }

  void release(FenceScope scope) {
    if (scope == FenceScope::none) return;
    released_agent.join(ordered);
    if (scope == FenceScope::system) released_system.join(ordered);
  }
};

}  // namespace uptempo::vgpu::fences
