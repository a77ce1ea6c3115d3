#include "tools/graphs/original.hpp"

#include <dlfcn.h>

namespace uptempo::graphs {

void* original_address(const char* name) noexcept { return dlsym(RTLD_NEXT, name); }

void* original_dlsym() noexcept {
  // The oldest version of x86-64, which every C library has.
  static void* const address = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return address;
}

}  // namespace uptempo::graphs
