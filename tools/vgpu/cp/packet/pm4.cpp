#include "cp/packet/pm4.hpp"

#include <cstdio>
#include <cstring>

namespace uptempo::vgpu {
namespace {

// Opcodes of type-3 packets (the kernel's soc15d.h).
constexpr uint32_t kNop = 0x10, kIndirectBuffer = 0x3f, kAcquireMem = 0x58;
// COHER_CNTL bits of ACQUIRE_MEM on gfx9: TC_WB_ACTION_ENA, TCL1_ACTION_ENA, TC_ACTION_ENA,
// SH_KCACHE_ACTION_ENA, SH_ICACHE_ACTION_ENA. Code and constants share the virtual GPU's code
// cache.
constexpr uint32_t kWriteBackL2 = 1u << 18, kInvalidateVectorL1 = 1u << 22,
                   kInvalidateL2 = 1u << 23, kInvalidateScalar = 1u << 27,
                   kInvalidateInstructions = 1u << 29;

constexpr uint32_t type_of(uint32_t word) { return word >> 30; }
constexpr uint32_t opcode_of(uint32_t word) { return word >> 8 & 0xff; }
// A NOP with the largest count is one dword, the header alone. The kernel fills rings with it
// (gfx_v9_0.c, `nop`).
constexpr uint32_t dwords_of(uint32_t word) {
  const uint32_t count = word >> 16 & 0x3fff;
  return opcode_of(word) == kNop && count == 0x3fff ? 1 : count + 2;
}

const char* opcode_name(uint32_t opcode) {
  switch (opcode) {
    case 0x15:
      return "DISPATCH_DIRECT";
    case 0x37:
      return "WRITE_DATA";
    case 0x3c:
      return "WAIT_REG_MEM";
    case 0x40:
      return "COPY_DATA";
    case 0x46:
      return "EVENT_WRITE";
    case 0x49:
      return "RELEASE_MEM";
    case 0x50:
      return "DMA_DATA";
    case 0x76:
      return "SET_SH_REG";
    case 0x79:
      return "SET_UCONFIG_REG";
    default:
      return "unknown";
  }
}

PacketError unsupported(uint32_t word) {
  char text[96];
  std::snprintf(text, sizeof text,
                "PM4 %s (opcode 0x%02x, header 0x%08x) is not supported; NOP and ACQUIRE_MEM are",
                opcode_name(opcode_of(word)), opcode_of(word), word);
  return {QueueError::invalid_vendor_packet, text};
}

}  // namespace

Pm4Result execute_pm4(AddressSpace::Reader& memory, const Pm4IbPacket& packet) {
  Pm4Result result;
  if (type_of(packet.jump[0]) != 3 || opcode_of(packet.jump[0]) != kIndirectBuffer) {
    result.error = unsupported(packet.jump[0]);
    return result;
  }
  const GpuAddress buffer =
      (packet.jump[1] & ~3u) | static_cast<GpuAddress>(packet.jump[2] & 0xffff) << 32;
  const uint32_t dwords = packet.jump[3] & 0xfffff;
  const std::byte* words = memory.translate(buffer, size_t{dwords} * 4, Access::read);
  if (words == nullptr) {
    char text[96];
    std::snprintf(text, sizeof text, "the PM4 buffer of %u dwords at 0x%llx is not mapped", dwords,
                  static_cast<unsigned long long>(buffer));
    result.error = PacketError{QueueError::invalid_vendor_packet, text};
    return result;
  }
  for (uint32_t at = 0; at < dwords;) {
    uint32_t word;
    std::memcpy(&word, words + size_t{at} * 4, sizeof word);
    if (type_of(word) == 2) {  // one dword of padding
      ++at;
      continue;
    }
    if (type_of(word) != 3 || (opcode_of(word) != kNop && opcode_of(word) != kAcquireMem)) {
      result.error = unsupported(word);
      return result;
    }
    if (dwords_of(word) > dwords - at) {
      result.error = PacketError{QueueError::invalid_vendor_packet,
                                 "a PM4 command reaches past the end of its buffer"};
      return result;
    }
    if (opcode_of(word) == kAcquireMem) {
      uint32_t control;
      std::memcpy(&control, words + size_t{at + 1} * 4, sizeof control);
      if ((control & (kInvalidateScalar | kInvalidateInstructions)) != 0)
        result.invalidates_code = true;
      if ((control & kInvalidateVectorL1) != 0) result.caches.invalidate_vector_l1 = true;
      if ((control & kInvalidateScalar) != 0) result.caches.invalidate_scalar_l1 = true;
      if ((control & kWriteBackL2) != 0) result.caches.write_back_l2 = true;
      if ((control & kInvalidateL2) != 0) result.caches.invalidate_l2 = true;
    }
    at += dwords_of(word);
  }
  return result;
}

}  // namespace uptempo::vgpu
