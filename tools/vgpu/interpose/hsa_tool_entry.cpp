// The library that HSA_TOOLS_LIB names for --check memory. hsa_tool.cpp, in the preloaded library,
// has its functions.
#include <dlfcn.h>

#include <cstdint>

extern "C" {

[[gnu::visibility("default")]] bool OnLoad(void* tables, uint64_t, uint64_t, const char* const*) {
  auto* const load =
      reinterpret_cast<bool (*)(void*)>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_hsa_load"));
  return load != nullptr && load(tables);
}

[[gnu::visibility("default")]] void OnUnload() {
  if (auto* const unload =
          reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_hsa_unload")))
    unload();
}
}
