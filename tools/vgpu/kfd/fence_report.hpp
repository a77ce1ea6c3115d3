// The checks of a process (`--check`), and where their findings go: the report file of `--report`,
// or one sentence each on stderr.
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <memory>

#include "device/device.hpp"
#include "device/fences/checker.hpp"
#include "device/fences/journal.hpp"
#include "device/ignored_atomics.hpp"

namespace uptempo::vgpu::kfd {

class FenceReport {
 public:
  // Throws std::runtime_error when the report file cannot be written.
  explicit FenceReport(const Options& options);

  // Null: not asked for.
  fences::Checker* checker() noexcept { return checker_.get(); }
  IgnoredAtomics* ignored_atomics() noexcept { return ignored_atomics_.get(); }

  // The program ends; once. Gives advice, if asked for. Says, too, what could not be observed for want of memory or time. `host_pages` may be null.
  void finish(const HostPages* host_pages);

 private:
  void advise();

  const DeviceDescription& device_;
  Trace lines_;
  std::unique_ptr<fences::Journal> journal_;  // null: no advice asked for
  std::unique_ptr<fences::Checker> checker_;
  std::unique_ptr<IgnoredAtomics> ignored_atomics_;
  std::atomic<bool> finished_{false};
};

}  // namespace uptempo::vgpu::kfd
