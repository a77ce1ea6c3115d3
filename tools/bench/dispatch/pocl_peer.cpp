#include "tools/bench/dispatch/pocl_peer.h"

#include <string>

#include "tools/bench/pocl/pocl.hpp"

namespace {

// The same as `tally` of kernels/basics.cl.
constexpr const char* kSource =
    "kernel void tally(global uint* tallies, uint dispatch) {"
    "  if (get_local_id(0) == 0) atomic_inc(&tallies[dispatch]);"
    "}";

constexpr size_t kItems = 64;

struct State {
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_kernel kernel = nullptr;
  std::string version, error;
} state;

const char* failed(const char* call, cl_int status) {
  if (status == CL_SUCCESS) return nullptr;
  state.error = std::string(call) + " failed with OpenCL status " + std::to_string(status);
  return state.error.c_str();
}

const char* make(uint32_t* tallies, uint32_t count) {
  const auto [device, name, version, missing] = uptempo::bench::find_pocl();
  if (device == nullptr) return (state.error = missing).c_str();
  state.version = "PoCL " + version + " on " + name;
  cl_int status = CL_SUCCESS;
  state.context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  if (const char* error = failed("clCreateContext", status)) return error;
  const char* source = kSource;
  cl_program program = clCreateProgramWithSource(state.context, 1, &source, nullptr, &status);
  if (const char* error = failed("clCreateProgramWithSource", status)) return error;
  if (const char* error =
          failed("clBuildProgram", clBuildProgram(program, 1, &device, "", nullptr, nullptr)))
    return error;
  state.kernel = clCreateKernel(program, "tally", &status);
  if (const char* error = failed("clCreateKernel", status)) return error;
  cl_mem marks = clCreateBuffer(state.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                count * sizeof *tallies, tallies, &status);
  if (const char* error = failed("clCreateBuffer", status)) return error;
  if (const char* error =
          failed("clSetKernelArg", clSetKernelArg(state.kernel, 0, sizeof marks, &marks)))
    return error;
  // Last: if the queue exists, everything else does.
  state.queue = clCreateCommandQueue(state.context, device, 0, &status);
  return failed("clCreateCommandQueue", status);
}

const char* launch(uint32_t batch, uint32_t repeats) {
  cl_uint dispatch = 0;
  for (uint32_t n = 0; n < repeats; ++n) {
    for (uint32_t i = 0; i < batch; ++i, ++dispatch) {
      cl_int status = clSetKernelArg(state.kernel, 1, sizeof dispatch, &dispatch);
      if (status == CL_SUCCESS)
        status = clEnqueueNDRangeKernel(state.queue, state.kernel, 1, nullptr, &kItems, &kItems, 0,
                                        nullptr, nullptr);
      if (const char* error = failed("clEnqueueNDRangeKernel", status)) return error;
    }
    if (const char* error = failed("clFlush", clFlush(state.queue))) return error;
  }
  return nullptr;
}

const char* wait() { return failed("clFinish", clFinish(state.queue)); }

const char* prepare(uint32_t* tallies, uint32_t count) {
  if (state.queue != nullptr) return nullptr;
  if (const char* error = make(tallies, count)) return error;
  // PoCL compiles for the workgroup size at the first launch.
  if (const char* error = launch(1, 1)) return error;
  return wait();
}

const char* version() { return state.version.c_str(); }

constexpr uptempo_pocl_peer kPeer{prepare, launch, wait, version};

}  // namespace

extern "C" __attribute__((visibility("default"))) const uptempo_pocl_peer*
uptempo_pocl_peer_functions() {
  return &kPeer;
}
