// What a task may rely on: which tasks happened before it, and how far fences have carried their writes.
//
// Fences act for the whole agent (HSA System Architecture 1.2, 2.9; ROCr's packet processors work so): what one packet releases or acquires,
// every task that comes after that packet may rely on, whatever its queue. So a View travels as a whole along each edge of order: to the
// next packet of a queue, through a completion signal, through the host.
//
// A release covers what had ended when it was carried out: the tasks that are in `ordered` then. An acquire makes visible what had been released
// when it was carried out.
//
// Thread safety: none; a value type.
#pragma once

#include "device/caching.hpp"
#include "device/fences/order.hpp"

namespace uptempo::vgpu::fences {

struct View {
  Clock ordered;          // ended before
  Clock released_agent;   // and covered by a release of agent scope or wider since
  Clock released_system;  // or of system scope. Writes of the host and of SDMA engines are, by nature
  // By the specification: dispatches' writes that were released and then acquired by agent scope or wider; those of the host and of SDMA
  // engines that were acquired by system scope.
  Clock visible;
  // By the caches: what had ended when the L1 caches of the agent were last invalidated.
  Clock l1_clean;

  void join(const View& other) {
    ordered.join(other.ordered);
    released_agent.join(other.released_agent);
    released_system.join(other.released_system);
    visible.join(other.visible);
    l1_clean.join(other.l1_clean);
  }

  // `is_dispatcher(actor)`: a compute queue of the agent.
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
