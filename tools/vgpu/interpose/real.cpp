#include "interpose/real.hpp"

#include <dlfcn.h>
#include <cstdio>
#include <cstdlib>

namespace uptempo::vgpu::interpose {

void* next_definition(const char* name) noexcept {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "uptempo-vgpu: the C library has no function '%s'\n", name);
    std::abort();
  }
  return found;
}

}  // namespace uptempo::vgpu::interpose
