// HIP's own functions, for the functions of this library that replace them.
//
// Thread safety: any thread. Cost: a lookup in the dynamic linker's tables; the macros keep the
// result in a static variable.
#pragma once

#include <hip/hip_version.h>

#include <uptempo/hip/api/hip_api.hpp>

namespace uptempo::graphs {

// The next definition of this symbol after this library's, or that of a libamdhip64 that was
// loaded privately (RTLD_LOCAL). Null if HIP does not have the function.
void* original_address(const char* name) noexcept;

// The C library's dlsym(), which this library replaces (lookups.hpp).
void* original_dlsym() noexcept;

// Calls HIP's function `name`. Returns hipErrorNotSupported if this release of HIP lacks it.
template <class... Parameters, class... Arguments>
hipError_t call_original(hipError_t (*function)(Parameters...), Arguments... arguments) {
  return function == nullptr ? hipErrorNotSupported : function(arguments...);
}

template <class Function>
Function* original(const char* name) noexcept {
  return reinterpret_cast<Function*>(original_address(name));
}

// HIP's function that its headers declare by this name, looked up once.
#define UPTEMPO_ORIGINAL(function)                                    \
  ([]() noexcept {                                                    \
    static const auto real = original<decltype(function)>(#function); \
    return real;                                                      \
  }())
#define UPTEMPO_CALL(function, ...) call_original(UPTEMPO_ORIGINAL(function), __VA_ARGS__)

// Keeps the calls of this library invisible in the program's hipGetLastError(), after a call of the
// program that succeeded. Up to HIP 6 the last error is the result of the thread's last call, hence
// success. HIP 7 keeps the last failure until the program asks for it.
class KeepLastError {
 public:
  KeepLastError() noexcept : before_(kKeepsFailures ? hipPeekAtLastError() : hipSuccess) {}
  ~KeepLastError() {
    if (before_ == hipSuccess) (void)hipGetLastError();
  }
  KeepLastError(const KeepLastError&) = delete;
  KeepLastError& operator=(const KeepLastError&) = delete;

 private:
  static constexpr bool kKeepsFailures = HIP_VERSION >= 70000000;
  hipError_t before_;
};

// Lets this library allocate memory and query events while a stream of the program is captured.
// Without it, HIP refuses such calls and ends the capture.
class RelaxedCapture {
 public:
  RelaxedCapture() noexcept { (void)hipThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { (void)hipThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  hipStreamCaptureMode mode_ = hipStreamCaptureModeRelaxed;
};

}  // namespace uptempo::graphs
