// Properties of a target's caches that fences depend on.
//
// Thread safety: pure functions.
#pragma once

#include <string_view>

#include "engine/runtime/agent.hpp"

namespace uptempo {

struct MemoryModel {
  std::string_view processor;  // "gfx90a"
  // The agent has one L2. A dispatch that overwrites the results of another then needs only to come
  // after it. Several L2s write the same bytes back in any order.
  bool one_l2;
  // L2 does not hold host memory that is fine-grained, kernargs among it. An acquire of agent scope
  // then suffices for what the host has written there.
  bool host_memory_bypasses_l2;
  // A store of the host or a copy engine to device memory invalidates copies in L2. An acquire
  // of agent scope then suffices for it, too.
  bool device_memory_is_probed;
  std::string_view source;
};

// Whether L2 may hold old bytes of memory for kernel arguments after the host has written them
// anew, so that only an acquire of system scope suffices. `on_device`: device memory; otherwise
// fine-grained host memory.
constexpr bool kernargs_go_stale_in_l2(const MemoryModel& model, bool on_device) noexcept {
  return on_device ? !model.device_memory_is_probed : !model.host_memory_bypasses_l2;
}

// Returns the row of the target, or for an unknown one the row that promises nothing.
const MemoryModel& memory_model(std::string_view processor) noexcept;
inline const MemoryModel& memory_model(const Agent& agent) noexcept {
  return memory_model(agent.name());
}
// Null: a queue without ROCr, whose arguments are in host memory that no L2 holds.
inline bool kernargs_go_stale_in_l2(const Agent* agent, bool on_device) noexcept {
  return agent != nullptr && kernargs_go_stale_in_l2(memory_model(*agent), on_device);
}

}  // namespace uptempo
