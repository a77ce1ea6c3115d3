// The libraries that the launcher has loaded into the program, as lists in environment variables.
//
// Errors: Failure.
// Thread safety: none; reads the environment.
#pragma once

#include <string>

#include "tools/support/preload_target.hpp"

namespace uptempo::vgpu {

// The path of the library that is preloaded: in the launcher's folder (build tree), or in the
// library folder of the same prefix (installed). Failure if others may write there (distrust()).
std::string find_library();

// The value of LD_PRELOAD: `library`, with `checks` the functions of HIP that findings need
// (interpose/hip_*.cpp), and what the variable names now. A sanitizer's runtime must be the first
// library of the process, so it precedes the virtual GPU's.
std::string preload_list(const support::PreloadTarget& program, const std::string& library,
                         bool checks);

// The value of HSA_TOOLS_LIB: the tool beside `library`, and what the variable names now. The first
// tool is the innermost, so the others see the program's calls unchanged.
std::string tools_list(const std::string& library);

}  // namespace uptempo::vgpu
