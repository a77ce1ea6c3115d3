// Runs, judges, counts and models the cells of one or several sequences on a device.
//
// Thread safety: one owner.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <uptempo/vgpu/query.h>
#include "tools/fence_scope/experiment.hpp"
#include "tools/fence_scope/run/bench.hpp"
#include "tools/fence_scope/run/profile.hpp"
#include "tools/fence_scope/verdict/judge.hpp"
#include "tools/support/device.hpp"

namespace uptempo::fence_scope {

class Session {
 public:
  // `profile` selects the device whose time is modelled on the virtual GPU; "" selects the emulated
  // device, if it has a profile. Throws support::UsageError for an unknown profile.
  Session(const support::Device& device, TimingMode timing, const std::string& profile,
          const Method& method);

  // Creates the bench of another sequence. Errors: as of Bench's constructor; OutOfTime when this
  // share of the run's seconds is over; support::Interrupted once support::interrupted(), unless it
  // is the first sequence, without which there is no report.
  Bench& add(const Sequence& sequence, double share);
  void add_cells(std::vector<Cell> cells);  // to the bench that was added last

  // Runs all cells by the method and recommends one of each group. Throws Error.
  std::vector<Cell> carry_out();
  // What carry_out() had no time for (Method::run_seconds).
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Watched {
    std::unique_ptr<Bench> bench;
    std::optional<uptempo_vgpu_device_counts> before{}, after{};  // of the last run
  };

  std::vector<Evidence> evidence();

  const support::Device& device_;
  const TimingMode timing_;
  const Profile* const profile_;  // null: no model
  const Method method_;
  std::vector<std::unique_ptr<Watched>> benches_;
  std::vector<Cell> cells_;
  std::vector<Watched*> bench_of_;     // per cell
  std::vector<DeviceCounts> counted_;  // of each cell's last gated run
  std::vector<std::string> warnings_;
};

}  // namespace uptempo::fence_scope
