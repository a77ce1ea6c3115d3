// The fence plan: the barrier bit and fence scopes of each packet of a batch, with reasons.
//
// A pure function of the batch's declarations. It assumes what the engine guarantees: every kernarg
// block of the batch is written before the batch's first header; inputs that the host or a copy
// wrote are complete before submit(); the last packet carries the completion signal.
//
// Rules:
//   scopes   First packet: acquire system, because the host wrote kernargs and inputs. Last packet:
//            release system, because the host reads after its signal. Packets between them:
//            agent/agent. A batch of one: system/system. Fences are agent-wide, so one system
//            acquire serves every later packet.
//   barrier  A packet with declared accesses waits only if it reads what a packet since the last
//            barrier bit writes, or writes what such a packet reads or writes. A packet without
//            declarations may access anything: it waits, and so does the next one. The first packet
//            waits, because the accesses of earlier batches are not declared here.
//   caller   Explicit scopes and without_barrier() are kept, with two exceptions. The packet with
//            the completion signal keeps its barrier bit and releases at system scope: a release
//            covers only packets whose active phase has ended, and completion must mean that all
//            packets are complete and visible. The first packet acquires at least at agent scope:
//            its kernarg block may have been used before, and a scalar cache may hold the old
//            bytes.
//
// Thread safety: pure functions.
// Cost: linear in packets; for declared packets, also in pairs of ranges since the last barrier
// bit.
// Sources: HSA Platform System Architecture 1.2, sections 2.9.1 and 3.4; LLVM AMDGPU User Guide,
// memory model for gfx9.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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

// A packet's declarations, as input of the plan.
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

enum class FencePolicy : uint8_t {
  planned,  // the rules above
  // The fewest fences that the declarations permit (fence_planner.hpp). Distinguishes reads from
  // writes.
  minimal,
  // For comparison: system/system and a barrier bit on every packet, as in most runtimes.
  system_everywhere,
};

enum class BarrierReason : uint8_t {
  first_of_batch,
  undeclared,
  after_undeclared,
  conflict,
  independent,
  caller_without,
  caller_with,
  completion,
  policy,
};
enum class ScopeReason : uint8_t {
  host_wrote,
  host_reads,
  within_agent,
  observed,
  caller,
  completion,
  stale_kernargs,
  hand_over,  // between two packets (PacketPlan::acquired, released)
  nothing_new,
  nobody_reads,
  policy
};

// Two packets of a batch.
struct PacketPair {
  uint32_t earlier = 0, later = 0;
  bool operator==(const PacketPair&) const = default;
};

struct PacketPlan {
  aql::HeaderFlags flags;
  BarrierReason barrier = BarrierReason::undeclared;
  ScopeReason acquire = ScopeReason::within_agent;
  ScopeReason release = ScopeReason::within_agent;
  PacketPair conflict{};              // for BarrierReason::conflict
  PacketPair acquired{}, released{};  // writer and reader; for ScopeReason::hand_over
};

// Fills plans[i] for packets[i]; both have the same length. Does not fail or allocate. Not for
// FencePolicy::minimal.
void plan_fences(std::span<const Declarations> packets, std::span<const AccessRange> accesses,
                 FencePolicy policy, std::span<PacketPlan> plans) noexcept;

// Reasons for a packet's barrier bit and scopes, in words: "it touches what packet 3 touches, and
// one of them writes".
struct PlanReasons {
  std::string barrier, acquire, release;
};
// `packet` is its number in the batch; the text calls that packet "it".
PlanReasons reasons_of(const PacketPlan& plan, size_t packet);
// Returns one line: "barrier bit: ...; acquire agent: ...; release agent: ...".
std::string explain(const PacketPlan& plan, size_t packet);
// Returns one line per packet: "packet 3: barrier bit: ...".
std::string explain(std::span<const PacketPlan> plans);

}  // namespace uptempo
