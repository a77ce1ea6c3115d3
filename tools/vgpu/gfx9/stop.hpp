// The ways in which a handler ends its wave's slice. Each returns nullptr, for `return stop_...(op, wave, ...)`.
#pragma once

#include <string_view>

#include "device/fault.hpp"
#include "gfx9/op.hpp"

namespace uptempo::vgpu::gfx9 {

// Where the instruction lies in GPU memory.
GpuAddress address_of(const Op& op) noexcept;

// The wave stops with `why` and goes on at the instruction behind `op`.
const Op* stop_after(const Op& op, Wave& wave, WaveStop why) noexcept;

// The wave stops with `why` and executes `op` again when it goes on.
const Op* stop_at(const Op& op, Wave& wave, WaveStop why) noexcept;

// A GPU memory fault at `address`: not mapped for the access, or mapped without the permission.
const Op* stop_memory_fault(const Op& op, Wave& wave, GpuAddress address, Access access) noexcept;

// A queue error. `reason` ends the sentence that names the instruction, its bytes, the kernel, offset, workgroup and wave.
const Op* stop_error(const Op& op, Wave& wave, QueueError error, std::string_view reason) noexcept;

// The entry for code at `target`, which need not be on the page of `op`; stops the wave when `target` is not 4-byte aligned.
const Op* jump(const Op& op, Wave& wave, GpuAddress target) noexcept;

}  // namespace uptempo::vgpu::gfx9
