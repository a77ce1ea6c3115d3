#include "tools/bench/pocl/pocl.hpp"

#include <fmt/format.h>

#include <stdexcept>

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

void check(cl_int status, const char* call) {
  if (status != CL_SUCCESS)
    throw std::runtime_error(fmt::format("{} of PoCL failed with OpenCL status {}", call, status));
}

PoclKernel::PoclKernel(cl_device_id device, const char* source, const char* name) {
  cl_int status = CL_SUCCESS;
  context_ = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  check(status, "clCreateContext");
  queue_ = clCreateCommandQueue(context_, device, 0, &status);
  check(status, "clCreateCommandQueue");
  program_ = clCreateProgramWithSource(context_, 1, &source, nullptr, &status);
  check(status, "clCreateProgramWithSource");
  check(clBuildProgram(program_, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  kernel_ = clCreateKernel(program_, name, &status);
  check(status, "clCreateKernel");
}

PoclKernel::~PoclKernel() {
  for (const cl_mem buffer : buffers_) clReleaseMemObject(buffer);
  clReleaseKernel(kernel_);
  clReleaseProgram(program_);
  clReleaseCommandQueue(queue_);
  clReleaseContext(context_);
}

cl_mem PoclKernel::buffer(cl_mem_flags flags, size_t bytes, void* host) {
  cl_int status = CL_SUCCESS;
  const cl_mem buffer = clCreateBuffer(context_, flags, bytes, host, &status);
  check(status, "clCreateBuffer");
  return buffers_.emplace_back(buffer);
}

void PoclKernel::enqueue(size_t work_items, size_t workgroup) {
  check(clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &work_items, &workgroup, 0, nullptr,
                               nullptr),
        "clEnqueueNDRangeKernel");
}

}  // namespace uptempo::bench
