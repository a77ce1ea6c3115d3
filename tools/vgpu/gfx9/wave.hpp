// One wavefront's architectural state, laid out for the interpreter.
//
// Not thread-safe: a wave belongs to the worker that runs its workgroup.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/memory.hpp"
#include "gfx9/decode/operands.hpp"

namespace uptempo::vgpu::gfx9 {

inline constexpr unsigned kLanes = 64;

struct Op;
class Workgroup;
class Executor;

// A vector register: one 32-bit value per lane. Cache-line aligned, so that a register is four
// AVX-512 loads.
struct alignas(64) Vgpr {
  uint32_t lane[kLanes];
};

// Why a wave's time slice ended.
enum class WaveStop : uint8_t {
  running,  // not stopped
  quantum,  // its slice is over
  barrier,  // s_barrier
  ended,    // s_endpgm
  yield,    // s_sleep and the like: other waves run first
  faulted,  // see Executor::fault
};

struct alignas(64) Wave {
  // Scalar file, indexed by operand code (operands.hpp). Entries 128..255 hold constant32(), so
  // that a scalar source is one indexed load. EXEC and VCC are part of this file.
  alignas(64) uint32_t scalar[256];

  Vgpr* vgpr = nullptr;  // [0..255] architectural, [256..511] accumulation
  GpuAddress pc = 0;     // next instruction; valid only while the wave does not run
  bool scc = false;
  WaveStop stop = WaveStop::running;
  uint32_t mode = 0;  // MODE hardware register: round, denorm, dx10_clamp, ieee, fp16_ovfl
  // TRAPSTS hardware register: holds what the program wrote. No instruction raises its exception
  // bits.
  uint32_t trapsts = 0;

  std::byte* lds = nullptr;  // this workgroup's group segment
  uint32_t lds_bytes = 0;
  GpuAddress scratch_base = 0;  // this wave's private segment (wave64 swizzled), 0 when it has none
  uint64_t scratch_bytes = UINT64_MAX;  // of it, for all lanes; unlimited when it has none
  uint32_t index_in_workgroup = 0;
  uint64_t sync_phase = 0;  // phase of the global barrier at which it waits (WaveSync); 0: none
  Workgroup* workgroup = nullptr;
  Executor* executor = nullptr;  // the worker that runs it now: memory, counters, fault

  uint64_t exec() const noexcept { return pair(kExecLo); }
  void set_exec(uint64_t value) noexcept { set_pair(kExecLo, value); }
  uint64_t vcc() const noexcept { return pair(kVccLo); }
  void set_vcc(uint64_t value) noexcept { set_pair(kVccLo, value); }

  uint64_t pair(unsigned code) const noexcept {
    return scalar[code] | static_cast<uint64_t>(scalar[code + 1]) << 32;
  }
  void set_pair(unsigned code, uint64_t value) noexcept {
    scalar[code] = static_cast<uint32_t>(value);
    scalar[code + 1] = static_cast<uint32_t>(value >> 32);
  }
};

}  // namespace uptempo::vgpu::gfx9
