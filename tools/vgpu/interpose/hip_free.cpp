// HIP's functions that free memory, for --check memory. They tell the check which memory the
// program frees with HIP. HIP refuses memory that is freed again, and it may keep memory that is
// freed: HIP 5.2 returns some with the next launch, never returns what a graph's nodes use, and
// returns nothing when it resets a device. That is no leak of the program's.
//
// A program that finds these functions in HIP's library by itself (dlsym) does not call them. Its
// memory then counts as freed when HIP returns it to ROCr, and is not found when it is freed again.
#include <dlfcn.h>

#include "interpose/hip_library.hpp"

namespace {

namespace hip = uptempo::vgpu::hip;

// Calls HIP's function by the check's.
template <class... Arguments>
int call_checked(const char* name, const char* check, Arguments... arguments) {
  auto* const next = reinterpret_cast<int (*)(Arguments...)>(hip::of_hip(name));
  if (next == nullptr) return hip::kNotInitialised;
  auto* const checked =
      reinterpret_cast<int (*)(Arguments..., int (*)(Arguments...))>(dlsym(RTLD_DEFAULT, check));
  return checked == nullptr ? next(arguments...) : checked(arguments..., next);
}

}  // namespace

extern "C" {
#define UPTEMPO_FREE(name)                                        \
  [[gnu::visibility("default")]] int name(void* pointer) {        \
    return call_checked(#name, "uptempo_vgpu_hip_free", pointer); \
  }
UPTEMPO_FREE(hipFree)
UPTEMPO_FREE(hipHostFree)
UPTEMPO_FREE(hipFreeHost)
#undef UPTEMPO_FREE
[[gnu::visibility("default")]] int hipDeviceReset() {
  return call_checked("hipDeviceReset", "uptempo_vgpu_hip_reset");
}
}
