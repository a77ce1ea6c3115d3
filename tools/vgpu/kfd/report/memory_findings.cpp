// The part of CheckReport for --check memory.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kfd/machine/log.hpp"
#include "kfd/report/check_report.hpp"

namespace uptempo::vgpu::kfd {

void CheckReport::check_memory() {
  memory_checker_ = std::make_unique<memory_check::Checker>(
      [this](const memory_check::Finding& finding) { add(finding); }, checks_.repeated,
      checks_.buffers);
  host_stores_ = std::make_unique<memory_check::HostStores>(*memory_checker_);
}

void CheckReport::add(const memory_check::Finding& finding) {
  memory_check::Details details = details_->of(finding);
  details.several_gpus = gpus_.size() > 1;
  fences::Suppressions::OfMemory named{
      .what = memory_check::class_name(finding.what),
      .task = finding.packet ? finding.packet->name : "host",
      .is_dispatch = finding.packet && !finding.packet->is_copy,
      .queue = finding.packet ? std::optional(finding.packet->queue) : std::nullopt,
      .allocated_by = {}};
  for (const fences::HostFrame& frame : details.allocated_by)
    named.allocated_by.push_back(frame.function);
  {
    const std::lock_guard lock(suppressions_mutex_);
    if (suppressions_.suppress(named)) {
      memory_suppressed_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  found_.store(true, std::memory_order_relaxed);  // a flag that orders nothing
  of_memory_[static_cast<size_t>(finding.what)].fetch_add(1, std::memory_order_relaxed);
  const uint32_t gpu = finding.packet ? finding.packet->gpu : 0;
  if (lines_.enabled()) {
    lines_.write(to_json(finding, gpus_[gpu]->target, details));
  } else {
    report(to_sentence(finding, details));
  }
}

void CheckReport::initialises_rocr() {
  const HostStackId stack = details_->stacks.capture();
  const std::lock_guard lock(initialised_mutex_);
  if (std::ranges::find(initialised_by_, stack) == initialised_by_.end())
    initialised_by_.push_back(stack);
}

std::vector<HostStackId> CheckReport::initialised_by() {
  const std::lock_guard lock(initialised_mutex_);
  return initialised_by_;
}

bool CheckReport::is_by_program(HostStackId allocated) {
  return details_->is_by_program(allocated, initialised_by());
}

void CheckReport::finish_memory(uint64_t dispatches) {
  const std::vector<HostStackId> initialisations = initialised_by();
  memory_checker_->report_leaks(
      [&](HostStackId stack) { return details_->place_of(stack, initialisations); });
  if (const uint64_t unrecorded = memory_checker_->unrecorded(); unrecorded != 0)
    report("memory: memory ran out while recording " + std::to_string(unrecorded) + " allocations");
  if (const uint64_t unobserved = host_stores_->unobserved(); unobserved != 0)
    report("memory: all bytes of " + std::to_string(unobserved) +
           " allocations count as stored to by the host, because the process has too many mappings "
           "to observe its stores (vm.max_map_count)");
  if (dispatches != 0 && initialisations.empty())
    report(
        "memory: the program's allocations are not known, because ROCr has not loaded the library "
        "that HSA_TOOLS_LIB names for uptempo-vgpu");
}

void CheckReport::add_memory(fences::Closing& closing) const {
  for (size_t what = 0; what < of_memory_.size(); ++what)
    closing.others.emplace_back(memory_check::kClassNames[what],
                                of_memory_[what].load(std::memory_order_relaxed));
  closing.counts.repeated += memory_checker_->repeated();
  closing.counts.suppressed += memory_suppressed_.load(std::memory_order_relaxed);
}

}  // namespace uptempo::vgpu::kfd
