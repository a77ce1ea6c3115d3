#include "device/fences/report/finding_text.hpp"

#include <array>

#include "device/demangled.hpp"
#include "device/fences/report/details_text.hpp"
#include "device/json_text.hpp"

namespace uptempo::vgpu::fences {
namespace {

std::string to_json(const TaskDetails& details) {
  std::string text;
  if (!details.lines.empty()) text += R"(,"lines":)" + json_list(details.lines);
  if (!details.published_by.empty()) text += R"(,"published_by":)" + to_json(details.published_by);
  if (!details.queue_created_by.empty())
    text += R"(,"queue_created_by":)" + to_json(details.queue_created_by);
  return text;
}

std::string to_json(const Task& task, bool several_gpus, const TaskDetails& details) {
  const std::string queue = R"({"queue":)" + std::to_string(task.queue) +
                            (several_gpus ? R"(,"gpu":)" + std::to_string(task.agent) : "") +
                            json_field(details.queue_name);
  switch (task.kind) {
    case Task::Kind::host:
      return R"({"engine":"host")" +
             (details.site.empty() ? "" : R"(,"site":)" + to_json(details.site)) + '}';
    case Task::Kind::copy:
      return queue + R"(,"offset":)" + std::to_string(task.position) + R"(,"engine":)" +
             json_quoted(task.name) + to_json(details) + '}';
    case Task::Kind::dispatch:
      break;
  }
  const std::string readable = readable_kernel(task.name);
  return queue + R"(,"index":)" + std::to_string(task.position) + R"(,"kernel":)" +
         json_quoted(task.name) +
         (readable == task.name ? "" : R"(,"source_name":)" + json_quoted(readable)) +
         R"(,"barrier":)" + (task.barrier ? "true" : "false") + R"(,"acquire":")" +
         std::string(scope_name(task.acquire)) + R"(","release":")" +
         std::string(scope_name(task.release)) + '"' + to_json(details) + '}';
}

// "solver.cpp:7", "a.out+0x1234"
std::string place_of(const HostFrame& frame) {
  if (!frame.source.empty()) return frame.source;
  return (frame.module.empty() ? "" : frame.module + '+') + hex(frame.offset);
}

// Example: "sum.kd (stream 0x55d0c0, queue 1, packet 7: barrier, acquire agent, release none)".
// With several GPUs, "(GPU 1, stream ...".
std::string described(const Task& task, bool several_gpus, const TaskDetails& details) {
  const std::string queue =
      " (" + (several_gpus ? "GPU " + std::to_string(task.agent) + ", " : std::string()) +
      described(details.queue_name) + "queue " + std::to_string(task.queue);
  const std::string position = std::to_string(task.position);
  switch (task.kind) {
    case Task::Kind::host:
      return details.site.empty() ? "the host" : "the host (at " + place_of(details.site[0]) + ")";
    case Task::Kind::copy:
      return task.name + queue + ", offset " + position + ")";
    case Task::Kind::dispatch:
      break;
  }
  return readable_kernel(task.name) + queue + ", packet " + position +
         (task.barrier ? ": barrier, acquire " : ": acquire ") +
         std::string(scope_name(task.acquire)) + ", release " +
         std::string(scope_name(task.release)) + ")";
}

// `does`: "reads", "wrote"
std::string described(const Task& task, const TaskDetails& details, std::string_view does) {
  if (!details.site.empty() && !details.site[0].function.empty())
    return std::string(kIndent) + "the host " + std::string(does) + " in" + called(details.site);
  if (details.lines.empty() && details.published_by.empty()) return {};
  std::string text{kIndent};
  text += task.kind == Task::Kind::dispatch ? readable_kernel(task.name) : task.name;
  if (!details.lines.empty()) text += ' ' + std::string(does) + " at " + listed(details.lines);
  if (details.published_by.empty()) return text;
  return text + (details.lines.empty() ? " was published by" : ", published by") +
         called(details.published_by);
}

std::string described_queue(const Task& task, const TaskDetails& details) {
  if (details.queue_created_by.empty()) return {};
  return std::string(kIndent) + "queue " + std::to_string(task.queue) + " was created by" +
         called(details.queue_created_by);
}

constexpr std::array<std::string_view, 3> kConflicts{"read-after-write", "write-after-read",
                                                     "write-after-write"};

}  // namespace

std::string readable_kernel(std::string_view name) {
  constexpr std::string_view kSuffix = ".kd";
  std::string symbol(name);
  if (!symbol.starts_with("_Z")) return symbol;
  if (symbol.ends_with(kSuffix)) symbol.resize(symbol.size() - kSuffix.size());
  std::string readable = demangled(symbol);
  return readable == symbol ? std::string(name) : readable;
}

std::string to_json(const Finding& finding, std::string_view target,
                    const FindingDetails& details) {
  return R"({"class":")" + std::string(class_name(finding.what)) + R"(","conflict":")" +
         std::string(kConflicts[static_cast<size_t>(finding.conflict)]) + R"(","writer":)" +
         to_json(*finding.writer, finding.several_gpus, details.writer) + R"(,"reader":)" +
         to_json(*finding.reader, finding.several_gpus, details.reader) + R"(,"address":)" +
         std::to_string(finding.address) + R"(,"bytes":)" + std::to_string(finding.bytes) +
         (details.memory ? json_field(*details.memory, finding.address) : "") + R"(,"reason":)" +
         json_quoted(finding.reason) + R"(,"rule":)" + json_quoted(finding.rule) +
         (details.remedy.empty() ? "" : R"(,"remedy":)" + json_quoted(details.remedy)) +
         R"(,"hsa":"violated","target":")" +
         (finding.possible_on_target ? "possible" : "harmless") + R"(","device":)" +
         json_quoted(target) + '}';
}

std::string to_json(const Repeated& repeated) {
  const auto object = [](const Task& task) {
    const bool is_host = task.kind == Task::Kind::host, is_copy = task.kind == Task::Kind::copy;
    if (is_host) return std::string(R"({"engine":"host"})");
    return R"({"queue":)" + std::to_string(task.queue) +
           (is_copy ? R"(,"offset":)" : R"(,"index":)") + std::to_string(task.position) +
           (is_copy ? R"(,"engine":)" : R"(,"kernel":)") + json_quoted(task.name) + '}';
  };
  return R"({"repeated":{"class":")" + std::string(class_name(repeated.what)) +
         R"(","conflict":")" + std::string(kConflicts[static_cast<size_t>(repeated.conflict)]) +
         R"(","writer":)" + object(repeated.writer) + R"(,"reader":)" + object(repeated.reader) +
         R"(,"times":)" + std::to_string(repeated.times) + "}}";
}

std::string to_sentence(const Repeated& repeated) {
  const auto place = [](const Task& task) -> std::string {
    if (task.kind == Task::Kind::host) return "the host";
    const bool is_copy = task.kind == Task::Kind::copy;
    return (is_copy ? task.name : readable_kernel(task.name)) + " (queue " +
           std::to_string(task.queue) + (is_copy ? ", offset " : ", packet ") +
           std::to_string(task.position) + ')';
  };
  return std::string(class_name(repeated.what)) + ": " + std::to_string(repeated.times) +
         " times in all: " + place(repeated.writer) + " and " + place(repeated.reader) +
         ", and others like them";
}

std::string to_sentence(const Finding& finding, const FindingDetails& details) {
  const bool overtakes = finding.conflict == Finding::Conflict::write_after_read;
  const bool writes = finding.conflict != Finding::Conflict::read_after_write;
  const Task& first = overtakes ? *finding.reader : *finding.writer;
  const Task& second = overtakes ? *finding.writer : *finding.reader;
  const TaskDetails& of_first = overtakes ? details.reader : details.writer;
  const TaskDetails& of_second = overtakes ? details.writer : details.reader;
  std::string text = std::string(class_name(finding.what)) + ": " +
                     described(second, finding.several_gpus, of_second) +
                     (writes ? " writes " : " reads ") + std::to_string(finding.bytes) +
                     " bytes from address " + hex(finding.address) + " on, which " +
                     described(first, finding.several_gpus, of_first) +
                     (overtakes ? " reads: " : " wrote: ") + std::string(finding.reason) + " [" +
                     std::string(finding.rule) + ']';
  text += described(second, of_second, writes ? "writes" : "reads");
  text += described(first, of_first, overtakes ? "reads" : "wrote");
  if (first.id.actor != second.id.actor)  // the two are easily told apart by their queues
    text += described_queue(*finding.writer, details.writer) +
            described_queue(*finding.reader, details.reader);
  if (details.memory) text += described(*details.memory, finding.address);
  if (!details.remedy.empty()) text += std::string(kIndent) + "remedy: " + details.remedy;
  return text;
}

}  // namespace uptempo::vgpu::fences
