// The peer: the bitonic sort of kernels/bitonic_sort.cl, from the same source text, run by PoCL on
// the host's cores.
//
// PoCL (platform "Portable Computing Language") is found at run time through the OpenCL ICD loader.
// Its work is organised like ours: one in-order queue, workgroups of min(256, length/2), all
// kernels submitted at once, one wait at the end.
//
// Thread safety: one owner.
// Lifetime: the destructor releases the OpenCL objects.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace uptempo::bench {

class PoclSort {
 public:
  // Compiles the kernel and allocates room for `length` keys (a power of two, at least 2).
  // Errors: support::Unavailable without a PoCL platform, naming the platforms found;
  // std::runtime_error for any other failure, naming the OpenCL call and its status.
  explicit PoclSort(uint32_t length);
  ~PoclSort();
  PoclSort(const PoclSort&) = delete;
  PoclSort& operator=(const PoclSort&) = delete;

  const std::string& device() const noexcept;   // for example "pthread-skylake-avx512-AMD EPYC"
  const std::string& version() const noexcept;  // PoCL's version

  // Sorts `length` keys ascending, in place. Returns the wall time of the copy to the device, all
  // kernels and the copy back. The first call includes PoCL's compilation for the workgroup size.
  std::chrono::nanoseconds sort(std::span<uint32_t> keys);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::bench
