#include "tools/bench/sort_vs_pocl/pocl_sort.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "bitonic_sort_source.hpp"
#include "tools/bench/pocl/pocl.hpp"
#include "tools/support/program.hpp"

namespace uptempo::bench {
namespace {

void check(cl_int status, const char* call) {
  if (status != CL_SUCCESS)
    throw std::runtime_error(fmt::format("{} of PoCL failed with OpenCL status {}", call, status));
}

}  // namespace

struct PoclSort::Impl {
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;
  cl_kernel kernel = nullptr;
  cl_mem keys = nullptr;
  uint32_t length = 0;
  Pocl found;

  ~Impl() {
    if (keys != nullptr) clReleaseMemObject(keys);
    if (kernel != nullptr) clReleaseKernel(kernel);
    if (program != nullptr) clReleaseProgram(program);
    if (queue != nullptr) clReleaseCommandQueue(queue);
    if (context != nullptr) clReleaseContext(context);
  }
};

PoclSort::PoclSort(uint32_t length) : impl_(std::make_unique<Impl>()) {
  Impl& cl = *impl_;
  cl.length = length;
  cl.found = find_pocl();
  const cl_device_id device = cl.found.device;
  if (device == nullptr) throw support::Unavailable(cl.found.missing);
  cl_int status = CL_SUCCESS;
  cl.context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  check(status, "clCreateContext");
  cl.queue = clCreateCommandQueue(cl.context, device, 0, &status);
  check(status, "clCreateCommandQueue");
  const char* source = kBitonicSortSource;
  cl.program = clCreateProgramWithSource(cl.context, 1, &source, nullptr, &status);
  check(status, "clCreateProgramWithSource");
  check(clBuildProgram(cl.program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  cl.kernel = clCreateKernel(cl.program, "bitonic_sort", &status);
  check(status, "clCreateKernel");
  cl.keys =
      clCreateBuffer(cl.context, CL_MEM_READ_WRITE, length * sizeof(uint32_t), nullptr, &status);
  check(status, "clCreateBuffer");
  check(clSetKernelArg(cl.kernel, 0, sizeof cl.keys, &cl.keys), "clSetKernelArg");
  const cl_uint ascending = 1;
  check(clSetKernelArg(cl.kernel, 3, sizeof ascending, &ascending), "clSetKernelArg");
}

PoclSort::~PoclSort() = default;

const std::string& PoclSort::device() const noexcept { return impl_->found.name; }
const std::string& PoclSort::version() const noexcept { return impl_->found.version; }

std::chrono::nanoseconds PoclSort::sort(std::span<uint32_t> keys) {
  Impl& cl = *impl_;
  if (keys.size() != cl.length)
    throw std::invalid_argument(
        fmt::format("PoclSort for {} keys was given {}", cl.length, keys.size()));
  const size_t work_items = cl.length / 2;
  const size_t workgroup = std::min<size_t>(256, work_items);
  const auto stages = static_cast<cl_uint>(std::countr_zero(cl.length));

  const auto start = std::chrono::steady_clock::now();
  check(clEnqueueWriteBuffer(cl.queue, cl.keys, CL_FALSE, 0, keys.size_bytes(), keys.data(), 0,
                             nullptr, nullptr),
        "clEnqueueWriteBuffer");
  for (cl_uint stage = 0; stage < stages; ++stage) {
    check(clSetKernelArg(cl.kernel, 1, sizeof stage, &stage), "clSetKernelArg");
    for (cl_uint pass = 0; pass <= stage; ++pass) {
      check(clSetKernelArg(cl.kernel, 2, sizeof pass, &pass), "clSetKernelArg");
      check(clEnqueueNDRangeKernel(cl.queue, cl.kernel, 1, nullptr, &work_items, &workgroup, 0,
                                   nullptr, nullptr),
            "clEnqueueNDRangeKernel");
    }
  }
  check(clEnqueueReadBuffer(cl.queue, cl.keys, CL_TRUE, 0, keys.size_bytes(), keys.data(), 0,
                            nullptr, nullptr),
        "clEnqueueReadBuffer");
  return std::chrono::steady_clock::now() - start;
}

}  // namespace uptempo::bench
