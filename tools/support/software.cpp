#include "tools/support/software.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace uptempo::support {

Software describe_software() {
  Software software;
  uint16_t major = 0, minor = 0;
  hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &major);
  hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MINOR, &minor);
  software.hsa_version = fmt::format("{}.{}", major, minor);
  const char* build = nullptr;
  if (hsa_system_get_info(HSA_AMD_SYSTEM_INFO_BUILD_VERSION, &build) == HSA_STATUS_SUCCESS &&
      build != nullptr)
    software.rocr_build = build;
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&hsa_init), &library) != 0 &&
      library.dli_fname != nullptr) {
    std::error_code ignored;
    software.rocr_library =
        std::filesystem::canonical(library.dli_fname, ignored).filename().string();
  }
  std::ifstream driver("/sys/module/amdgpu/version");
  std::getline(driver, software.driver);
  utsname system{};
  if (uname(&system) == 0) software.kernel = system.release;
  return software;
}

std::string operating_system() {
  utsname system{};
  if (uname(&system) != 0) return {};
  return fmt::format("{} {} {}", system.sysname, system.release, system.machine);
}

std::map<std::string, std::string> environment_of(const std::vector<std::string_view>& prefixes) {
  std::map<std::string, std::string> found;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view variable = *each;
    const size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = variable.substr(0, equals);
    if (std::ranges::any_of(prefixes,
                            [&](std::string_view prefix) { return name.starts_with(prefix); }))
      found[std::string(name)] = variable.substr(equals + 1);
  }
  return found;
}

}  // namespace uptempo::support
