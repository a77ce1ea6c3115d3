// Declarations: the caller's declarations for one packet of a batch, a recording or a plan. Input
// of every fence plan.
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aql/packet.hpp"

namespace uptempo {

// Bytes that a dispatch reads or writes, or an earlier packet that it depends on.
struct AccessRange {
  uintptr_t begin = 0;  // of a dependency: the packet's number
  uintptr_t end = 0;    // one past the last byte; of a dependency: equal to `begin`
  bool writes = false;
  bool is_dependency = false;
  bool operator==(const AccessRange&) const = default;
};

// Reader of a packet's results before the caller awaits the batch's completion.
enum class Observer : uint8_t {
  none,    // only later packets of the batch
  agent,   // another queue of the same agent
  system,  // the host or another device
};

struct Declarations {
  // A finished packet of the caller's: its header sets barrier bit and scopes.
  bool is_finished = false;
  // Its accesses are accesses[first_access, first_access + access_count).
  bool declared = false;
  // Declared by the packets that it depends on: it may access any memory.
  bool depends = false;
  bool without_barrier = false;
  bool explicit_fences = false;  // the caller set acquire and release
  aql::FenceScope acquire = aql::FenceScope::agent;
  aql::FenceScope release = aql::FenceScope::agent;
  Observer observer = Observer::none;
  uint32_t first_access = 0;
  uint32_t access_count = 0;

  // Adds one access. If `bytes` is 0, only marks the packet as declared. Appends to `accesses`;
  // if this packet's earlier ones are not at the end, they move there.
  void declare(std::vector<AccessRange>& accesses, const void* data, size_t bytes, bool writes) {
    if (declared && first_access + access_count != accesses.size()) [[unlikely]]
      move_to_end(accesses);
    const uint32_t first = declared ? first_access : static_cast<uint32_t>(accesses.size());
    if (bytes != 0) {
      const auto begin = reinterpret_cast<uintptr_t>(data);
      accesses.push_back({begin, begin + bytes, writes});
      ++access_count;
    }
    first_access = first;
    declared = true;
  }
  // Adds dependencies of packet `own` on earlier ones. Throws Error for a packet that is not earlier;
  // nothing is added then.
  void depend(std::vector<AccessRange>& accesses, uint32_t own, std::span<const size_t> earlier);
  // The memory that it accesses is declared, by ranges or as none.
  bool declares_memory(std::span<const AccessRange> accesses) const noexcept;
  // Whether it depends on that packet.
  bool depends_on(std::span<const AccessRange> accesses, uint32_t packet) const noexcept;
  void give_fences(aql::FenceScope its_acquire, aql::FenceScope its_release) noexcept {
    explicit_fences = true;
    acquire = its_acquire;
    release = its_release;
  }
  bool operator==(const Declarations&) const = default;

 private:
  void move_to_end(std::vector<AccessRange>& accesses);
};

}  // namespace uptempo
