// AQL packets as the packet processor reads them: fields, and the rules for well-formed packets.
// Pure functions.
//
// Sources: HSA System Architecture Specification 1.2, section 2.9; the field documentation in
// hsa.h. AMD's packet formats: hsa_ext_amd.h and ROCr (amd_aql_queue.cpp, ExecutePM4).
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "device/description.hpp"
#include "device/fault.hpp"

namespace uptempo::vgpu {

inline constexpr size_t kAqlPacketBytes = 64;

// A packet's 16-bit header.
struct AqlHeader {
  uint16_t bits = HSA_PACKET_TYPE_INVALID;

  uint32_t type() const noexcept { return bits & 0xffu; }
  bool barrier() const noexcept { return (bits >> HSA_PACKET_HEADER_BARRIER & 1u) != 0; }
  uint32_t acquire() const noexcept { return bits >> HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE & 3u; }
  uint32_t release() const noexcept { return bits >> HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE & 3u; }
};

// AMD's packet that executes a list of PM4 commands. ROCr invalidates code caches with it.
struct Pm4IbPacket {
  uint16_t header;
  uint16_t vendor_format;
  uint32_t jump[4];  // a PM4 INDIRECT_BUFFER command
  uint32_t dwords_remaining;
  uint32_t reserved[8];
  hsa_signal_t completion_signal;
};
static_assert(sizeof(Pm4IbPacket) == kAqlPacketBytes);
static_assert(sizeof(hsa_kernel_dispatch_packet_t) == kAqlPacketBytes);
static_assert(sizeof(hsa_barrier_and_packet_t) == kAqlPacketBytes);
static_assert(sizeof(hsa_amd_barrier_value_packet_t) == kAqlPacketBytes);

inline constexpr uint32_t kVendorFormatPm4Ib = 1;
inline constexpr uint32_t kVendorFormatBarrierValue = HSA_AMD_PACKET_TYPE_BARRIER_VALUE;

// Returns the packet's name in messages and traces: "kernel_dispatch", "barrier_and", "barrier_or",
// "agent_dispatch", "vendor".
std::string_view packet_type_name(uint32_t type) noexcept;
// "packet 3 (barrier_and)"
std::string packet_name(uint64_t index, uint32_t type);
std::string_view fence_scope_name(uint32_t scope) noexcept;

// The reason why a packet is refused.
struct PacketError {
  QueueError error = QueueError::none;
  std::string reason;
};

// Checks reserved header bits and undefined fence scopes.
std::optional<PacketError> check_header(AqlHeader header);

// The packet as firmware reads it: two bits of setup, and 1 for the sizes of undeclared dimensions.
hsa_kernel_dispatch_packet_t as_firmware_reads(hsa_kernel_dispatch_packet_t packet);

// Names a field of a 64-byte packet that hsa.h wants to be 0 (1 for an undeclared size), that is
// not, and that firmware ignores; empty if there is none. HIP 5.7 and 6.4 leave such fields
// uninitialised. The eight bytes before the completion signal are not among them, because AMD's
// runtimes store a profiler's correlation id there.
std::string_view ignored_field(const std::byte* packet);

// Checks everything about a dispatch, as firmware reads it, that does not depend on its kernel.
std::optional<PacketError> check_dispatch(const hsa_kernel_dispatch_packet_t& packet,
                                          const DeviceDescription& device);

// Checks the condition.
std::optional<PacketError> check_barrier_value(const hsa_amd_barrier_value_packet_t& packet);

// Applies a hsa_signal_condition_t to a dependency's value.
bool condition_holds(hsa_signal_condition32_t condition, int64_t value, int64_t reference) noexcept;

}  // namespace uptempo::vgpu
