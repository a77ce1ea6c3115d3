// A program without HIP. It opens the library DEEPLY_BOUND with RTLD_DEEPBIND, or with the argument
// `namespace` in a new namespace, and calls its function "run".
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char**) {
  void* const library = argc > 1 ? dlmopen(LM_ID_NEWLM, DEEPLY_BOUND, RTLD_NOW)
                                 : dlopen(DEEPLY_BOUND, RTLD_NOW | RTLD_DEEPBIND);
  auto* const run =
      library == nullptr ? nullptr : reinterpret_cast<int (*)()>(dlsym(library, "run"));
  if (run == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return run();
}
