#include "kfd/fence_report.hpp"

#include <limits>
#include <string>

#include "device/fences/advice.hpp"
#include "device/host_pages.hpp"
#include "kfd/log.hpp"

namespace uptempo::vgpu::kfd {

FenceReport::FenceReport(const Options& options)
    : device_(*options.device), lines_(options.checks.atomics ? options.report_file : std::string()) {
  if (!options.checks.atomics) return;
  const std::string target(device_.target);
  ignored_atomics_ = std::make_unique<IgnoredAtomics>([this, target](const IgnoredAtomic& atomic) {
    if (lines_.enabled()) {
      lines_.write(to_json(atomic, target));
    } else {
      report(to_sentence(atomic, target));
    }
  });
  if (!options.checks.fences) return;
  if (options.checks.advice) journal_ = std::make_unique<fences::Journal>();
  checker_ = std::make_unique<fences::Checker>(
      fences::JudgeOptions{.target = target, .specification = options.checks.specification},
      [this, target](const fences::Finding& finding) {
        if (lines_.enabled()) {
          lines_.write(to_json(finding, target));
        } else {
          report(to_sentence(finding));
        }
      },
      journal_.get(),
      options.checks.repeated ? std::numeric_limits<uint32_t>::max() : fences::Checker::kRepetitions);
}

void FenceReport::advise() {
  // Who reads the lines must not take silence for advice to leave everything as it is.
  if (journal_->overflowed()) {
    lines_.write(R"({"advice":"none","reason":"the run was too long to be kept"})");
    report("advice: none; the run was too long to be kept in " +
           std::to_string(fences::Journal::kLimitBytes >> 20) + " MiB");
    return;
  }
  const fences::Advices advices = fences::advise(journal_->recording(), device_);
  for (const fences::Advice& advice : advices.list) {
    if (lines_.enabled()) {
      lines_.write(to_json(advice, device_));
    } else {
      report(to_sentence(advice, device_));
    }
  }
  if (!advices.incomplete) return;
  lines_.write(R"({"advice":"incomplete","reason":"the run was too long to try all its fences"})");
  report("advice: the run was too long to try all its fences");
}

void FenceReport::finish(const HostPages* host_pages) {
  if (ignored_atomics_ == nullptr || finished_.exchange(true)) return;
  if (const IgnoredAtomics::Counts ignored = ignored_atomics_->counts(); ignored.lanes != 0)
    report("atomics: " + std::to_string(ignored.lanes) + " floating-point atomics did nothing, at " +
           std::to_string(ignored.places) + " places");
  if (checker_ == nullptr) return;
  checker_->finish();
  if (const auto unrecorded = checker_->counts().unrecorded; unrecorded != 0)
    report("fences: no memory to record all accesses of " + std::to_string(unrecorded) + " dispatches");
  if (journal_ != nullptr) advise();
  if (host_pages == nullptr) return;
  if (host_pages->lost() != 0)
    report("fences: the host was too fast to be observed on " + std::to_string(host_pages->lost()) +
           " pages");
  if (host_pages->unwatched() != 0)
    note("fences: the host was not observed on " + std::to_string(host_pages->unwatched()) +
         " pages, which it uses too often");
}

}  // namespace uptempo::vgpu::kfd
