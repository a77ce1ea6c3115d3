// hipGetProcAddress, by which programs of HIP 6 look functions up: returns this library's function
// where it has one.
#include <dlfcn.h>

#include <cstdint>

#include "engine/hip/api/hip_api.hpp"
#include "tools/graphs/original.hpp"
#include "tools/graphs/symbol_name.hpp"

using namespace uptempo::graphs;

namespace {

// This library's function with the symbol that the linker knows the address by. HIP has chosen the
// variant already, for example that for per-thread default streams.
void* replacement(void* address) noexcept {
  Dl_info found{}, own{}, mine{};
  if (dladdr(address, &found) == 0 || found.dli_sname == nullptr) return address;
  if (dladdr(reinterpret_cast<void*>(&replacement), &own) == 0) return address;
  static void* const library = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* const candidate = library == nullptr ? nullptr : dlsym(library, found.dli_sname);
  // dlsym() also searches the libraries that this one needs.
  if (candidate == nullptr || dladdr(candidate, &mine) == 0 || mine.dli_fbase != own.dli_fbase)
    return address;
  return candidate;
}

}  // namespace

extern "C" {

hipError_t get_proc_address(const char* symbol, void** function, int version, uint64_t flags,
                            void* result) UPTEMPO_SYMBOL("hipGetProcAddress");
hipError_t get_proc_address(const char* symbol, void** function, int version, uint64_t flags,
                            void* result) {
  static const auto real = original<decltype(get_proc_address)>("hipGetProcAddress");
  const hipError_t status = call_original(real, symbol, function, version, flags, result);
  if (status == hipSuccess && function != nullptr && *function != nullptr)
    *function = replacement(*function);
  return status;
}

}  // extern "C"
