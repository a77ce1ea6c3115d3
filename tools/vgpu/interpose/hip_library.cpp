#include "interpose/hip_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <string>

namespace uptempo::vgpu::hip {
namespace {

int note_hip(dl_phdr_info* module, size_t, void* path) {
  if (std::strstr(module->dlpi_name, "/libamdhip64.so") == nullptr) return 0;
  *static_cast<std::string*>(path) = module->dlpi_name;
  return 1;
}

}  // namespace

void* of_hip(const char* name) noexcept {
  if (void* const next = dlsym(RTLD_NEXT, name)) return next;
  std::string path;
  dl_iterate_phdr(note_hip, &path);
  if (path.empty()) return nullptr;
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  return dlsym(library, name);  // not closed: callers keep the function
}

}  // namespace uptempo::vgpu::hip
