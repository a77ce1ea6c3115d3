// The checks of a process (`--check`). Findings go to the report file of `--report`, or to stderr,
// one sentence each.
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/fences/checker.hpp"
#include "device/fences/journal.hpp"
#include "device/ignored_atomics.hpp"

namespace uptempo::vgpu::kfd {

class FenceReport {
 public:
  // Throws std::runtime_error if the report file cannot be written.
  explicit FenceReport(const Options& options);

  // Null if fences are not checked.
  fences::Checker* checker() noexcept { return checker_.get(); }
  // Null if floating-point atomics are not checked.
  IgnoredAtomics* ignored_atomics(uint32_t gpu_index) noexcept {
    return ignored_atomics_.empty() ? nullptr : ignored_atomics_[gpu_index].get();
  }

  // Call it once, at the program's end. Writes the advice if it was requested, and reports what
  // could not be observed for lack of memory or time. `host_pages` may be null.
  void finish(const HostPages* host_pages);

 private:
  void advise();
  std::string target_of(const fences::Finding& finding) const;

  const DeviceDescription& device_;
  const std::vector<const DeviceDescription*> gpus_;
  Trace lines_;
  std::unique_ptr<fences::Journal> journal_;  // null: no advice requested
  std::unique_ptr<fences::Checker> checker_;
  std::vector<std::unique_ptr<IgnoredAtomics>> ignored_atomics_;  // one per GPU, or none
  std::atomic<bool> finished_{false};
};

}  // namespace uptempo::vgpu::kfd
