// Decoder of gfx9's SDMA packets: the engine's dwords as named fields. Pure functions.
//
// Sources: the kernel's vega10_sdma_pkt_open.h, and the packets that ROCr emits (sdma_registers.h,
// amd_blit_sdma.cpp at 5.2.3).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "device/memory.hpp"

namespace uptempo::vgpu::sdma {

// Dwords of the longest packet that the engine supports, without the data of WriteLinear.
inline constexpr size_t kMaxDwords = 16;
inline constexpr uint32_t kWriteLinearHeaderDwords = 4;

struct Nop {};
struct HdpFlush {};

struct CopyLinear {
  GpuAddress source, destination;
  uint64_t bytes;
};

// A box of elements between two pitched buffers. Pitches and offsets are in bytes.
struct CopyRect {
  struct Side {
    GpuAddress base;  // of the first row's first byte, offsets included
    uint64_t pitch_bytes, slice_bytes;
  };
  Side source, destination;
  uint64_t row_bytes;
  uint32_t rows, slices;
};

struct ConstFill {
  GpuAddress destination;
  uint32_t value;
  uint32_t unit_bytes;  // 1, 2 or 4: the number of bytes of `value` that repeat
  uint64_t bytes;
};

// Dwords that follow the packet's first four.
struct WriteLinear {
  GpuAddress destination;
  uint32_t dwords;
};

struct Fence {
  GpuAddress address;
  uint32_t value;
};

struct Trap {
  uint32_t event;
};

struct PollMemory {
  GpuAddress address;
  uint32_t reference, mask;
  uint32_t function;  // 0 always, 1 <, 2 <=, 3 ==, 4 !=, 5 >=, 6 >
};

struct AtomicAdd64 {
  GpuAddress address;
  uint64_t addend;
};

struct Timestamp {
  GpuAddress address;
};

// The words are not a packet that this engine supports. Holds the reason.
struct Unsupported {
  std::string reason;
};

using Packet = std::variant<Nop, HdpFlush, CopyLinear, CopyRect, ConstFill, WriteLinear, Fence,
                            Trap, PollMemory, AtomicAdd64, Timestamp, Unsupported>;

struct Decoded {
  Packet packet;
  uint32_t dwords = 1;
  const char* name = "";  // "copy_linear": the trace's `engine`
};

// Decodes the packet that starts at words[0]. Reads only `words`: a truncated packet is
// Unsupported. The data of WriteLinear need not be part of `words`.
Decoded decode(std::span<const uint32_t> words);

// Applies PollMemory's function to the masked word.
bool poll_holds(const PollMemory& poll, uint32_t word) noexcept;

}  // namespace uptempo::vgpu::sdma
