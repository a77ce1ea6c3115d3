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
std::string_view fence_scope_name(uint32_t scope) noexcept;

// The reason why a packet is refused.
struct PacketError {
  QueueError error = QueueError::none;
  std::string reason;
};

// Checks reserved header bits and undefined fence scopes.
std::optional<PacketError> check_header(AqlHeader header);

// Checks everything about a dispatch that does not depend on its kernel.
std::optional<PacketError> check_dispatch(const hsa_kernel_dispatch_packet_t& packet,
                                          const DeviceDescription& device);

// Checks the reserved fields of barrier packets. Barrier-AND and barrier-OR have the same layout.
std::optional<PacketError> check_barrier(const hsa_barrier_and_packet_t& packet);
std::optional<PacketError> check_barrier_value(const hsa_amd_barrier_value_packet_t& packet);

// Applies a hsa_signal_condition_t to a dependency's value.
bool condition_holds(hsa_signal_condition32_t condition, int64_t value, int64_t reference) noexcept;

}  // namespace uptempo::vgpu
