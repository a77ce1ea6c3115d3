#include "interpose/runtime_age.hpp"

#include <dlfcn.h>
#include <link.h>
#include <algorithm>
#include <array>
#include <string_view>

namespace uptempo::vgpu::interpose {
namespace {

// A function that appeared with a version of ROCr (hsa_ext_amd.h of that version).
struct Appeared {
  std::string_view version;
  const char* function;
};
constexpr std::array kAppeared{Appeared{"6.1", "hsa_amd_agent_set_async_scratch_limit"}};

int find_runtime(dl_phdr_info* object, size_t, void* path) {
  if (std::string_view(object->dlpi_name).find("libhsa-runtime64.so") == std::string_view::npos)
    return 0;
  *static_cast<std::string*>(path) = object->dlpi_name;
  return 1;
}

}  // namespace

std::string why_runtime_is_too_old(const DeviceDescription& device) {
  const auto* const needed = std::ranges::find(kAppeared, device.first_rocr, &Appeared::version);
  if (needed == kAppeared.end()) return {};
  std::string path;
  dl_iterate_phdr(&find_runtime, &path);
  if (path.empty()) return {};
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return {};
  const bool has = dlsym(library, needed->function) != nullptr;
  dlclose(library);
  if (has) return {};
  return std::string(device.target) + " needs ROCr " + std::string(device.first_rocr) +
         " or newer; " + path +
         " is older. Use a newer ROCr, or another --device: uptempo-vgpu --help lists them";
}

}  // namespace uptempo::vgpu::interpose
