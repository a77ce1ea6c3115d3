#include "device/fences/report/closing.hpp"

#include <string_view>

#include "device/fences/report/details_text.hpp"
#include "device/json_text.hpp"

namespace uptempo::vgpu::fences {
namespace {

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
  add(closing.race_counts.findings, closing.race_counts.findings == 1 ? "race" : "races");
  add(closing.ignored_atomics, "ignored-atomic");
  for (const auto& [name, number] : closing.others) add(number, name);
  return text;
}

}  // namespace

std::string to_sentence(const Closing& closing) {
  const Checker::Counts& counts = closing.counts;
  const races::Races::Counts& races = closing.race_counts;
  const bool only_races = closing.races && !closing.fences && !closing.memory;
  std::string text = "checked " + counted(only_races ? races.dispatches : counts.dispatches,
                                          "dispatch", "dispatches");
  if (closing.fences)
    text += ", " + counted(counts.copies, "copy", "copies") + " and " +
            counted(counts.bytes, "byte", "bytes");
  else if (closing.memory)
    text += " for errors of memory";
  else
    text += only_races ? " for races" : " for floating-point atomics without effect";
  if (closing.races && !only_races)
    text += ", and " + std::to_string(races.dispatches) + " of the dispatches for races";
  text += ": ";
  if (closing.findings() == 0)
    text += "no findings";
  else
    text += counted(closing.findings(), "finding", "findings") + " (" + by_class(closing) + ')';
  if (!closing.report_file.empty()) text += " in " + closing.report_file;
  if (counts.specification_only != 0)
    text += "; " + std::to_string(counts.specification_only) +
            " more that only the specification forbids (fences,hsa)";
  if (closing.fences && !closing.waits) text += "; missing waits not looked for (fences,waits)";
  if (counts.repeated != 0)
    text += "; " + counted(counts.repeated, "repetition", "repetitions") + " not shown (" +
            (closing.memory ? "memory" : "fences") + ",repeated)";
  if (races.repeated != 0)
    text += "; " + counted(races.repeated, "race", "races") +
            " of later dispatches not shown (races,repeated)";
  if (races.same_values != 0)
    text += "; " + counted(races.same_values, "pair", "pairs") +
            " of stores of the same values not shown (races,same-values)";
  if (races.incomplete != 0)
    text += "; " + counted(races.incomplete, "dispatch", "dispatches") +
            " not checked completely for races, for lack of memory";
  const uint64_t suppressed = counts.suppressed + races.suppressed;
  if (suppressed != 0) text += "; " + std::to_string(suppressed) + " suppressed";
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
  if (closing.races) {
    add("races", closing.race_counts.findings);
    add("dispatches_checked_for_races", closing.race_counts.dispatches);
    add("dispatches_incomplete_for_races", closing.race_counts.incomplete);
    add("same_values_not_shown", closing.race_counts.same_values);
  }
  add("ignored_atomics", closing.ignored_atomics);
  for (const auto& [name, number] : closing.others) add(name, number);
  add("specification_only", counts.specification_only);
  add("repeated", counts.repeated + closing.race_counts.repeated);
  add("suppressed", counts.suppressed + closing.race_counts.suppressed);
  line += R"(,"unused_suppressions":[)";
  for (size_t i = 0; i < closing.unused_suppressions.size(); ++i)
    line += (i == 0 ? "" : ",") + json_quoted(closing.unused_suppressions[i]);
  return line + "]}}";
}

}  // namespace uptempo::vgpu::fences
