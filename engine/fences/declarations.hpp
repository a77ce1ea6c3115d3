// Declarations: the caller's declarations for one packet of a batch, a recording or a plan. Input
// of every fence plan.
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aql/packet.hpp"

namespace uptempo {

// Bytes that a dispatch reads or writes.
struct AccessRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;  // one past the last byte
  bool writes = false;
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
