#include "cp/packet/aql_packet.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "device/caches/caching.hpp"

namespace uptempo::vgpu {
namespace {

// The limit of every agent that ROCr describes (HSA_AGENT_INFO_WORKGROUP_MAX_SIZE).
constexpr uint64_t kMaxWorkgroupSize = 1024;
// Hardware limits each dimension of a grid, not the work-items of all dimensions together, although
// ROCr reports 2^32 - 1 for HSA_AGENT_INFO_GRID_MAX_SIZE. RADV offers 2^32 - 1 x 65,535 x 65,535
// workgroups of 1,024 (maxComputeWorkGroupCount in radv_physical_device.c), and HIP checks each
// dimension alone (ihipLaunchKernel_validate's callers in hip_module.cpp). The scheduler counts
// workgroups in 64 bits. A grid beyond this limit would run for longer than a century.
constexpr unsigned __int128 kMaxWorkgroups = uint64_t{1} << 62;

constexpr uint16_t kReservedHeaderBits = 0xe000;
constexpr uint16_t kDimensionBits = 3;

PacketError refuse(QueueError error, std::string reason) { return {error, std::move(reason)}; }

// Called for messages only: a well-formed packet costs comparisons and no text.
std::string text(const std::array<uint32_t, 3>& sizes) {
  std::string result = "(";
  for (const uint32_t size : sizes) result.append(std::to_string(size)).push_back(',');
  result.back() = ')';
  return result;
}

}  // namespace

std::string_view packet_type_name(uint32_t type) noexcept {
  switch (type) {
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
      return "vendor";
    case HSA_PACKET_TYPE_INVALID:
      return "invalid";
    case HSA_PACKET_TYPE_KERNEL_DISPATCH:
      return "kernel_dispatch";
    case HSA_PACKET_TYPE_BARRIER_AND:
      return "barrier_and";
    case HSA_PACKET_TYPE_AGENT_DISPATCH:
      return "agent_dispatch";
    case HSA_PACKET_TYPE_BARRIER_OR:
      return "barrier_or";
    default:
      return "unknown";
  }
}

std::string packet_name(uint64_t index, uint32_t type) {
  return "packet " + std::to_string(index) + " (" + std::string(packet_type_name(type)) + ")";
}

std::string_view fence_scope_name(uint32_t scope) noexcept {
  return scope > HSA_FENCE_SCOPE_SYSTEM ? "reserved" : scope_name(static_cast<FenceScope>(scope));
}

std::optional<PacketError> check_header(AqlHeader header) {
  if ((header.bits & kReservedHeaderBits) != 0)
    return refuse(QueueError::packet_format, "header bits 13..15 are reserved and must be 0");
  if (header.acquire() > HSA_FENCE_SCOPE_SYSTEM || header.release() > HSA_FENCE_SCOPE_SYSTEM)
    return refuse(QueueError::packet_format, "fence scope 3 does not exist");
  return std::nullopt;
}

hsa_kernel_dispatch_packet_t as_firmware_reads(hsa_kernel_dispatch_packet_t packet) {
  packet.setup &= kDimensionBits;
  if (packet.setup < 3) packet.grid_size_z = packet.workgroup_size_z = 1;
  if (packet.setup < 2) packet.grid_size_y = packet.workgroup_size_y = 1;
  return packet;
}

std::string_view ignored_field(const std::byte* packet) {
  const auto is_set = [&](size_t offset, size_t bytes) {
    return std::any_of(packet + offset, packet + offset + bytes,
                       [](std::byte byte) { return byte != std::byte{0}; });
  };
  AqlHeader header;
  std::memcpy(&header.bits, packet, sizeof header.bits);
  switch (header.type()) {
    case HSA_PACKET_TYPE_KERNEL_DISPATCH: {
      hsa_kernel_dispatch_packet_t dispatch;
      std::memcpy(&dispatch, packet, sizeof dispatch);
      const auto read = as_firmware_reads(dispatch);
      if (dispatch.setup != read.setup) return "setup bits 2..15";
      if (dispatch.grid_size_y != read.grid_size_y ||
          dispatch.workgroup_size_y != read.workgroup_size_y)
        return "the sizes of y, which the dispatch does not declare";
      if (dispatch.grid_size_z != read.grid_size_z ||
          dispatch.workgroup_size_z != read.workgroup_size_z)
        return "the sizes of z, which the dispatch does not declare";
      if (dispatch.reserved0 != 0) return "reserved0";
      break;
    }
    case HSA_PACKET_TYPE_BARRIER_AND:
    case HSA_PACKET_TYPE_BARRIER_OR:
      if (is_set(offsetof(hsa_barrier_and_packet_t, reserved0), sizeof(uint16_t)))
        return "reserved0";
      if (is_set(offsetof(hsa_barrier_and_packet_t, reserved1), sizeof(uint32_t)))
        return "reserved1";
      break;
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC: {
      hsa_amd_barrier_value_packet_t barrier;
      std::memcpy(&barrier, packet, sizeof barrier);
      if (barrier.header.AmdFormat != HSA_AMD_PACKET_TYPE_BARRIER_VALUE) break;
      if (barrier.header.reserved != 0) return "the header's reserved byte";
      if (barrier.reserved0 != 0) return "reserved0";
      if (barrier.reserved1 != 0) return "reserved1";
      if (barrier.reserved2 != 0) return "reserved2";
      break;
    }
    default:
      break;
  }
  return {};
}

std::optional<PacketError> check_dispatch(const hsa_kernel_dispatch_packet_t& packet,
                                          const DeviceDescription& device) {
  if (packet.setup == 0)
    return refuse(QueueError::invalid_dimensions, "0 dimensions; 1, 2 or 3 are allowed");
  const std::array<uint32_t, 3> grid{packet.grid_size_x, packet.grid_size_y, packet.grid_size_z};
  const std::array<uint32_t, 3> group{packet.workgroup_size_x, packet.workgroup_size_y,
                                      packet.workgroup_size_z};
  for (unsigned axis = 0; axis < 3; ++axis) {
    if (grid[axis] == 0)
      return refuse(QueueError::invalid_dimensions, "grid " + text(grid) + " is empty");
    if (group[axis] == 0)
      return refuse(QueueError::invalid_dimensions, "workgroup " + text(group) + " is empty");
  }
  unsigned __int128 workgroups = 1;
  for (unsigned axis = 0; axis < 3; ++axis)
    workgroups *= grid[axis] / group[axis] + (grid[axis] % group[axis] != 0);
  if (workgroups > kMaxWorkgroups)
    return refuse(QueueError::invalid_dimensions,
                  "grid " + text(grid) + " has more than 2^62 workgroups of " + text(group) +
                      "; the virtual GPU cannot count them");
  const uint64_t work_items = uint64_t{group[0]} * group[1] * group[2];
  if (work_items > kMaxWorkgroupSize)
    return refuse(QueueError::workgroup_too_large,
                  "workgroup " + text(group) + " has " + std::to_string(work_items) +
                      " work-items; at most " + std::to_string(kMaxWorkgroupSize) + " are allowed");
  if (packet.group_segment_size > device.lds_bytes)
    return refuse(QueueError::group_memory,
                  "group segment of " + std::to_string(packet.group_segment_size) + " bytes; " +
                      std::string(device.target) + " has " + std::to_string(device.lds_bytes));
  if (packet.kernel_object == 0)
    return refuse(QueueError::invalid_code_object, "the kernel object is null");
  return std::nullopt;
}

std::optional<PacketError> check_barrier_value(const hsa_amd_barrier_value_packet_t& packet) {
  if (packet.cond > HSA_SIGNAL_CONDITION_GTE)
    return refuse(QueueError::invalid_vendor_packet,
                  "condition " + std::to_string(packet.cond) +
                      " does not exist; EQ, NE, LT and GTE (0..3) do");
  return std::nullopt;
}

bool condition_holds(hsa_signal_condition32_t condition, int64_t value,
                     int64_t reference) noexcept {
  switch (condition) {
    case HSA_SIGNAL_CONDITION_EQ:
      return value == reference;
    case HSA_SIGNAL_CONDITION_NE:
      return value != reference;
    case HSA_SIGNAL_CONDITION_LT:
      return value < reference;
    default:
      return value >= reference;
  }
}

}  // namespace uptempo::vgpu
