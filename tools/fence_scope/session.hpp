// Runs, judges, counts and models the cells of one or several sequences on a device.
//
// Thread safety: one owner.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/fence_scope/experiment.hpp"
#include "tools/fence_scope/run/bench.hpp"
#include "tools/support/device.hpp"

namespace uptempo::fence_scope {

class Session {
 public:
  // `profile` selects the device whose time is modelled on the virtual GPU; "" selects the emulated
  // device, if it has a profile. Throws support::UsageError for an unknown profile.
  Session(const support::Device& device, TimingMode timing, const std::string& profile,
          const Method& method);
  ~Session();

  // Creates the bench of another sequence. Errors: as of Bench's constructor; OutOfTime when this
  // share of the run's seconds is over; support::Interrupted once support::interrupted(), unless it
  // is the first sequence, without which there is no report.
  Bench& add(const Sequence& sequence, double share);
  void add_cells(std::vector<Cell> cells);  // to the bench that was added last

  // Runs all cells by the method and recommends one of each group. Throws Error.
  std::vector<Cell> carry_out();
  // What carry_out() had no time for (Method::run_seconds).
  const std::vector<std::string>& warnings() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::fence_scope
