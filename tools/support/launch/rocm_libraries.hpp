// Libraries of ROCm that a program or a preloaded library needs, and the packages that have them.
// Includes nothing of the tree, because tools/vgpu, a project of its own, uses it too.
//
// Thread safety: any thread; reads the environment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace uptempo::support {

inline constexpr std::string_view kRocr = "libhsa-runtime64.so.1";
inline constexpr std::string_view kRocrPackages =
    "libhsa-runtime64-1 (Debian) or hsa-rocr (AMD's ROCm)";

// The packages of Debian and of AMD's ROCm that have a library, for the end of a message:
// "libamdhip64-6 (Debian) or hip-runtime-amd (AMD's ROCm 6)". Returns "" for other libraries than
// ROCr's and HIP's.
std::string rocm_packages(std::string_view library);

// Whether the dynamic linker finds the library for every program: by LD_LIBRARY_PATH, or in its
// cache (ldconfig(8)).
bool is_found_by_name(std::string_view library, const char* cache = "/etc/ld.so.cache");

// Whether ROCr is there at all: as above, or in $ROCM_PATH or /opt/rocm.
bool has_rocr();

// Why the dynamic linker cannot load `file`, which needs the libraries `needed`:
// "needs libamdhip64.so.6, which this system lacks: install ...", or names the folder of ROCm that
// has it. "" if it lacks none of ROCm's.
std::string missing_rocm(const std::string& file, const std::vector<std::string>& needed);

}  // namespace uptempo::support
