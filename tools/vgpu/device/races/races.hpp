// The race detector of a process (--check races): what its dispatches found, without repetitions.
//
// Thread safety: thread-safe. Reports come one at a time, from the thread that calls end().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "device/host/host_stacks.hpp"
#include "device/races/dispatch_races.hpp"
#include "device/races/finding.hpp"

namespace uptempo::vgpu::races {

class Races {
 public:
  struct Limits {
    bool repeated =
        false;  // report a pair of instructions for each dispatch, not only for the first
    bool same_values = false;  // also report stores of the same values
    uint64_t bytes = Budget::kDefaultBytes;
  };
  using Report = std::function<void(const Checked& dispatch, const Finding& finding)>;
  // Returns false for findings that are not wanted.
  using Filter = std::function<bool(const Checked& dispatch)>;

  explicit Races(Report report) : Races(std::move(report), Limits{}) {}
  Races(Report report, Limits limits, Filter filter = {});

  // Returns the observer of a dispatch, or null if it has too many workgroups.
  std::unique_ptr<DispatchRaces> begin(const DispatchShape& shape);
  // Call it when all workgroups have ended, also after a fault.
  void end(DispatchRaces& dispatch, const Checked& checked);

  struct Counts {
    uint64_t dispatches = 0;   // that were checked
    uint64_t findings = 0;     // that were reported
    uint64_t repeated = 0;     // of later dispatches with the same pair of instructions
    uint64_t same_values = 0;  // pairs of instructions that were not reported for that reason
    uint64_t suppressed = 0;
    uint64_t incomplete = 0;  // dispatches that were not recorded completely, for lack of memory
  };
  Counts counts() const;

 private:
  const Report report_;
  const Limits limits_;
  const Filter filter_;
  Budget budget_;
  mutable std::mutex mutex_;
  Counts counts_;
  // By kernel, instructions and same_values.
  std::map<std::tuple<std::string, bool, GpuAddress, GpuAddress, bool>, uint64_t> known_;
};

}  // namespace uptempo::vgpu::races
