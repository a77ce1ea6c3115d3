// A library that is preloaded for --check memory, besides the virtual GPU. It tells the check which
// memory the program has freed with HIP, because HIP may keep such memory: a graph of HIP 5.2 holds
// what its nodes use for good. That is no leak of the program's.
//
// A program that finds these functions in HIP's library by itself (dlsym) does not call them. Its
// memory then counts as freed when HIP returns it to ROCr.
#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <string>

namespace {

constexpr int kNotInitialised = 3;  // hipErrorNotInitialized: the program has not loaded HIP

int note_hip(dl_phdr_info* module, size_t, void* path) {
  if (std::strstr(module->dlpi_name, "/libamdhip64.so") == nullptr) return 0;
  *static_cast<std::string*>(path) = module->dlpi_name;
  return 1;
}

// HIP's function. A library that was loaded with RTLD_LOCAL has its HIP outside the global scope.
void* of_hip(const char* name) {
  if (void* const next = dlsym(RTLD_NEXT, name)) return next;
  std::string path;
  dl_iterate_phdr(note_hip, &path);
  if (path.empty()) return nullptr;
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const function = dlsym(library, name);
  dlclose(library);  // its user keeps it
  return function;
}

int free_with(const char* name, void* pointer) {
  auto* const next = reinterpret_cast<int (*)(void*)>(of_hip(name));
  if (next == nullptr) return kNotInitialised;
  const int status = next(pointer);
  auto* const freed =
      reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_hip_freed"));
  if (status == 0 && freed != nullptr) freed(pointer);
  return status;
}

}  // namespace

extern "C" {
#define UPTEMPO_FREE(name) \
  [[gnu::visibility("default")]] int name(void* pointer) { return free_with(#name, pointer); }
UPTEMPO_FREE(hipFree)
UPTEMPO_FREE(hipHostFree)
UPTEMPO_FREE(hipFreeHost)
#undef UPTEMPO_FREE
}
