#include "tools/bench/sort_vs_pocl/pocl_sort.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "bitonic_sort_source.hpp"
#include "tools/bench/pocl/pocl.hpp"
#include "tools/support/program.hpp"

namespace uptempo::bench {

struct PoclSort::Impl {
  explicit Impl(uint32_t keys_to_sort)
      : length(keys_to_sort),
        kernel(found.device, kBitonicSortSource, "bitonic_sort"),
        keys(kernel.buffer(CL_MEM_READ_WRITE, length * sizeof(uint32_t))) {}

  static Pocl require_pocl() {
    Pocl pocl = find_pocl();
    if (pocl.device == nullptr) throw support::Unavailable(pocl.missing);
    return pocl;
  }

  const Pocl found = require_pocl();
  const uint32_t length;
  PoclKernel kernel;
  const cl_mem keys;
};

PoclSort::PoclSort(uint32_t length) : impl_(std::make_unique<Impl>(length)) {
  impl_->kernel.set(0, impl_->keys);
  impl_->kernel.set(3, cl_uint{1});  // ascending
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
  check(clEnqueueWriteBuffer(cl.kernel.queue(), cl.keys, CL_FALSE, 0, keys.size_bytes(),
                             keys.data(), 0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
  for (cl_uint stage = 0; stage < stages; ++stage) {
    cl.kernel.set(1, stage);
    for (cl_uint pass = 0; pass <= stage; ++pass) {
      cl.kernel.set(2, pass);
      cl.kernel.enqueue(work_items, workgroup);
    }
  }
  check(clEnqueueReadBuffer(cl.kernel.queue(), cl.keys, CL_TRUE, 0, keys.size_bytes(), keys.data(),
                            0, nullptr, nullptr),
        "clEnqueueReadBuffer");
  return std::chrono::steady_clock::now() - start;
}

}  // namespace uptempo::bench
