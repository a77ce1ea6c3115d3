// What software a measurement was made with, as far as it can be found out.
//
// Thread safety: any thread, but for environment_of() beside setenv().
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace uptempo::support {

// Fields that cannot be found out are empty. To be called within the lifetime of a Runtime.
struct Software {
  std::string hsa_version;   // "1.1"
  std::string rocr_build;    // what the runtime says of itself
  std::string rocr_library;  // the file that the runtime was loaded from: its name holds the version
  std::string driver;        // of the module amdgpu; empty where it is the kernel's own
  std::string kernel;        // uname -r
};
Software describe_software();

// "Linux 6.1.0-18-amd64 x86_64"
std::string operating_system();

// The variables of the environment whose names begin with one of `prefixes`.
std::map<std::string, std::string> environment_of(const std::vector<std::string_view>& prefixes);

}  // namespace uptempo::support
