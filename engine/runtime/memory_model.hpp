// The memory model of an agent: properties of its caches by which the engine leaves fences out.
//
//   const MemoryModel& model = memory_model(agent);
//   print(model.name, model.proved, describe(model));
//
// Thread safety: pure functions. Lifetime: a MemoryModel is a constant of the program.
#pragma once

#include <string>
#include <string_view>

#include "engine/runtime/agent.hpp"

namespace uptempo {

// Each property that is true makes some fences superfluous; none makes all of them necessary.
struct CacheProperties {
  // The agent has one L2. A dispatch that overwrites the results of another then needs only to come
  // after it. Several L2s write the same bytes back in any order.
  bool one_l2 = false;
  // L2 does not hold host memory that is fine-grained, kernargs among it. An acquire of agent scope
  // then suffices for what the host has written there.
  bool host_memory_bypasses_l2 = false;
  // A store of the host or a copy engine to device memory invalidates copies in L2. An acquire
  // of agent scope then suffices for it, too.
  bool device_memory_is_probed = false;

  friend constexpr bool operator==(const CacheProperties&, const CacheProperties&) = default;
};

// A row of the table: one for each group of targets with the same caches.
struct MemoryModel {
  std::string_view name;  // "gfx900 to gfx90a", "gfx942 APU", "gfx103x"; "unknown target"
  // The sources state every property that is true for these targets, and the effect of packet
  // fences. If false, the sources only suggest the properties, no report from hardware confirms
  // them, and the engine keeps every fence. No row has been checked on hardware yet.
  bool proved = false;
  CacheProperties assumes{};
  std::string_view source;  // public documents and files

  // The properties that fences depend on: those of a proved row, otherwise none.
  constexpr CacheProperties rules() const noexcept { return proved ? assumes : CacheProperties{}; }
};

// The row of an agent with these properties: it depends on name, is_apu and xgmi_to_host. An
// unknown target has a row that assumes nothing.
const MemoryModel& memory_model(const AgentProperties& agent) noexcept;
inline const MemoryModel& memory_model(const Agent& agent) noexcept {
  return memory_model(agent.properties());
}

// The row in words: name, what it assumes, whether fences depend on it, and the source.
std::string describe(const MemoryModel& model);

// Whether L2 may hold old bytes of memory for kernel arguments after the host has written them
// anew, so that only an acquire of system scope suffices. `on_device`: device memory; otherwise
// fine-grained host memory.
constexpr bool kernargs_go_stale_in_l2(const MemoryModel& model, bool on_device) noexcept {
  const CacheProperties rules = model.rules();
  return on_device ? !rules.device_memory_is_probed : !rules.host_memory_bypasses_l2;
}
// Null: a queue without ROCr, whose arguments are in host memory that no L2 holds.
inline bool kernargs_go_stale_in_l2(const Agent* agent, bool on_device) noexcept {
  return agent != nullptr && kernargs_go_stale_in_l2(memory_model(*agent), on_device);
}

}  // namespace uptempo
