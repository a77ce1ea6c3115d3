#include "tools/graphs/original.hpp"

#include <dlfcn.h>

#include <atomic>

namespace uptempo::graphs {

void* original_address(const char* name) noexcept { return dlsym(RTLD_NEXT, name); }

void* original_dlsym() noexcept {
  // Without the guard of a function's static variable: sanitizers replace it before they can run.
  static constinit std::atomic<void*> known{nullptr};
  void* address = known.load(std::memory_order_relaxed);
  if (address == nullptr) {
    // The oldest version of x86-64, which every C library has.
    address = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    known.store(address, std::memory_order_relaxed);  // the same in every thread
  }
  return address;
}

}  // namespace uptempo::graphs
