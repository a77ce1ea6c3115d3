// View: the tasks that happened before a task, and how far fences have carried their writes. The
// task may rely on all of it.
//
// Fences act on the whole agent (HSA System Architecture 1.2, 2.9; ROCr's packet processors do the
// same), and on no other agent. Every task that comes after a packet, on any queue, may rely on
// what that packet released; later tasks of its agent may rely on what it acquired. So a View is
// passed as a whole along each edge of order: to the next packet of a queue, through a completion
// signal, through the host.
//
// A release covers what had ended on the packet's agent when it executed: the tasks of that agent
// in `ordered` at that time. An acquire makes visible to the packet's agent what had been released
// when it executed: to agent scope by the agent itself, to system scope by others.
//
// Thread safety: none; a value type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/caches/caching.hpp"
#include "device/fences/order.hpp"

namespace uptempo::vgpu::fences {

// The effects of the acquires of one agent's packets.
struct Acquired {
  // By the specification: writes of the agent's dispatches that were released and then acquired at
  // agent scope or wider; those of other agents that were released and then acquired at system
  // scope; writes of the host and of SDMA engines that were acquired at system scope.
  Clock visible;
  // By the caches: what had ended when the agent's L1 caches were last invalidated.
  Clock l1_clean;

  void join(const Acquired& other) {
    visible.join(other.visible);
    l1_clean.join(other.l1_clean);
  }
};

// The acquired part of agent 0 is inherited, the others follow.
struct View : Acquired {
  Clock ordered;  // ended before
  // Covered since then by a release of the task's own agent, of agent scope or wider. Writes of the
  // host and of SDMA engines count as covered.
  Clock released_agent;
  Clock released_system;               // the same, of system scope
  std::vector<Acquired> other_agents;  // of agents 1, 2, ...; nothing beyond its end

  const Acquired& of(uint32_t agent) const noexcept {
    // Never destroyed: the host's last accesses are judged after static destructors.
    static const Acquired& kNothing = *new Acquired;
    if (agent == 0) return *this;
    return agent <= other_agents.size() ? other_agents[agent - 1] : kNothing;
  }
  Acquired& of(uint32_t agent) {
    if (agent == 0) return *this;
    if (agent > other_agents.size()) other_agents.resize(agent);
    return other_agents[agent - 1];
  }

  void join(const View& other) {
    ordered.join(other.ordered);
    released_agent.join(other.released_agent);
    released_system.join(other.released_system);
    Acquired::join(other);
    if (other.other_agents.size() > other_agents.size())
      other_agents.resize(other.other_agents.size());
    for (size_t i = 0; i < other.other_agents.size(); ++i)
      other_agents[i].join(other.other_agents[i]);
  }

  // `agent_of(actor)`: the agent of a compute queue; nothing for other actors.
  template <typename AgentOf>
  void acquire(FenceScope scope, uint32_t agent, AgentOf agent_of) {
    if (scope == FenceScope::none) return;
    Acquired& acquired = of(agent);
    acquired.visible.join_if(released_agent,
                             [&](ActorId actor) { return agent_of(actor) == agent; });
    if (scope == FenceScope::system) {
      acquired.visible.join_if(ordered, [&](ActorId actor) { return !agent_of(actor); });
      acquired.visible.join_if(released_system,
                               [&](ActorId actor) { return agent_of(actor).has_value(); });
    }
    acquired.l1_clean.join(ordered);
  }

  template <typename AgentOf>
  void release(FenceScope scope, uint32_t agent, AgentOf agent_of) {
    if (scope == FenceScope::none) return;
    const auto covered = [&](ActorId actor) { return agent_of(actor).value_or(agent) == agent; };
    released_agent.join_if(ordered, covered);
    if (scope == FenceScope::system) released_system.join_if(ordered, covered);
  }
};

}  // namespace uptempo::vgpu::fences
