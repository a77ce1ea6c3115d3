#include "cp/packet/sdma_packet.hpp"

#include <array>
#include <cstdio>
#include <string_view>

namespace uptempo::vgpu::sdma {
namespace {

enum Opcode : uint32_t {
  kNop = 0,
  kCopy = 1,
  kWrite = 2,
  kFence = 5,
  kTrap = 6,
  kPollRegMem = 8,
  kAtomic = 10,
  kConstFill = 11,
  kTimestamp = 13,
};

constexpr uint32_t kCopyLinear = 0, kCopyLinearRect = 4;
constexpr uint32_t kWriteLinear = 0;
constexpr uint32_t kTimestampGetGlobal = 2;
constexpr uint32_t kAtomicAdd64 = 47;

// Names of unsupported opcodes, for messages (vega10_sdma_pkt_open.h).
constexpr std::array<std::string_view, 18> kOpcodeNames{
    "NOP",     "COPY",      "WRITE",       "reserved 3", "INDIRECT",  "FENCE",
    "TRAP",    "SEMAPHORE", "POLL_REGMEM", "COND_EXE",   "ATOMIC",    "CONST_FILL",
    "PTE_PDE", "TIMESTAMP", "SRBM_WRITE",  "PRE_EXE",    "GPUVM_INV", "GCR"};

constexpr uint32_t bits(uint32_t word, unsigned first, unsigned count) noexcept {
  return word >> first & ((count == 32) ? ~0u : (1u << count) - 1u);
}

constexpr GpuAddress address(uint32_t low, uint32_t high) noexcept {
  return low | static_cast<GpuAddress>(high) << 32;
}

Decoded unsupported(uint32_t header, std::string_view what) {
  const uint32_t opcode = bits(header, 0, 8);
  char text[160];
  const std::string_view name = opcode < kOpcodeNames.size() ? kOpcodeNames[opcode] : "unknown";
  std::snprintf(text, sizeof text, "SDMA %.*s (opcode %u, sub-opcode %u, header 0x%08x): %.*s",
                static_cast<int>(name.size()), name.data(), opcode, bits(header, 8, 8), header,
                static_cast<int>(what.size()), what.data());
  return {Unsupported{text}, 1, "unsupported"};
}

CopyRect::Side side(std::span<const uint32_t> words, unsigned log2_element) {
  const uint64_t pitch = (uint64_t{bits(words[3], 13, 19)} + 1) << log2_element;
  const uint64_t slice = (uint64_t{bits(words[4], 0, 28)} + 1) << log2_element;
  const uint64_t x = uint64_t{bits(words[2], 0, 14)} << log2_element;
  const uint64_t y = bits(words[2], 16, 14);
  const uint64_t z = bits(words[3], 0, 11);
  return {address(words[0], words[1]) + x + y * pitch + z * slice, pitch, slice};
}

Decoded decode_copy(std::span<const uint32_t> words) {
  const uint32_t header = words[0];
  switch (bits(header, 8, 8)) {
    case kCopyLinear: {
      if (words.size() < 7) break;
      // gfx9 has 22 bits of count and newer firmware 30. The upper bits are 0 where they are not
      // used.
      const uint64_t count = uint64_t{bits(words[1], 0, 30)} + 1;
      return {CopyLinear{address(words[3], words[4]), address(words[5], words[6]), count}, 7,
              "copy_linear"};
    }
    case kCopyLinearRect: {
      if (words.size() < 13) break;
      const unsigned log2_element = bits(header, 29, 3);
      if (log2_element > 4) return unsupported(header, "elements of 1, 2, 4, 8 or 16 bytes are");
      CopyRect rect{};
      rect.source = side(words.subspan(1, 5), log2_element);
      rect.destination = side(words.subspan(6, 5), log2_element);
      rect.row_bytes = (uint64_t{bits(words[11], 0, 14)} + 1) << log2_element;
      rect.rows = bits(words[11], 16, 14) + 1;
      rect.slices = bits(words[12], 0, 11) + 1;
      return {rect, 13, "copy_rect"};
    }
    default:
      return unsupported(header, "only linear copies and linear sub-window copies are supported");
  }
  return unsupported(header, "the packet is cut off");
}

uint32_t required_dwords(uint32_t opcode) {
  switch (opcode) {
    case kWrite:
      return kWriteLinearHeaderDwords;
    case kFence:
      return 4;
    case kTrap:
      return 2;
    case kPollRegMem:
      return 6;
    case kAtomic:
      return 8;
    case kConstFill:
      return 5;
    case kTimestamp:
      return 3;
    default:
      return 1;
  }
}

Decoded decode_poll(std::span<const uint32_t> words) {
  const uint32_t header = words[0];
  const bool memory = bits(header, 31, 1) != 0;
  const uint32_t function = bits(header, 28, 3);
  // Two encodings: the hdp_flush bit, and ROCr's poll that tests nothing and has bit 31 of the
  // third dword set.
  if (bits(header, 26, 1) != 0 || (!memory && function == 0)) return {HdpFlush{}, 6, "hdp_flush"};
  if (!memory) return unsupported(header, "polling a register is not supported; polling memory is");
  if (function > 6) return unsupported(header, "comparison 7 does not exist");
  return {PollMemory{address(words[1], words[2]), words[3], words[4], function}, 6, "poll_regmem"};
}

Decoded decode_fill(std::span<const uint32_t> words) {
  const uint32_t unit = 1u << bits(words[0], 30, 2);
  if (unit > 4) return unsupported(words[0], "fill sizes of 1, 2 or 4 bytes are supported");
  // The count is in bytes less one, or less one unit as ROCr writes it. Rounding down to units and
  // adding one handles both.
  const uint64_t bytes = (uint64_t{bits(words[4], 0, 30)} / unit + 1) * unit;
  return {ConstFill{address(words[1], words[2]), words[3], unit, bytes}, 5, "const_fill"};
}

Decoded decode_write(std::span<const uint32_t> words) {
  const uint32_t header = words[0];
  if (bits(header, 8, 8) != kWriteLinear)
    return unsupported(header, "only linear writes are supported");
  // SDMA_PKT_WRITE_UNTILED: gfx9 counts dwords less one (sdma_v4_0_vm_write_pte).
  const uint32_t count = bits(words[3], 0, 20) + 1;
  return {WriteLinear{address(words[1], words[2]), count}, kWriteLinearHeaderDwords + count,
          "write_linear"};
}

}  // namespace

Decoded decode(std::span<const uint32_t> words) {
  const uint32_t header = words[0];
  const uint32_t opcode = bits(header, 0, 8);
  if (words.size() < required_dwords(opcode)) return unsupported(header, "the packet is cut off");
  switch (opcode) {
    case kNop:
      return {Nop{}, 1 + bits(header, 16, 14), "nop"};
    case kCopy:
      return decode_copy(words);
    case kWrite:
      return decode_write(words);
    case kFence:
      return {Fence{address(words[1], words[2]), words[3]}, 4, "fence"};
    case kTrap:
      return {Trap{bits(words[1], 0, 28)}, 2, "trap"};
    case kPollRegMem:
      return decode_poll(words);
    case kAtomic:
      if (const uint32_t operation = bits(header, 25, 7); operation != kAtomicAdd64)
        return unsupported(header, "atomic operation " + std::to_string(operation) +
                                       " is not supported; 47 (add, 64 bits) is");
      return {AtomicAdd64{address(words[1], words[2]), address(words[3], words[4])}, 8, "atomic"};
    case kConstFill:
      return decode_fill(words);
    case kTimestamp:
      if (bits(header, 8, 8) != kTimestampGetGlobal)
        return unsupported(header, "only GET_GLOBAL (sub-opcode 2) is supported");
      return {Timestamp{address(words[1], words[2])}, 3, "timestamp"};
    default:
      return unsupported(header, "not supported");
  }
}

bool poll_holds(const PollMemory& poll, uint32_t word) noexcept {
  const uint32_t value = word & poll.mask;
  switch (poll.function) {
    case 1:
      return value < poll.reference;
    case 2:
      return value <= poll.reference;
    case 3:
      return value == poll.reference;
    case 4:
      return value != poll.reference;
    case 5:
      return value >= poll.reference;
    case 6:
      return value > poll.reference;
    default:
      return true;
  }
}

}  // namespace uptempo::vgpu::sdma
