#include "tools/bench/dispatch/pocl_peer.h"

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include "tools/bench/pocl/pocl.hpp"

namespace {

// The same as `tally` of kernels/basics.cl.
constexpr const char* kSource =
    "kernel void tally(global uint* tallies, uint dispatch) {"
    "  if (get_local_id(0) == 0) atomic_inc(&tallies[dispatch]);"
    "}";

constexpr size_t kItems = 64;

// Not released: at the end of the process PoCL may have ended before.
uptempo::bench::PoclKernel* kernel = nullptr;
std::string description, error;

// Null, or the reason for which `work` failed.
template <class Work>
const char* failure_of(const Work& work) {
  try {
    work();
    return nullptr;
  } catch (const std::exception& failure) {
    error = failure.what();
    return error.c_str();
  }
}

const char* launch(uint32_t batch, uint32_t repeats) {
  return failure_of([&] {
    cl_uint dispatch = 0;
    for (uint32_t n = 0; n < repeats; ++n) {
      for (uint32_t i = 0; i < batch; ++i, ++dispatch) {
        kernel->set(1, dispatch);
        kernel->enqueue(kItems, kItems);
      }
      uptempo::bench::check(clFlush(kernel->queue()), "clFlush");
    }
  });
}

const char* wait() {
  return failure_of([] { uptempo::bench::check(clFinish(kernel->queue()), "clFinish"); });
}

const char* prepare(uint32_t* tallies, uint32_t count) {
  if (kernel != nullptr) return nullptr;
  const char* const failure = failure_of([&] {
    const auto [device, name, version, missing] = uptempo::bench::find_pocl();
    if (device == nullptr) throw std::runtime_error(missing);
    description = "PoCL " + version + " on " + name;
    auto made = std::make_unique<uptempo::bench::PoclKernel>(device, kSource, "tally");
    made->set(
        0, made->buffer(CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, count * sizeof *tallies, tallies));
    kernel = made.release();
  });
  if (failure != nullptr) return failure;
  // PoCL compiles for the workgroup size at the first launch.
  if (const char* const unlaunched = launch(1, 1)) return unlaunched;
  return wait();
}

const char* version() { return description.c_str(); }

constexpr uptempo_pocl_peer kPeer{prepare, launch, wait, version};

}  // namespace

extern "C" __attribute__((visibility("default"))) const uptempo_pocl_peer*
uptempo_pocl_peer_functions() {
  return &kPeer;
}
