// Packets as text: decode any 64 bytes into typed packets, print them in one line, and name what a packet processor would object to.
// For error messages, the flight recorder and aql_dump.
//
// Total: every function accepts any 64 bytes. Where lint() finds nothing, a typed packet fills back into the same 64 bytes.
// Thread safety: pure functions. Cost: the only part of `aql` that allocates; not for the submit path.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "aql/packet.hpp"
#include "aql/writer.hpp"

namespace uptempo::aql {

// Kinds that are decoded, but that this library does not write.

struct AgentDispatch {  // for agents that run host functions; GPU queues refuse it
  HeaderFlags flags{};
  uint16_t function = 0;
  uint64_t return_address = 0;
  std::array<uint64_t, 4> arguments{};
  hsa_signal_t completion_signal{0};
};

struct
    Pm4Ib {  // AMD vendor format 1: runs an indirect buffer of PM4 commands; ROCr writes it when it freezes an executable
  HeaderFlags flags{};
  std::array<uint32_t, 4> jump{};
  hsa_signal_t completion_signal{0};
};

struct UnknownVendor {
  HeaderFlags flags{};
  uint8_t format = 0;
};

struct Invalid {};  // not published, or already taken

struct Undefined {  // a type that HSA does not define
  uint8_t type = 0;
};

using AnyPacket = std::variant<KernelDispatch, BarrierAnd, BarrierOr, BarrierValue, AgentDispatch, Pm4Ib,
                               UnknownVendor, Invalid, Undefined>;

AnyPacket decode(const Packet64& packet) noexcept;

// "kernel_dispatch", "barrier_and", "barrier_or", "barrier_value", "pm4_ib", "vendor", "agent_dispatch", "invalid", "undefined".
std::string_view kind_name(const Packet64& packet) noexcept;
// "none", "agent", "system", "undefined".
std::string_view scope_name(FenceScope scope) noexcept;

// One line: kind, barrier bit, scopes, then the fields of the kind; zero handles are left out.
//   kernel_dispatch barrier acquire=system release=agent grid=[16384,1,1] workgroup=[256,1,1] kernel_object=0x7f0000001000 kernarg=0x7f..
std::string format(const Packet64& packet);

// The sixteen 32-bit words, eight a line, little-endian order, as aql_dump reads them back.
std::string format_words(const Packet64& packet);

// One thing wrong with a packet.
struct Finding {
  std::string field;  // as hsa.h calls it: "setup", "workgroup_size_y", "reserved2"
  std::string text;   // what was found, and what the rule asks for
  friend bool operator==(const Finding&, const Finding&) = default;
};

// Rules of the HSA Platform System Architecture 1.2, section 2.9, of hsa.h's field comments, and of AMD's ABI (alignment of kernel
// descriptors, kernargs and signals). An INVALID packet has no findings: it is no packet yet. What depends on the
// agent or the kernel (sizes it allows) is not looked at.
std::vector<Finding> lint(const Packet64& packet);

// A refused publication in one sentence: what was asked, what was full or failed, and what can be done. Empty for an ok one.
std::string describe(const PublishResult& result);

}  // namespace uptempo::aql
