// The row that uses PoCL as its users do. In a shared library of its own, so that the benchmark
// also runs without OpenCL. PoCL's device is the processor: it starts work while more is submitted,
// as HIP does, and its kernels always run, on the host's cores.
#include <memory>
#include <stdexcept>

#include "tools/bench/dispatch/row.hpp"
#include "tools/bench/pocl/pocl.hpp"

namespace uptempo::bench {
namespace {

// The same as `tally` of kernels/basics.cl.
constexpr const char* kSource =
    "kernel void tally(global uint* tallies, uint dispatch) {"
    "  if (get_local_id(0) == 0) atomic_inc(&tallies[dispatch]);"
    "}";

class PoclRow final : public Row {
 public:
  // The kernel marks the tallies directly in that memory.
  PoclRow(cl_device_id device, uint32_t* tallies)
      : kernel_(*new PoclKernel(device, kSource, "tally")) {
    kernel_.set(0, kernel_.buffer(CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                  kMaxDispatches * sizeof *tallies, tallies));
    // PoCL compiles for the workgroup size at the first launch.
    PoclRow::submit({});
    PoclRow::wait();
  }
  std::string_view name() const override { return "pocl"; }
  bool on_device() const override { return false; }
  void prepare(const Load&) override {}
  void close_gate() override {}
  void open_gate() override {}
  // clEnqueueNDRangeKernel for each dispatch, clFlush for each batch.
  void submit(const Load& load) override {
    cl_uint dispatch = 0;
    for (uint32_t n = 0; n < load.repeats; ++n) {
      for (uint32_t i = 0; i < load.batch; ++i, ++dispatch) {
        kernel_.set(1, dispatch);
        kernel_.enqueue(Workload::kItems, Workload::kItems);
      }
      check(clFlush(kernel_.queue()), "clFlush");
    }
  }
  void wait() override { check(clFinish(kernel_.queue()), "clFinish"); }

 private:
  PoclKernel& kernel_;  // not released: at the end of the process PoCL may have ended before
};

}  // namespace
}  // namespace uptempo::bench

// By its name for dlsym().
extern "C" __attribute__((visibility("default"))) void uptempo_add_pocl_row(
    uptempo::bench::Rows& rows, uptempo::bench::Peer& peer, uint32_t* tallies) {
  try {
    const auto [device, name, version, missing] = uptempo::bench::find_pocl();
    if (device == nullptr) throw std::runtime_error(missing);
    rows.push_back(std::make_unique<uptempo::bench::PoclRow>(device, tallies));
    peer.version = "PoCL " + version + " on " + name;
  } catch (const std::exception& error) {
    peer.missing = error.what();
  }
}
