#include "kfd/report/check_report.hpp"

#include <unistd.h>

#include <string>
#include <utility>

#include "device/fences/advice.hpp"
#include "device/hives.hpp"
#include "device/host/host_pages.hpp"
#include "kfd/machine/log.hpp"

namespace uptempo::vgpu::kfd {

CheckReport::CheckReport(const Options& options)
    : device_(*options.device),
      gpus_(options.gpus),
      checks_(options.checks),
      error_exitcode_(options.error_exitcode),
      lines_(options.checks.atomics ? options.report_file : std::string()) {
  if (!options.checks.atomics) return;
  suppressions_ = fences::Suppressions::read(options.suppressions_file);
  for (const DeviceDescription* gpu : options.gpus)
    ignored_atomics_.push_back(std::make_unique<IgnoredAtomics>(
        [this, target = std::string(gpu->target)](const IgnoredAtomic& atomic) {
          found_.store(true, std::memory_order_relaxed);  // a flag that orders nothing
          if (lines_.enabled()) {
            lines_.write(to_json(atomic, target));
          } else {
            report(to_sentence(atomic, target));
          }
        }));
  if (!options.checks.fences && !options.checks.memory && !options.checks.races) return;
  details_ = std::make_unique<FindingDetailer>();
  if (options.checks.memory) check_memory();
  if (options.checks.races)
    races_ = std::make_unique<races::Races>(
        [this](const races::Checked& dispatch, const races::Finding& finding) {
          add(dispatch, finding);
        },
        races::Races::Limits{.repeated = options.checks.repeated,
                             .same_values = options.checks.same_values},
        [this](const races::Checked& dispatch) {
          const std::lock_guard lock(suppressions_mutex_);
          return !suppressions_.suppress_race(dispatch.kernel, dispatch.queue);
        });
  if (!options.checks.fences) return;
  fences::JudgeOptions judge{.target = std::string(device_.target),
                             .specification = options.checks.specification,
                             .waits = options.checks.waits};
  bool one_hive = gpus_.size() > 1;
  for (uint32_t gpu = 1; gpu < gpus_.size(); ++gpu) {
    judge.other_targets.emplace_back(gpus_[gpu]->target);
    one_hive = one_hive && share_hive(0, gpu, options);
  }
  judge.peer_writes_probe = one_hive && peer_writes_probe(device_.target);
  if (options.checks.advice) journal_ = std::make_unique<fences::Journal>();
  checker_ = std::make_unique<fences::Checker>(
      std::move(judge), [this](const fences::Finding& finding) { add(finding); }, journal_.get(),
      options.checks.repeated ? nullptr : fences::Checker::PlaceOf([this](GpuAddress address) {
        return details_->allocation_place(address);
      }),
      [this](const fences::Finding& finding) {
        const std::lock_guard lock(suppressions_mutex_);
        return !suppressions_.suppress(finding);
      });
}

void CheckReport::add(const fences::Finding& finding) {
  found_.store(true, std::memory_order_relaxed);  // a flag that orders nothing
  const fences::FindingDetails details = details_->of(finding);
  if (lines_.enabled()) {
    lines_.write(to_json(finding, target_of(finding), details));
  } else {
    report(to_sentence(finding, details));
  }
}

void CheckReport::add(const fences::Repeated& repeated) {
  if (lines_.enabled()) {
    lines_.write(to_json(repeated));
  } else {
    report(to_sentence(repeated));
  }
}

void CheckReport::add(const races::Checked& dispatch, const races::Finding& finding) {
  found_.store(true, std::memory_order_relaxed);  // a flag that orders nothing
  races::Details details = details_->of(dispatch, finding);
  details.several_gpus = gpus_.size() > 1;
  if (lines_.enabled()) {
    lines_.write(to_json(dispatch, finding, gpus_[dispatch.gpu]->target, details));
  } else {
    report(to_sentence(dispatch, finding, details));
  }
}

// The GPU whose task found the conflict, or that of the earlier task if it was the host.
std::string CheckReport::target_of(const fences::Finding& finding) const {
  const bool by_host = finding.reader->kind == fences::Task::Kind::host;
  const uint32_t gpu = (by_host ? finding.writer : finding.reader)->agent;
  return std::string(gpu < gpus_.size() ? gpus_[gpu]->target : device_.target);
}

void CheckReport::advise() {
  // A reader of the report must be able to distinguish missing advice from advice to change
  // nothing.
  if (journal_->overflowed()) {
    lines_.write(R"({"advice":"none","reason":"the run was too long to be kept"})");
    report("advice: none; the recording of the run exceeded " +
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
  report("advice: incomplete; the run has too many fences to try all");
}

std::optional<int> CheckReport::exit_status() const noexcept {
  // A report that lacks lines may lack findings.
  if (!error_exitcode_ || !(found_.load(std::memory_order_relaxed) || lines_.is_incomplete()))
    return std::nullopt;
  return static_cast<int>(*error_exitcode_);
}

void CheckReport::finish(const HostPages* host_pages, uint64_t dispatches) {
  if (ignored_atomics_.empty() || finished_.exchange(true)) return;
  if (checker_ != nullptr) {
    checker_->finish();
    for (const fences::Repeated& repeated : checker_->repeated()) add(repeated);
    if (journal_ != nullptr) advise();
    report_unobserved(host_pages);
  }
  if (memory_checker_ != nullptr) finish_memory(dispatches);
  close(dispatches);
}

void CheckReport::close(uint64_t dispatches) {
  IgnoredAtomics::Counts ignored;
  for (const auto& of_gpu : ignored_atomics_) {
    const IgnoredAtomics::Counts counts = of_gpu->counts();
    ignored.lanes += counts.lanes;
    ignored.places += counts.places;
  }
  if (ignored.lanes != 0)
    report("atomics: " + std::to_string(ignored.lanes) +
           " floating-point atomics had no effect, at " + std::to_string(ignored.places) +
           " places");
  fences::Closing closing{
      .fences = checks_.fences,
      .memory = checks_.memory,
      .races = checks_.races,
      .waits = checks_.waits,
      .counts = {},
      .race_counts = races_ == nullptr ? races::Races::Counts{} : races_->counts(),
      .ignored_atomics = ignored.places,
      .others = {},
      .unused_suppressions = {},
      .report_file = lines_.file()};
  {
    const std::lock_guard lock(suppressions_mutex_);
    closing.unused_suppressions = suppressions_.unused();
  }
  if (checker_ != nullptr)
    closing.counts = checker_->counts();
  else
    closing.counts.dispatches = dispatches;
  if (memory_checker_ != nullptr) add_memory(closing);
  lines_.write(to_json(closing, static_cast<uint64_t>(getpid())));
  report(to_sentence(closing));
}

void CheckReport::report_unobserved(const HostPages* host_pages) {
  if (const auto unrecorded = checker_->counts().unrecorded; unrecorded != 0)
    report("fences: memory ran out while recording accesses of " + std::to_string(unrecorded) +
           " dispatches");
  if (host_pages == nullptr) return;
  if (host_pages->lost() != 0)
    report("fences: the host's accesses to " + std::to_string(host_pages->lost()) +
           " pages came too fast and were not observed");
  for (const std::string& line : host_pages->unobserved_waits()) report(line);
  if (host_pages->unwatched() != 0)
    note("fences: the host's accesses to " + std::to_string(host_pages->unwatched()) +
         " pages are too frequent and were not observed");
}

}  // namespace uptempo::vgpu::kfd
