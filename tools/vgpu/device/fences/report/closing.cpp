#include "device/fences/report/closing.hpp"

#include <string_view>

#include "device/json_text.hpp"

namespace uptempo::vgpu::fences {
namespace {

// "1 copy", "2 copies"
std::string counted(uint64_t number, std::string_view one, std::string_view several) {
  return std::to_string(number) + ' ' + std::string(number == 1 ? one : several);
}

// "1 unordered, 2 stale", without the classes that did not occur.
std::string by_class(const Closing& closing) {
  std::string text;
  const auto add = [&](uint64_t number, std::string_view name) {
    if (number == 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(number) + ' ' + std::string(name);
  };
  add(closing.counts.unordered, "unordered");
  add(closing.counts.stale, "stale");
  add(closing.counts.unreleased, "unreleased");
  add(closing.ignored_atomics, "ignored-atomic");
  for (const auto& [name, number] : closing.others) add(number, name);
  return text;
}

}  // namespace

std::string to_sentence(const Closing& closing) {
  const Checker::Counts& counts = closing.counts;
  std::string text = "checked " + counted(counts.dispatches, "dispatch", "dispatches");
  if (closing.fences)
    text += ", " + counted(counts.copies, "copy", "copies") + " and " +
            counted(counts.bytes, "byte", "bytes");
  else
    text += closing.memory ? " for errors of memory" : " for floating-point atomics without effect";
  text += ": ";
  if (closing.findings() == 0)
    text += "no findings";
  else
    text += counted(closing.findings(), "finding", "findings") + " (" + by_class(closing) + ')';
  if (!closing.report_file.empty()) text += " in " + closing.report_file;
  if (counts.specification_only != 0)
    text += "; " + std::to_string(counts.specification_only) + " more with fences,hsa";
  if (counts.repeated != 0)
    text += "; " + counted(counts.repeated, "repetition", "repetitions") + " not shown (" +
            (closing.memory ? "memory" : "fences") + ",repeated)";
  if (counts.suppressed != 0) text += "; " + std::to_string(counts.suppressed) + " suppressed";
  if (!closing.unused_suppressions.empty()) {
    text += "; unused suppressions: ";
    for (size_t i = 0; i < closing.unused_suppressions.size(); ++i)
      text += (i == 0 ? "" : ", ") + closing.unused_suppressions[i];
  }
  return text;
}

std::string to_json(const Closing& closing, uint64_t process) {
  const Checker::Counts& counts = closing.counts;
  std::string line = R"({"summary":{"process":)" + std::to_string(process);
  const auto add = [&](std::string_view name, uint64_t number) {
    line += ",\"" + std::string(name) + "\":" + std::to_string(number);
  };
  add("dispatches", counts.dispatches);
  add("copies", counts.copies);
  add("bytes", counts.bytes);
  add("findings", closing.findings());
  add("unordered", counts.unordered);
  add("stale", counts.stale);
  add("unreleased", counts.unreleased);
  add("ignored_atomics", closing.ignored_atomics);
  for (const auto& [name, number] : closing.others) add(name, number);
  add("specification_only", counts.specification_only);
  add("repeated", counts.repeated);
  add("suppressed", counts.suppressed);
  line += R"(,"unused_suppressions":[)";
  for (size_t i = 0; i < closing.unused_suppressions.size(); ++i)
    line += (i == 0 ? "" : ",") + json_quoted(closing.unused_suppressions[i]);
  return line + "]}}";
}

}  // namespace uptempo::vgpu::fences
