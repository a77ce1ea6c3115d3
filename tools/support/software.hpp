// Versions of the software that a measurement was made with.
//
// Thread safety: any thread; environment_of() must not run concurrently with setenv().
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace uptempo::support {

// Unknown fields are empty. Construct it within the lifetime of a Runtime.
struct Software {
  std::string hsa_version;   // "1.1"
  std::string rocr_build;    // the runtime's own description
  std::string rocr_library;  // file that the runtime was loaded from; its name holds the version
  std::string driver;        // version of the amdgpu module; empty if it is part of the kernel
  std::string kernel;        // uname -r
};
Software describe_software();

// "Linux 6.1.0-18-amd64 x86_64"
std::string operating_system();

// Environment variables whose names begin with one of `prefixes`.
std::map<std::string, std::string> environment_of(const std::vector<std::string_view>& prefixes);

}  // namespace uptempo::support
