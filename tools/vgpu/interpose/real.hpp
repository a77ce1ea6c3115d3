// The next definition of a libc function, which the program would call without this library.
//
// Thread safety: any thread, from the first instruction of the process, also before the
// constructors of this library and of a sanitizer's runtime. That runtime intercepts even the
// guards of function-local statics, so everything here is constant-initialised.
#pragma once

#include <atomic>

namespace uptempo::vgpu::interpose {

// Returns dlsym(RTLD_NEXT, name). Ends the process with a message if libc has no such function.
void* next_definition(const char* name) noexcept;

// Example:
//   static constinit Next<decltype(&::open)> next{"open"};
//   return next(path, flags, mode);
template <typename Function>
class Next {
 public:
  constexpr explicit Next(const char* name) noexcept : name_(name) {}

  template <typename... Arguments>
  // not noexcept: cancellation unwinds a thread through it
  auto operator()(Arguments... arguments) {
    // relaxed: every thread finds the same address, and the code there needs no publication.
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
