// The checks of a process (`--check`). Findings go to the report file of `--report` as lines of
// JSON, or to stderr as text. The process's last line says what was checked and found.
//
// Thread safety: any thread.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/fences/checker.hpp"
#include "device/fences/journal.hpp"
#include "device/fences/report/closing.hpp"
#include "device/fences/report/suppressions.hpp"
#include "device/ignored_atomics.hpp"
#include "device/memory_check/checker.hpp"
#include "device/memory_check/host_stores.hpp"
#include "device/races/races.hpp"
#include "kfd/report/finding_details.hpp"

namespace uptempo::vgpu::kfd {

class CheckReport {
 public:
  // Throws std::runtime_error if the report file cannot be written, std::invalid_argument if the
  // file of suppressions is invalid.
  explicit CheckReport(const Options& options);

  // Null if fences are not checked.
  fences::Checker* checker() noexcept { return checker_.get(); }
  // Null if kernels are not checked for races.
  races::Races* races() noexcept { return races_.get(); }
  // Null if only floating-point atomics are checked.
  FindingDetailer* details() noexcept { return details_.get(); }
  // Null if memory is not checked.
  memory_check::Checker* memory_checker() noexcept { return memory_checker_.get(); }
  // The calling thread initialises ROCr, which has loaded hsa_tool.cpp, so the program's
  // allocations are known from now on. HIP does this, too, in its initialisation.
  void initialises_rocr();
  // Whether calls that made an allocation made it for the program, not for HIP itself.
  bool is_by_program(HostStackId allocated);
  // Null if floating-point atomics are not checked.
  IgnoredAtomics* ignored_atomics(uint32_t gpu_index) noexcept {
    return ignored_atomics_.empty() ? nullptr : ignored_atomics_[gpu_index].get();
  }

  // Call it once, at the program's end. Writes the advice if it was requested, reports what could
  // not be observed for lack of memory or time, and writes the closing line. `host_pages` may be
  // null. `dispatches`: completed ones.
  void finish(const HostPages* host_pages, uint64_t dispatches);

  // The status with which --error-exitcode replaces the process's own; empty: nothing was found so
  // far, or the option is not set. Async-signal-safe.
  std::optional<int> exit_status() const noexcept;

 private:
  void add(const fences::Finding& finding);
  void add(const fences::Repeated& repeated);
  void add(const memory_check::Finding& finding);
  void check_memory();
  std::vector<HostStackId> initialised_by();
  void finish_memory(uint64_t dispatches);
  void add_memory(fences::Closing& closing) const;
  void add(const races::Checked& dispatch, const races::Finding& finding);
  void advise();
  void report_unobserved(const HostPages* host_pages);
  void close(uint64_t dispatches);
  std::string target_of(const fences::Finding& finding) const;

  const DeviceDescription& device_;
  const std::vector<const DeviceDescription*> gpus_;
  const Checks checks_;
  const std::optional<uint32_t> error_exitcode_;
  std::atomic<bool> found_{false};
  Trace lines_;
  std::unique_ptr<FindingDetailer> details_;
  std::mutex suppressions_mutex_;  // taken last
  fences::Suppressions suppressions_;
  std::unique_ptr<fences::Journal> journal_;  // null: no advice requested
  std::unique_ptr<fences::Checker> checker_;
  std::unique_ptr<memory_check::Checker> memory_checker_;
  std::unique_ptr<memory_check::HostStores> host_stores_;  // with the former
  std::array<std::atomic<uint64_t>, memory_check::kClassNames.size()> of_memory_{};
  std::atomic<uint64_t> memory_suppressed_{0};
  std::mutex initialised_mutex_;               // taken last
  std::vector<HostStackId> initialised_by_{};  // empty: the program's allocations are not known
  std::unique_ptr<races::Races> races_;
  std::vector<std::unique_ptr<IgnoredAtomics>> ignored_atomics_;  // one per GPU, or none
  std::atomic<bool> finished_{false};
};

}  // namespace uptempo::vgpu::kfd
