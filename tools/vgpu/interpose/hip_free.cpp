// HIP's functions that free memory, for --check memory. They tell the check which memory the
// program has freed with HIP, because HIP may keep such memory: a graph of HIP 5.2 holds what its
// nodes use for good. That is no leak of the program's.
//
// A program that finds these functions in HIP's library by itself (dlsym) does not call them. Its
// memory then counts as freed when HIP returns it to ROCr.
#include <dlfcn.h>

#include "interpose/hip_library.hpp"

namespace {

namespace hip = uptempo::vgpu::hip;

int free_with(const char* name, void* pointer) {
  auto* const next = reinterpret_cast<int (*)(void*)>(hip::of_hip(name));
  if (next == nullptr) return hip::kNotInitialised;
  const int status = next(pointer);
  auto* const freed =
      reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_hip_freed"));
  if (status == 0 && freed != nullptr) freed(pointer);
  return status;
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
