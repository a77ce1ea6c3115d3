// The fence checker's findings, expressed as steps of the litmus test that they concern.
#pragma once

#include <array>
#include <istream>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/litmus/rules.hpp"
#include "tools/litmus/runner.hpp"

namespace uptempo::litmus {

// The report's numbers for the runner's queues.
using QueueNumbers = std::array<uint64_t, kQueueCount>;

struct Found {
  std::vector<StepId> writers,
      readers;  // the steps that it may mean: one packet; all copies; all steps of the host
  bool ordered = false;  // false: class unordered
  bool possible_on_target = false;
  std::string line;  // the report's line
};

// Reads the lines of a report on one test that ran once per element of `runs`. Errors: throws
// std::runtime_error with the line if it is not a finding, or concerns no step of the test.
std::vector<Found> read_findings(std::istream& report, const Test& test,
                                 const std::vector<Run>& runs, const QueueNumbers& queues);

// True for the same pair of steps with the same complaint.
bool agrees(const Found& found, const Hazard& hazard) noexcept;

// The queue numbers of writer and reader in a report's first finding. Errors: throws
// std::runtime_error if they are not packets.
QueueNumbers queues_of_first_finding(std::istream& report);

}  // namespace uptempo::litmus
