// Functions that end a wave's slice. Each returns nullptr, for `return stop_...(op, wave, ...)`.
#pragma once

#include <string_view>

#include "device/fault.hpp"
#include "gfx9/op.hpp"

namespace uptempo::vgpu::gfx9 {

// The instruction's address in GPU memory.
GpuAddress address_of(const Op& op) noexcept;

// Stops the wave with `why`. The wave resumes at the instruction after `op`.
const Op* stop_after(const Op& op, Wave& wave, WaveStop why) noexcept;

// Stops the wave with `why`. The wave executes `op` again when it resumes.
const Op* stop_at(const Op& op, Wave& wave, WaveStop why) noexcept;

// Stops the wave with a GPU memory fault at `address`: not mapped, or mapped without the
// permission.
const Op* stop_memory_fault(const Op& op, Wave& wave, GpuAddress address, Access access) noexcept;

// Stops the wave with a queue error. `reason` completes a sentence whose start names the
// instruction, its bytes, the kernel, offset, workgroup and wave.
const Op* stop_error(const Op& op, Wave& wave, QueueError error, std::string_view reason) noexcept;

// Returns the entry for code at `target`, on any page. Stops the wave when `target` is not 4-byte
// aligned.
const Op* jump(const Op& op, Wave& wave, GpuAddress target) noexcept;

}  // namespace uptempo::vgpu::gfx9
