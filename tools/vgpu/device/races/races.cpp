#include "device/races/races.hpp"

#include <utility>

namespace uptempo::vgpu::races {

Races::Races(Report report, Limits limits, Filter filter)
    : report_(std::move(report)),
      limits_(limits),
      filter_(std::move(filter)),
      budget_(limits.bytes) {}

std::unique_ptr<DispatchRaces> Races::begin(const DispatchShape& shape) {
  const uint64_t groups = uint64_t{shape.workgroups[0]} * shape.workgroups[1] * shape.workgroups[2];
  const bool fits = groups <= Stamp::kMostGroups;
  {
    const std::lock_guard lock(mutex_);
    ++counts_.dispatches;
    if (!fits) ++counts_.incomplete;
  }
  return fits ? std::make_unique<DispatchRaces>(shape, budget_) : nullptr;
}

void Races::end(DispatchRaces& dispatch, const Checked& checked) {
  const std::vector<Finding> findings = dispatch.take_findings();
  if (findings.empty() && !dispatch.is_incomplete()) return;
  const std::lock_guard lock(mutex_);
  if (dispatch.is_incomplete()) ++counts_.incomplete;
  for (const Finding& finding : findings) {
    if (filter_ && !filter_(checked)) {
      ++counts_.suppressed;
      continue;
    }
    const bool is_new = known_[{checked.kernel, finding.lds, finding.writer.instruction,
                                finding.other.instruction, finding.same_values}]++ == 0;
    if (finding.same_values && !limits_.same_values) {
      counts_.same_values += is_new;
      continue;
    }
    if (!is_new && !limits_.repeated) {
      ++counts_.repeated;
      continue;
    }
    ++counts_.findings;
    report_(checked, finding);
  }
}

Races::Counts Races::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace uptempo::vgpu::races
