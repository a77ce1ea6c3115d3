// PacketPlan: the barrier bit and fence scopes of one packet, each with its reason. Output of every
// plan of fences.
//
// Thread safety: plain values and pure functions.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "aql/packet.hpp"

namespace uptempo {

// How a batch or a recording plans its fences.
enum class FencePolicy : uint8_t {
  planned,  // only those that the declarations need (fence_plan.hpp)
  // For comparison: system/system and a barrier bit on every packet, as in most runtimes.
  system_everywhere,
};

enum class BarrierReason : uint8_t {
  first_of_batch,
  undeclared,
  after_undeclared,
  conflict,
  dependency,
  independent,
  caller_without,
  caller_with,
  completion,
  policy,
};
enum class ScopeReason : uint8_t {
  host_wrote,
  host_reads,
  observed,
  caller,
  completion,
  stale_kernargs,
  hand_over,  // between two packets (PacketPlan::acquired, released)
  nothing_new,
  no_reader,
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
  ScopeReason acquire = ScopeReason::nothing_new;
  ScopeReason release = ScopeReason::no_reader;
  PacketPair conflict{};              // for BarrierReason::conflict and dependency
  PacketPair acquired{}, released{};  // writer and reader; for ScopeReason::hand_over
};

// Cost of a plan, most expensive item first.
struct FenceCost {
  uint64_t system_fences = 0, barrier_bits = 0, agent_fences = 0;
  auto operator<=>(const FenceCost&) const = default;
};
FenceCost cost_of(std::span<const PacketPlan> plans) noexcept;

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
