// The functions of HIP that the program would call without this library.
//
// Thread safety: any thread. Takes the dynamic loader's lock.
#pragma once

namespace uptempo::vgpu::hip {

inline constexpr int kNotInitialised = 3;  // hipErrorNotInitialized: the program has not loaded HIP

// Null: HIP is not loaded, or lacks the function. A program that loads HIP with RTLD_LOCAL has it
// outside the global scope.
void* of_hip(const char* name) noexcept;

}  // namespace uptempo::vgpu::hip
