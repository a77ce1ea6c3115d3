#define CL_TARGET_OPENCL_VERSION 120
#include "dispatch_bench/pocl_sort.hpp"

#include <CL/cl.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <vector>

#include "bitonic_sort_source.hpp"
#include "support/program.hpp"

namespace uptempo::bench {
namespace {

constexpr const char* kPlatformName = "Portable Computing Language";

void check(cl_int status, const char* call) {
  if (status != CL_SUCCESS)
    throw std::runtime_error(fmt::format("{} of PoCL failed with OpenCL status {}", call, status));
}

template <typename Query>
std::string text_of(Query query) {
  size_t size = 0;
  if (query(size_t{0}, static_cast<void*>(nullptr), &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (query(size, static_cast<void*>(text.data()), static_cast<size_t*>(nullptr)) != CL_SUCCESS) return {};
  text.resize(text.find('\0') == std::string::npos ? size : text.find('\0'));
  return text;
}

cl_platform_id find_platform() {
  cl_uint count = 0;
  // CL_PLATFORM_NOT_FOUND_KHR (-1001) when the loader knows no driver at all.
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) count = 0;
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) check(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  std::string found;
  for (cl_platform_id platform : platforms) {
    const std::string name = text_of([&](size_t size, void* out, size_t* need) {
      return clGetPlatformInfo(platform, CL_PLATFORM_NAME, size, out, need);
    });
    if (name == kPlatformName) return platform;
    found += (found.empty() ? "" : ", ") + name;
  }
  throw support::Unavailable(
      fmt::format("PoCL is not installed: the OpenCL platforms found are: {}; install pocl-opencl-icd.",
                  found.empty() ? "none" : found));
}

}  // namespace

struct PoclSort::Impl {
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;
  cl_kernel kernel = nullptr;
  cl_mem keys = nullptr;
  uint32_t length = 0;
  std::string device;
  std::string version;

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
  cl_platform_id platform = find_platform();
  cl_device_id device = nullptr;
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, nullptr), "clGetDeviceIDs");
  cl.device = text_of([&](size_t size, void* out, size_t* need) {
    return clGetDeviceInfo(device, CL_DEVICE_NAME, size, out, need);
  });
  cl.version = text_of([&](size_t size, void* out, size_t* need) {
    return clGetDeviceInfo(device, CL_DRIVER_VERSION, size, out, need);
  });

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
  cl.keys = clCreateBuffer(cl.context, CL_MEM_READ_WRITE, length * sizeof(uint32_t), nullptr, &status);
  check(status, "clCreateBuffer");
  check(clSetKernelArg(cl.kernel, 0, sizeof cl.keys, &cl.keys), "clSetKernelArg");
  const cl_uint ascending = 1;
  check(clSetKernelArg(cl.kernel, 3, sizeof ascending, &ascending), "clSetKernelArg");
}

PoclSort::~PoclSort() = default;

const std::string& PoclSort::device() const noexcept { return impl_->device; }
const std::string& PoclSort::version() const noexcept { return impl_->version; }

std::chrono::nanoseconds PoclSort::sort(std::span<uint32_t> keys) {
  Impl& cl = *impl_;
  if (keys.size() != cl.length)
    throw std::invalid_argument(fmt::format("PoclSort for {} keys was given {}", cl.length, keys.size()));
  const size_t work_items = cl.length / 2;
  const size_t workgroup = std::min<size_t>(256, work_items);
  const auto stages = static_cast<cl_uint>(std::countr_zero(cl.length));

  const auto start = std::chrono::steady_clock::now();
  check(clEnqueueWriteBuffer(cl.queue, cl.keys, CL_FALSE, 0, keys.size_bytes(), keys.data(), 0, nullptr,
                             nullptr),
        "clEnqueueWriteBuffer");
  for (cl_uint stage = 0; stage < stages; ++stage) {
    check(clSetKernelArg(cl.kernel, 1, sizeof stage, &stage), "clSetKernelArg");
    for (cl_uint pass = 0; pass <= stage; ++pass) {
      check(clSetKernelArg(cl.kernel, 2, sizeof pass, &pass), "clSetKernelArg");
      check(clEnqueueNDRangeKernel(cl.queue, cl.kernel, 1, nullptr, &work_items, &workgroup, 0, nullptr,
                                   nullptr),
            "clEnqueueNDRangeKernel");
    }
  }
  check(
      clEnqueueReadBuffer(cl.queue, cl.keys, CL_TRUE, 0, keys.size_bytes(), keys.data(), 0, nullptr, nullptr),
      "clEnqueueReadBuffer");
  return std::chrono::steady_clock::now() - start;
}

}  // namespace uptempo::bench
