#include "kfd/fence_report.hpp"

#include <string>

#include "device/host_pages.hpp"
#include "kfd/log.hpp"

namespace uptempo::vgpu::kfd {
FenceReport::FenceReport(const Options& options)
    : lines_(options.check_fences ? options.report_file : std::string()) {
  if (!options.check_fences) return;
  const std::string target(options.device->target);
  checker_ = std::make_unique<fences::Checker>(
      fences::JudgeOptions{.target = target, .specification = options.check_specification},
      [this, target](const fences::Finding& finding) {
        if (lines_.enabled()) {
          lines_.write(to_json(finding, target));
        } else {
          report(to_sentence(finding));
        }
      });
}

void FenceReport::finish(const HostPages* host_pages) {
  if (checker_ == nullptr || finished_.exchange(true)) return;
  checker_->finish();
  if (const auto unrecorded = checker_->counts().unrecorded; unrecorded != 0)
    report("fences: no memory to record all accesses of " + std::to_string(unrecorded) + " dispatches");
  if (host_pages == nullptr) return;
  if (host_pages->lost() != 0)
    report("fences: the host was too fast to be observed on " + std::to_string(host_pages->lost()) +
           " pages");
  if (host_pages->unwatched() != 0)
    note("fences: the host was not observed on " + std::to_string(host_pages->unwatched()) +
         " pages, which it uses too often");
}

}  // namespace uptempo::vgpu::kfd
