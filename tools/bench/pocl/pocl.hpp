// Finds PoCL at run time through the OpenCL ICD loader: the platform "Portable Computing Language",
// whose device is the host processor.
//
// Thread safety: as OpenCL's, any thread.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>

namespace uptempo::bench {

struct Pocl {
  cl_device_id device = nullptr;
  std::string name;     // device name, for example "pthread-skylake-avx512-AMD EPYC"
  std::string version;  // PoCL's version
  std::string missing;  // if there is no device: the reason, and what to install
};
Pocl find_pocl();

}  // namespace uptempo::bench
