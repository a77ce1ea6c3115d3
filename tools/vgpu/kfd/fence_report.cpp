#include "kfd/fence_report.hpp"

#include <string>

#include "kfd/log.hpp"

namespace uptempo::vgpu::kfd {
FenceReport::FenceReport(const Options& options)
    : lines_(options.check_fences ? options.report_file : std::string()) {
  if (!options.check_fences) return;
  const std::string target(options.device->target);
  checker_ = std::make_unique<fences::Checker>(
      fences::CheckerOptions{.target = target, .specification = options.check_specification},
      [this, target](const fences::Finding& finding) {
        if (lines_.enabled()) {
          lines_.write(to_json(finding, target));
        } else {
          report(to_sentence(finding));
        }
      });
}

void FenceReport::finish(AddressSpace& memory) {
  if (checker_ == nullptr || finished_.exchange(true)) return;
  AddressSpace::Reader reader(memory);
  reader.enter();
  checker_->finish([&](GpuAddress page) -> std::optional<MemoryKind> {
    const Mapping* const mapping = reader.find(page);
    if (mapping == nullptr) return std::nullopt;
    return mapping->kind;
  });
  reader.leave();
}

}  // namespace uptempo::vgpu::kfd
