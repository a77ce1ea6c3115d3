// SDMA packets of gfx9, decoded: the engine's dwords as named fields.
//
// Layouts: the kernel's vega10_sdma_pkt_open.h, and what ROCr emits (sdma_registers.h, amd_blit_sdma.cpp at 5.2.3). Pure; no state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "device/memory.hpp"

namespace uptempo::vgpu::sdma {

// The longest packet that the engine knows.
inline constexpr size_t kMaxDwords = 16;

struct Nop {};
struct HdpFlush {};

struct CopyLinear {
  GpuAddress source, destination;
  uint64_t bytes;
};

// A box of elements between two pitched buffers. Pitches and offsets are already in bytes.
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
  uint32_t unit_bytes;  // 1, 2 or 4: how much of `value` repeats
  uint64_t bytes;
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

// The words are no packet that this engine supports; says which.
struct Unsupported {
  std::string reason;
};

using Packet = std::variant<Nop, HdpFlush, CopyLinear, CopyRect, ConstFill, Fence, Trap, PollMemory,
                            AtomicAdd64, Timestamp, Unsupported>;

struct Decoded {
  Packet packet;
  uint32_t dwords = 1;
  const char* name = "";  // "copy_linear": the trace's `engine`
};

// Decodes the packet that starts at words[0]. Reads no more than `words` holds: a packet that is cut off is Unsupported.
Decoded decode(std::span<const uint32_t> words);

// PollMemory's function applied to the masked word.
bool poll_holds(const PollMemory& poll, uint32_t word) noexcept;

}  // namespace uptempo::vgpu::sdma
