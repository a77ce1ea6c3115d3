#include "device/fences/finding.hpp"

#include <array>

#include "device/json_text.hpp"
#include "device/waits/code_site.hpp"

namespace uptempo::vgpu::fences {
namespace {

std::string to_json(const Task& task, bool several_gpus) {
  const std::string queue = R"({"queue":)" + std::to_string(task.queue) +
                            (several_gpus ? R"(,"gpu":)" + std::to_string(task.agent) : "");
  switch (task.kind) {
    case Task::Kind::host:
      return R"({"engine":"host")" +
             (task.site == 0 ? "" : R"(,"site":)" + json_quoted(code_site(task.site))) + '}';
    case Task::Kind::copy:
      return queue + R"(,"offset":)" + std::to_string(task.position) + R"(,"engine":)" +
             json_quoted(task.name) + '}';
    case Task::Kind::dispatch:
      break;
  }
  return queue + R"(,"index":)" + std::to_string(task.position) + R"(,"kernel":)" +
         json_quoted(task.name) + R"(,"barrier":)" + (task.barrier ? "true" : "false") +
         R"(,"acquire":")" + std::string(scope_name(task.acquire)) + R"(","release":")" +
         std::string(scope_name(task.release)) + R"("})";
}

// Example: "sum.kd (queue 1, packet 7: barrier, acquire agent, release none)". With several GPUs,
// "(GPU 1, queue 1, ...".
std::string described(const Task& task, bool several_gpus) {
  const std::string queue = (several_gpus ? " (GPU " + std::to_string(task.agent) + ", queue "
                                          : std::string(" (queue ")) +
                            std::to_string(task.queue);
  const std::string position = std::to_string(task.position);
  switch (task.kind) {
    case Task::Kind::host:
      return task.site == 0 ? "the host" : "the host (at " + code_site(task.site) + ")";
    case Task::Kind::copy:
      return task.name + queue + ", offset " + position + ")";
    case Task::Kind::dispatch:
      break;
  }
  return task.name + queue + ", packet " + position +
         (task.barrier ? ": barrier, acquire " : ": acquire ") +
         std::string(scope_name(task.acquire)) + ", release " +
         std::string(scope_name(task.release)) + ")";
}

constexpr std::array<std::string_view, 3> kConflicts{"read-after-write", "write-after-read",
                                                     "write-after-write"};

}  // namespace

std::string_view class_name(Finding::Class what) noexcept {
  constexpr std::array<std::string_view, 3> names{"unordered", "stale", "unreleased"};
  return names[static_cast<size_t>(what)];
}

std::string to_json(const Finding& finding, std::string_view target) {
  return R"({"class":")" + std::string(class_name(finding.what)) + R"(","conflict":")" +
         std::string(kConflicts[static_cast<size_t>(finding.conflict)]) + R"(","writer":)" +
         to_json(*finding.writer, finding.several_gpus) + R"(,"reader":)" +
         to_json(*finding.reader, finding.several_gpus) + R"(,"address":)" +
         std::to_string(finding.address) + R"(,"bytes":)" + std::to_string(finding.bytes) +
         R"(,"reason":)" + json_quoted(finding.reason) + R"(,"rule":)" + json_quoted(finding.rule) +
         R"(,"hsa":"violated","target":")" +
         (finding.possible_on_target ? "possible" : "harmless") + R"(","device":)" +
         json_quoted(target) + '}';
}

std::string to_sentence(const Finding& finding) {
  const bool overtakes = finding.conflict == Finding::Conflict::write_after_read;
  const bool writes = finding.conflict != Finding::Conflict::read_after_write;
  const Task& first = overtakes ? *finding.reader : *finding.writer;
  const Task& second = overtakes ? *finding.writer : *finding.reader;
  return std::string(class_name(finding.what)) + ": " + described(second, finding.several_gpus) +
         (writes ? " writes " : " reads ") + std::to_string(finding.bytes) +
         " bytes from address " + std::to_string(finding.address) + " on, which " +
         described(first, finding.several_gpus) + (overtakes ? " reads: " : " wrote: ") +
         std::string(finding.reason) + " [" + std::string(finding.rule) + ']';
}

}  // namespace uptempo::vgpu::fences
