#include "tools/graphs/replacement.hpp"

#include <dlfcn.h>

#include "tools/graphs/original.hpp"

namespace uptempo::graphs {
namespace {

// The first address of the library that holds this address; null if none does.
void* library_of(const void* address) noexcept {
  Dl_info found{};
  return dladdr(address, &found) == 0 ? nullptr : found.dli_fbase;
}

// This library, so that its symbols can be looked up.
void* open_own() noexcept {
  Dl_info own{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): dladdr() takes any address
  if (dladdr(reinterpret_cast<void*>(&replacement), &own) == 0) return nullptr;
  return dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace

void* replacement(void* address) noexcept {
  static void* const hip = library_of(original_address("hipGraphLaunch"));
  static void* const own_base = library_of(reinterpret_cast<void*>(&replacement));
  static void* const own = open_own();
  // The name that the linker knows the address by: HIP may have chosen a variant of the function,
  // for example that for per-thread default streams.
  Dl_info found{};
  if (dladdr(address, &found) == 0 || found.dli_sname == nullptr || found.dli_fbase != hip)
    return address;
  if (own == nullptr) return address;
  const auto look_up = reinterpret_cast<void* (*)(void*, const char*)>(original_dlsym());
  // It also searches the libraries that this one needs.
  void* const candidate = look_up(own, found.dli_sname);
  return candidate != nullptr && library_of(candidate) == own_base ? candidate : address;
}

}  // namespace uptempo::graphs
