#include "tools/bench/pocl/pocl.hpp"

#include <vector>

namespace uptempo::bench {
namespace {

template <class Query, class Object>
std::string text_of(Query query, Object object, cl_uint name) {
  char text[256] = {};
  return query(object, name, sizeof text - 1, text, nullptr) == CL_SUCCESS ? text : "";
}

}  // namespace

Pocl find_pocl() {
  cl_uint count = 0;
  // The loader returns CL_PLATFORM_NOT_FOUND_KHR (-1001) if it finds no driver.
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) count = 0;
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) clGetPlatformIDs(count, platforms.data(), nullptr);
  Pocl pocl;
  std::string others;
  for (const cl_platform_id platform : platforms) {
    const std::string name = text_of(clGetPlatformInfo, platform, CL_PLATFORM_NAME);
    if (name == "Portable Computing Language" &&
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &pocl.device, nullptr) == CL_SUCCESS) {
      pocl.name = text_of(clGetDeviceInfo, pocl.device, CL_DEVICE_NAME);
      pocl.version = text_of(clGetDeviceInfo, pocl.device, CL_DRIVER_VERSION);
      return pocl;
    }
    others += (others.empty() ? "" : ", ") + name;
  }
  pocl.missing = "PoCL has no device on this machine; OpenCL platforms found: " +
                 (others.empty() ? "none" : others) + "; install pocl-opencl-icd";
  return pocl;
}

}  // namespace uptempo::bench
