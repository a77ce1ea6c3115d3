#include <fmt/format.h>
#include <link.h>

#include <string>
#include <string_view>
#include <vector>

#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo::detail {
namespace {

// Returns the DT_SONAME of a loaded object, or nothing. System V ABI, "Dynamic Section".
std::string_view soname_of(const dl_phdr_info& object) {
  for (size_t i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const ElfW(Addr) base = object.dlpi_addr;
    ElfW(Addr) strings = 0;
    size_t name = 0;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(base + object.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
      if (entry->d_tag == DT_SONAME) name = entry->d_un.d_val;
    }
    if (strings == 0 || name == 0) return {};
    // glibc has relocated the address, except in the kernel's vDSO, which is read-only.
    if (strings < base) strings += base;
    return reinterpret_cast<const char*>(strings + name);
  }
  return {};
}

int add_rocr(dl_phdr_info* object, size_t, void* files) {
  // Tools that bundle ROCr rename it to libhsa-runtime64-<hash>.so.
  const std::string_view soname = soname_of(*object);
  if (soname.starts_with("libhsa-runtime64.") || soname.starts_with("libhsa-runtime64-"))
    static_cast<std::vector<std::string>*>(files)->emplace_back(object->dlpi_name);
  return 0;
}

}  // namespace

void require_one_rocr(const char* call) {
  std::vector<std::string> files;
  dl_iterate_phdr(&add_rocr, &files);
  if (files.size() <= 1) return;
  throw Error({.status = HSA_STATUS_ERROR_INVALID_RUNTIME_STATE,
               .call = call,
               .asked = "one HSA runtime (ROCr) in this process",
               .found = fmt::format("{} are loaded: {}", files.size(), fmt::join(files, " and ")),
               .remedy = "use one ROCm for the program and all its libraries: check their rpath "
                         "(readelf -d) and LD_LIBRARY_PATH"});
}

}  // namespace uptempo::detail
