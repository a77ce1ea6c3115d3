// A program under test. It opens a library as its first argument says: "dlopen" and "dlmopen" with
// RTLD_DEEPBIND, "namespace" in a new namespace, "plain" without any of these. Then it calls the
// function "run" of the library, which is its second argument.
#include <dlfcn.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string how = argv[1];
  void* library = nullptr;
  if (how == "dlopen") {
    library = dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND);
  } else if (how == "dlmopen") {
    library = dlmopen(LM_ID_BASE, argv[2], RTLD_NOW | RTLD_DEEPBIND);
  } else if (how == "namespace") {
    library = dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW);
  } else {
    library = dlopen(argv[2], RTLD_NOW);
  }
  auto* const run =
      library == nullptr ? nullptr : reinterpret_cast<int (*)()>(dlsym(library, "run"));
  if (run == nullptr) {
    std::printf("%s\n", dlerror());
    return 2;
  }
  return run();
}
