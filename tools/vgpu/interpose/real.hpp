// The next definition of a libc function: what the program would have called without this library.
//
// Thread safety: any thread, from the first instruction of the process on (also before this library's constructors).
#pragma once

namespace uptempo::vgpu::interpose {

// dlsym(RTLD_NEXT, name). Ends the process with a sentence when libc has no such function.
void* next_definition(const char* name) noexcept;

// const auto open_next = next<decltype(&::open)>("open");  Callers keep the result in a function-local static.
template <typename Function>
Function next(const char* name) noexcept {
  return reinterpret_cast<Function>(next_definition(name));
}

}  // namespace uptempo::vgpu::interpose

// Marks a definition that replaces libc's.
#define UPTEMPO_VGPU_EXPORT extern "C" __attribute__((visibility("default")))
