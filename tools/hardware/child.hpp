// Runs a probe in a process of its own and makes a row of what it leaves.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/hardware/probe.hpp"
#include "tools/support/command.hpp"

namespace uptempo::hardware {

// A row of the report.
struct Row {
  std::string probe, rule;
  Answer answer;
  double seconds = 0;        // of the process
  std::string stderr_end{};  // the last part of what it wrote there
};

// The line of JSON that a child prints last, and its reading, which throws std::runtime_error for
// any other line.
std::string line_of(const Answer& answer);
Answer answer_of_line(const std::string& line);

// The answer of a process that was to print one. A process that did not end, crashed or printed
// something else differs, and keeps an answer that it had printed before. A device or program that
// is missing was not asked.
Answer answer_of(const test::CommandResult& result, double limit_s);

// How the text of a row begins whose process did not end.
inline constexpr std::string_view kHangs = "it hangs";

// The command that runs one probe: this program again, or for a probe of HIP's hardware_check_hip
// beside it. Empty if that is not there.
std::vector<std::string> command_for(const std::string& probe, const std::string& device);

}  // namespace uptempo::hardware
