// Packets as text: decodes any 64 bytes into typed packets, prints them in one line, and names what
// a packet processor would reject. Used by error messages, the flight recorder and aql_dump.
//
// Input: every function accepts any 64 bytes. If lint() finds nothing, filling the decoded packet
// yields the same 64 bytes.
// Thread safety: pure functions.
// Cost: allocates (no other part of `aql` does, except SharedRing's constructor). Not for the
// submit path.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/aql/writer.hpp>

namespace uptempo::aql {

// Packet kinds that this library decodes but does not write.

// For agents that run host functions. GPU queues refuse it.
struct AgentDispatch {
  HeaderFlags flags{};
  uint16_t function = 0;
  uint64_t return_address = 0;
  std::array<uint64_t, 4> arguments{};
  hsa_signal_t completion_signal{0};
};

// AMD vendor format 1: runs an indirect buffer of PM4 commands. ROCr writes it when it freezes an
// executable.
struct Pm4Ib {
  HeaderFlags flags{};
  std::array<uint32_t, 4> jump{};
  hsa_signal_t completion_signal{0};
};

struct UnknownVendor {
  HeaderFlags flags{};
  uint8_t format = 0;
};

struct Invalid {};  // unpublished, or already taken by the packet processor

struct Undefined {  // a type that HSA does not define
  uint8_t type = 0;
};

using AnyPacket = std::variant<KernelDispatch, BarrierAnd, BarrierOr, BarrierValue, AgentDispatch,
                               Pm4Ib, UnknownVendor, Invalid, Undefined>;

AnyPacket decode(const Packet64& packet) noexcept;

// Returns "kernel_dispatch", "barrier_and", "barrier_or", "barrier_value", "pm4_ib", "vendor",
// "agent_dispatch", "invalid" or "undefined".
std::string_view kind_name(const Packet64& packet) noexcept;
// Returns "none", "agent", "system" or "undefined".
std::string_view scope_name(FenceScope scope) noexcept;

// Prints one line: kind, barrier bit, scopes, then the fields of the kind. Omits null handles.
//   kernel_dispatch barrier acquire=system release=agent grid=[16384,1,1] workgroup=[256,1,1] ...
std::string format(const Packet64& packet);

// Prints the sixteen 32-bit words, eight per line, in the form that aql_dump reads.
std::string format_words(const Packet64& packet);

// One defect of a packet.
struct Finding {
  std::string field;  // name in hsa.h: "setup", "workgroup_size_y", "reserved2"
  std::string text;   // what was found and what the rule requires
  friend bool operator==(const Finding&, const Finding&) = default;
};

// Checks the rules of the HSA Platform System Architecture 1.2, section 2.9, of hsa.h's field
// comments, and of AMD's ABI (alignment of kernel descriptors, kernargs and signals). An INVALID
// packet has no findings. Sizes that depend on the agent or the kernel are not checked.
std::vector<Finding> lint(const Packet64& packet);

// Describes a refused publication in one sentence: what was requested, what was full or failed, and
// what the caller can do. Empty for an ok result.
std::string describe(const PublishResult& result);

}  // namespace uptempo::aql
