// The next definition of a libc function: what the program would have called without this library.
//
// Thread safety: any thread, from the first instruction of the process on (also before this library's constructors, and before those of a sanitizer's
// runtime, which intercepts even the guards of function-local statics: hence constant initialisation).
#pragma once

#include <atomic>

namespace uptempo::vgpu::interpose {

// dlsym(RTLD_NEXT, name). Ends the process with a sentence when libc has no such function.
void* next_definition(const char* name) noexcept;

// static constinit Next<decltype(&::open)> next{"open"};  return next(path, flags, mode);
template <typename Function>
class Next {
 public:
  constexpr explicit Next(const char* name) noexcept : name_(name) {}

  template <typename... Arguments>
  auto operator()(Arguments... arguments) {  // not noexcept: a cancelled thread is unwound through it
    // relaxed: every thread finds the same address, and code needs no publishing.
    Function function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function>(next_definition(name_));
      function_.store(function, std::memory_order_relaxed);
    }
    return function(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function> function_{nullptr};
};

}  // namespace uptempo::vgpu::interpose

// Marks a definition that replaces libc's.
#define UPTEMPO_VGPU_EXPORT extern "C" __attribute__((visibility("default")))
