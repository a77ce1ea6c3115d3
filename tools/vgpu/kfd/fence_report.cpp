#include "kfd/fence_report.hpp"

#include <string>

#include "kfd/log.hpp"

namespace uptempo::vgpu::kfd {
namespace {

std::string described(const fences::Task& task) {
  switch (task.kind) {
    case fences::Task::Kind::host:
      return "the host";
    case fences::Task::Kind::copy:
      return task.name + " (queue " + std::to_string(task.queue) + ", offset " +
             std::to_string(task.position) + ")";
    case fences::Task::Kind::dispatch:
      break;
  }
  return task.name + " (queue " + std::to_string(task.queue) + ", packet " + std::to_string(task.position) +
         ")";
}

std::string sentence(const fences::Finding& finding) {
  const bool overtakes = finding.conflict == fences::Finding::Conflict::write_after_read;
  const bool overwrites = finding.conflict == fences::Finding::Conflict::write_after_write;
  const fences::Task& first = overtakes ? *finding.reader : *finding.writer;
  const fences::Task& second = overtakes ? *finding.writer : *finding.reader;
  return std::string(class_name(finding.what)) + ": " + described(second) +
         (overtakes || overwrites ? " writes " : " reads ") + std::to_string(finding.bytes) +
         " bytes from address " + std::to_string(finding.address) + " on that " + described(first) +
         (overtakes ? " reads: " : " writes: ") + std::string(finding.reason) + " (" +
         std::string(finding.rule) + ")";
}

}  // namespace

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
          report(sentence(finding));
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
