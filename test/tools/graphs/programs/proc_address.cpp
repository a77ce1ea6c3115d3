// hipGetProcAddress, which HIP has from release 6.2 on, for older releases: finds HIP's functions.
#include <dlfcn.h>

#include <cstdint>

extern "C" int hipGetProcAddress(const char* symbol, void** function, int, uint64_t, void*) {
  static void* const hip = dlopen(HIP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  *function = hip == nullptr ? nullptr : dlsym(hip, symbol);
  return *function == nullptr ? 1 : 0;
}
