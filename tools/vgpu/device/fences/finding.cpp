#include "device/fences/finding.hpp"

#include <algorithm>
#include <array>

namespace uptempo::vgpu::fences {
namespace {

// Bytes of the UTF-8 sequence that the text begins with; 0: of none (RFC 3629).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead > 0xf4 || length > text.size()) return 0;
  for (std::size_t at = 1; at < length; ++at)
    if ((byte(at) & 0xc0) != 0x80) return 0;
  const bool too_long = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool no_character = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
  return too_long || no_character ? 0 : length;
}

// Names of kernels come out of code objects: any bytes.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      result += "\\ufffd";
    } else if (static_cast<unsigned char>(text[0]) < 0x20) {
      result += ' ';
    } else {
      if (text[0] == '"' || text[0] == '\\') result += '\\';
      result += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result + '"';
}

std::string_view scope_name(FenceScope scope) {
  constexpr std::array<std::string_view, 3> names{"none", "agent", "system"};
  return names[static_cast<std::size_t>(scope)];
}

std::string to_json(const Task& task) {
  switch (task.kind) {
    case Task::Kind::host:
      return R"({"engine":"host"})";
    case Task::Kind::copy:
      return R"({"queue":)" + std::to_string(task.queue) + R"(,"offset":)" + std::to_string(task.position) +
             R"(,"engine":)" + quoted(task.name) + '}';
    case Task::Kind::dispatch:
      break;
  }
  return R"({"queue":)" + std::to_string(task.queue) + R"(,"index":)" + std::to_string(task.position) +
         R"(,"kernel":)" + quoted(task.name) + R"(,"barrier":)" + (task.barrier ? "true" : "false") +
         R"(,"acquire":")" + std::string(scope_name(task.acquire)) + R"(","release":")" +
         std::string(scope_name(task.release)) + R"("})";
}

// "sum.kd (queue 1, packet 7: barrier, acquire agent, release none)"
std::string described(const Task& task) {
  const std::string queue = " (queue " + std::to_string(task.queue);
  const std::string position = std::to_string(task.position);
  switch (task.kind) {
    case Task::Kind::host:
      return "the host";
    case Task::Kind::copy:
      return task.name + queue + ", offset " + position + ")";
    case Task::Kind::dispatch:
      break;
  }
  return task.name + queue + ", packet " + position + (task.barrier ? ": barrier, acquire " : ": acquire ") +
         std::string(scope_name(task.acquire)) + ", release " + std::string(scope_name(task.release)) + ")";
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

std::string to_sentence(const Finding& finding) {
  const bool overtakes = finding.conflict == Finding::Conflict::write_after_read;
  const bool writes = finding.conflict != Finding::Conflict::read_after_write;
  const Task& first = overtakes ? *finding.reader : *finding.writer;
  const Task& second = overtakes ? *finding.writer : *finding.reader;
  return std::string(class_name(finding.what)) + ": " + described(second) +
         (writes ? " writes " : " reads ") + std::to_string(finding.bytes) + " bytes from address " +
         std::to_string(finding.address) + " on, which " + described(first) +
         (overtakes ? " reads: " : " wrote: ") + std::string(finding.reason) + " [" +
         std::string(finding.rule) + ']';
}

}  // namespace uptempo::vgpu::fences
