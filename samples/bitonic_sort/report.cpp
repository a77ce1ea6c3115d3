#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace uptempo::sort {
namespace {

// A count that explains the time of an iteration.
struct Count {
  const char *above, *title;  // two lines
  uint64_t Counters::*member;
};

constexpr Count kDispatching[] = {
    {"signals", "created", &Counters::signals_created},
    {"kernarg", "allocs", &Counters::kernarg_allocations},
    {"host", "waits", &Counters::host_waits},
    {"door-", "bells", &Counters::doorbells},
    {"system", "acq.", &Counters::system_acquires},
    {"system", "rel.", &Counters::system_releases},
    {"compl.", "signals", &Counters::completion_signals},
};

constexpr Count kCopying[] = {
    {"bytes", "staged", &Counters::bytes_staged},
    {"", "pins", &Counters::pins},
    {"pinned", "copies", &Counters::copies_pinned},
    {"pin-once", "copies", &Counters::copies_pinned_for_once},
    {"staged", "copies", &Counters::copies_staged},
};

template <size_t count>
std::string counts_table(const Report& report, const char* subject, int width,
                         const Count (&counts)[count]) {
  std::string above = fmt::format("{:<18}", subject),
              title = fmt::format("{:<18}", "per iteration");
  for (const Count& each : counts) {
    above += fmt::format(" {:>{}}", each.above, width);
    title += fmt::format(" {:>{}}", each.title, width);
  }
  std::string text = fmt::format("{}\n{}\n{:-<{}}\n", above, title, "", title.size());
  for (size_t i = 0; i < report.rungs.size(); ++i) {
    text += fmt::format("{:<18}", rung_label(report, i));
    for (const Count& each : counts)
      text += fmt::format(" {:>{}}", report.rungs[i].counts.*each.member, width);
    text += '\n';
  }
  return text;
}

}  // namespace

std::string rung_label(const Report& report, size_t i) {
  if (report.rungs.size() == 1) return "these switches";
  return i == 0 ? report.rungs[i].rung.name : "+ " + report.rungs[i].rung.name;
}

bool is_right(const Report& report) {
  return std::ranges::all_of(report.rungs,
                             [](const RungResult& rung) { return rung.wrong_iterations == 0; });
}

std::string table(const Report& report) {
  std::string text =
      fmt::format("{} keys {}, {} kernels, workgroups of {}\n", report.length,
                  report.descending ? "descending" : "ascending", report.kernels, report.workgroup);
  if (report.rungs.size() == 1)
    text += fmt::format("Switches: {}\n", report.rungs.front().rung.name);
  text += fmt::format("Median of {} iterations{}\n\n", report.rungs.front().iteration_us.size(),
                      report.is_virtual ? ", virtual GPU time" : "");
  text += fmt::format("{:<18} {:>14} {:>12} {:>9}\n{:-<56}\n", "", "us / iteration", "delta us",
                      "speed-up", "");
  for (size_t i = 0; i < report.rungs.size(); ++i) {
    const RungResult& result = report.rungs[i];
    text += fmt::format("{:<18} {:>14.1f} {:>12} {:>8.2f}x\n", rung_label(report, i),
                        result.us_per_iteration,
                        i == 0 ? "" : fmt::format("{:+.1f}", result.delta_us), result.speedup);
  }
  text += '\n' + counts_table(report, "dispatching,", 7, kDispatching);
  text += '\n' + counts_table(report, "copying,", 10, kCopying) + '\n';
  if (is_right(report)) return text + "Verified: every result equals std::sort of its input.\n";
  text += "WRONG RESULTS:";
  for (const RungResult& result : report.rungs)
    if (result.wrong_iterations > 0)
      text += fmt::format(" {} ({} of {} iterations)", result.rung.name, result.wrong_iterations,
                          result.iteration_us.size());
  return text + ".\n";
}

}  // namespace uptempo::sort
