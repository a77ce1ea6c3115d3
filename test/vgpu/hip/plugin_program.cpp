// A program without HIP, which loads a library with HIP outside the global scope of symbols
// (RTLD_LOCAL). Arguments: the library, and that of its function.
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  // So that the test is one of RTLD_LOCAL. HIP's functions that free are the check's own there.
  if (dlsym(RTLD_DEFAULT, "hipMalloc") != nullptr) {
    std::fprintf(stderr, "HIP is in the global scope\n");
    return 2;
  }
  auto* const run = reinterpret_cast<int (*)(const char*)>(dlsym(library, "run"));
  return run == nullptr ? 2 : run(argv[2]);
}
