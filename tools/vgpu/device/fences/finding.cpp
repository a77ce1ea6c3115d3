#include "device/fences/finding.hpp"

#include <array>

namespace uptempo::vgpu::fences {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      result += ' ';  // names of kernels come out of code objects
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string to_json(const Task& task) {
  if (task.kind == Task::Kind::host) return R"({"engine":"host"})";
  const bool dispatch = task.kind == Task::Kind::dispatch;
  return R"({"queue":)" + std::to_string(task.queue) + (dispatch ? R"(,"index":)" : R"(,"offset":)") +
         std::to_string(task.position) + (dispatch ? R"(,"kernel":)" : R"(,"engine":)") + quoted(task.name) +
         '}';
}

constexpr std::array<std::string_view, 3> kConflicts{"read-after-write", "write-after-read",
                                                     "write-after-write"};

}  // namespace

std::string_view class_name(Finding::Class what) noexcept {
  constexpr std::array<std::string_view, 3> names{"unordered", "stale", "unreleased"};
  return names[static_cast<std::size_t>(what)];
}

std::string to_json(const Finding& finding, std::string_view target) {
  return R"({"class":")" + std::string(class_name(finding.what)) + R"(","conflict":")" +
         std::string(kConflicts[static_cast<std::size_t>(finding.conflict)]) + R"(","writer":)" +
         to_json(*finding.writer) + R"(,"reader":)" + to_json(*finding.reader) + R"(,"address":)" +
         std::to_string(finding.address) + R"(,"bytes":)" + std::to_string(finding.bytes) + R"(,"reason":)" +
         quoted(finding.reason) + R"(,"rule":)" + quoted(finding.rule) + R"(,"hsa":"violated","target":")" +
         (finding.possible_on_target ? "possible" : "harmless") + R"(","device":)" + quoted(target) + '}';
}

}  // namespace uptempo::vgpu::fences
