// The fence plan: which barrier bit and which scopes each packet of a batch gets, and why.
//
// A pure function of what the batch says about its packets. It assumes what the engine guarantees: every kernarg block of the batch was
// written before the batch's first header; inputs that the host or a copy wrote were complete before submit(); the last packet carries
// the completion signal.
//
// Rules (HSA Platform System Architecture 1.2, sections 2.9.1 and 3.4; AMD's memory model for gfx9 in the LLVM AMDGPU User Guide)
//   scopes   First packet: acquire system, because the host wrote kernargs and inputs. Last packet: release system, because the host
//            reads after its signal. In between agent/agent; a batch of one: system/system. Fences are agent-wide, so one system
//            acquire serves every packet after it.
//   barrier  A packet that declares its accesses waits only if it reads what a packet since the last barrier bit writes, or writes what
//            such a packet reads or writes. A packet that declares nothing may touch anything: it waits, and so does the one after it.
//            The first packet waits, because what earlier batches do is not declared here.
//   caller   Explicit scopes and without_barrier() are taken as they are, with two exceptions. The packet with the completion signal keeps its
//            barrier bit and releases at system scope: a release covers only packets whose active phase is over, and completion must mean
//            that all packets are complete and visible. The first packet acquires at agent scope at least: its kernarg
//            block may have been used before, and a scalar cache may hold the old bytes.
//
// Thread safety: pure. Cost: linear in packets; for declared ones, in pairs of ranges since the last barrier bit.
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

// Who looks at what a packet writes before the batch's completion is awaited.
enum class Observer : uint8_t {
  none,    // nobody but later packets of the batch
  agent,   // another queue of the same agent
  system,  // the host or another device
};

// What the plan needs to know of one packet.
struct Declarations {
  bool is_finished = false;  // a finished packet of the caller's: barrier bit and scopes are those of its header
  bool declared = false;  // its accesses are accesses[first_access, first_access + access_count)
  bool without_barrier = false;
  bool explicit_fences = false;  // acquire and release are the caller's
  aql::FenceScope acquire = aql::FenceScope::agent;
  aql::FenceScope release = aql::FenceScope::agent;
  Observer observer = Observer::none;
  uint32_t first_access = 0;
  uint32_t access_count = 0;

  // One access more, or only that all are declared where `bytes` is 0. It goes to the end of `accesses`, with those that do not stand there.
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
  minimal,  // the fewest fences that what packets declare allows (fence_planner.hpp); declares reads apart from writes
  system_everywhere,  // system/system and a barrier bit on every packet: what most runtimes do; for comparison
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
  hand_over,  // from one packet to another (PacketPlan::acquired, released)
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

// Fills plans[i] for packets[i]; both have the same length. Never fails, never allocates. Not for FencePolicy::minimal.
void plan_fences(std::span<const Declarations> packets, std::span<const AccessRange> accesses,
                 FencePolicy policy, std::span<PacketPlan> plans) noexcept;

// Why a packet has its barrier bit and its scopes, in words: "it touches what packet 3 touches, and one of them writes".
struct PlanReasons {
  std::string barrier, acquire, release;
};
// `packet` is its number in the batch: what is said of that packet says "it".
PlanReasons reasons_of(const PacketPlan& plan, size_t packet);
// In one line: "barrier bit: ...; acquire agent: ...; release agent: ...".
std::string explain(const PacketPlan& plan, size_t packet);
// A line for each: "packet 3: barrier bit: ...".
std::string explain(std::span<const PacketPlan> plans);

}  // namespace uptempo
