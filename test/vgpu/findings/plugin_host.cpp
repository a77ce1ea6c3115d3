// Runs program.cpp as a plugin. Neither it nor the ROCr that it needs is in the global scope.
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  void* const plugin = dlopen(UPTEMPO_VGPU_FINDINGS_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  if (dlsym(RTLD_DEFAULT, "hsa_init") != nullptr) return 2;
  auto* const run = reinterpret_cast<int (*)(int, char**)>(dlsym(plugin, "_Z11plugin_mainiPPc"));
  return run == nullptr ? 1 : run(argc, argv);
}
