// The fence checker's findings, told in the steps of the litmus test that they are about.
#pragma once

#include <array>
#include <istream>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/litmus/rules.hpp"
#include "tools/litmus/runner.hpp"

namespace uptempo::litmus {

// Which numbers the report gives to the runner's queues.
using QueueNumbers = std::array<uint64_t, queue_count>;

struct Found {
  std::vector<StepId> writers,
      readers;           // the steps that it may mean: one packet; all copies; all that the host does
  bool ordered = false;  // false: class unordered
  bool possible_on_target = false;
  std::string line;  // as reported
};

// Reads the lines of a report on one test, run as often as there are `runs`. Throws std::runtime_error naming the line for one that is not
// about a step of the test, or that is no finding at all.
std::vector<Found> read_findings(std::istream& report, const Test& test, const std::vector<Run>& runs,
                                 const QueueNumbers& queues);

// The same pair of steps, with the same complaint.
bool agrees(const Found& found, const Hazard& hazard) noexcept;

// The numbers that a report's first finding gives to writer and reader, which must be packets. Throws std::runtime_error otherwise.
QueueNumbers queues_of_first_finding(std::istream& report);

}  // namespace uptempo::litmus
