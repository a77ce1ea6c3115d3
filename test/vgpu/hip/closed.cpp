// A program that closes HIP's library after its use, as IREE does. HIP stays mapped until the end,
// because it has destructors of the thread's variables. Argument: the library.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  auto* const allocate = reinterpret_cast<int (*)(void**, size_t)>(dlsym(library, "hipMalloc"));
  auto* const free_memory = reinterpret_cast<int (*)(void*)>(dlsym(library, "hipFree"));
  if (allocate == nullptr || free_memory == nullptr) return 2;
  void* memory = nullptr;
  if (allocate(&memory, 4096) != 0 || free_memory(memory) != 0) return 1;
  return dlclose(library);
}
