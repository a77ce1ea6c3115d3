// Finds PoCL at run time through the OpenCL ICD loader: the platform "Portable Computing Language",
// whose device is the host processor. Runs a kernel on it.
//
// Thread safety: find_pocl() any thread; a PoclKernel has one owner.
// Errors: std::runtime_error naming the OpenCL call and its status.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>
#include <vector>

namespace uptempo::bench {

struct Pocl {
  cl_device_id device = nullptr;
  std::string name;     // device name, for example "pthread-skylake-avx512-AMD EPYC"
  std::string version;  // PoCL's version
  std::string missing;  // if there is no device: the reason, and what to install
};
Pocl find_pocl();

void check(cl_int status, const char* call);

// One kernel and an in-order queue.
// Lifetime: the destructor releases the OpenCL objects, also those of buffer().
class PoclKernel {
 public:
  PoclKernel(cl_device_id device, const char* source, const char* name);
  ~PoclKernel();
  PoclKernel(const PoclKernel&) = delete;
  PoclKernel& operator=(const PoclKernel&) = delete;

  cl_command_queue queue() const noexcept { return queue_; }
  // Memory that the kernel can access; with CL_MEM_USE_HOST_PTR, `host` itself.
  cl_mem buffer(cl_mem_flags flags, size_t bytes, void* host = nullptr);
  template <class T>
  void set(cl_uint argument, const T& value) {
    check(clSetKernelArg(kernel_, argument, sizeof value, &value), "clSetKernelArg");
  }
  void enqueue(size_t work_items, size_t workgroup);

 private:
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_program program_ = nullptr;
  cl_kernel kernel_ = nullptr;
  std::vector<cl_mem> buffers_;
};

}  // namespace uptempo::bench
