// HIP's functions that free memory, for --check memory. They tell the check which memory the
// program frees with HIP. HIP refuses memory that is freed again, and it may keep memory that is
// freed: a graph of HIP 5.2 holds what its nodes use for good. That is no leak of the program's.
//
// A program that finds these functions in HIP's library by itself (dlsym) does not call them. Its
// memory then counts as freed when HIP returns it to ROCr, and is not found when it is freed again.
#include <dlfcn.h>

#include "interpose/hip_library.hpp"

namespace {

namespace hip = uptempo::vgpu::hip;

int free_with(const char* name, void* pointer) {
  auto* const next = reinterpret_cast<int (*)(void*)>(hip::of_hip(name));
  if (next == nullptr) return hip::kNotInitialised;
  auto* const checked = reinterpret_cast<int (*)(void*, int (*)(void*))>(
      dlsym(RTLD_DEFAULT, "uptempo_vgpu_hip_free"));
  return checked == nullptr ? next(pointer) : checked(pointer, next);
}

}  // namespace

extern "C" {
#define UPTEMPO_FREE(name) \
  [[gnu::visibility("default")]] int name(void* pointer) { return free_with(#name, pointer); }
UPTEMPO_FREE(hipFree)
UPTEMPO_FREE(hipHostFree)
UPTEMPO_FREE(hipFreeHost)
#undef UPTEMPO_FREE
}
