#include "test/litmus/findings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace uptempo::litmus {
namespace {

using nlohmann::json;

template <class Predicate>
std::vector<StepId> steps_where(const Test& test, Predicate predicate) {
  std::vector<StepId> steps;
  for (StepId number = 0; number < test.steps.size(); ++number)
    if (predicate(number, test.steps[number])) steps.push_back(number);
  return steps;
}

std::vector<StepId> steps_of(const json& side, const Test& test, const std::vector<Run>& runs,
                             const QueueNumbers& queues) {
  if (side.contains("kernel")) {
    const uint64_t index = side.at("index").get<uint64_t>(),
                   queue = side.at("queue").get<uint64_t>();
    return steps_where(test, [&](StepId number, const Step& step) {
      return step.kind == Step::Kind::dispatch && queues[step.queue] == queue &&
             std::ranges::any_of(
                 runs, [&](const Run& run) { return run.placement[number].packet_index == index; });
    });
  }
  if (side.at("engine") == "host")
    return steps_where(test, [](StepId, const Step& step) { return !step.is_on_device(); });
  return steps_where(test, [](StepId, const Step& step) { return step.kind == Step::Kind::copy; });
}

bool contains(const std::vector<StepId>& steps, StepId step) {
  return std::ranges::find(steps, step) != steps.end();
}

}  // namespace

std::vector<Found> read_findings(std::istream& report, const Test& test,
                                 const std::vector<Run>& runs, const QueueNumbers& queues) {
  std::vector<Found> all;
  for (std::string line; std::getline(report, line);) {
    const json finding = json::parse(line, nullptr, false);
    if (finding.contains("summary")) continue;  // the last line of a process
    if (finding.is_discarded() || !finding.contains("class"))
      throw std::runtime_error("the checker's report has a line that is not a finding: " + line);
    Found found{.writers = steps_of(finding.at("writer"), test, runs, queues),
                .readers = steps_of(finding.at("reader"), test, runs, queues),
                .ordered = finding.at("class") != "unordered",
                .possible_on_target = finding.at("target") == "possible",
                .line = line};
    if (found.writers.empty() || found.readers.empty())
      throw std::runtime_error("the checker's report has a finding that concerns no step of " +
                               test.name + ": " + line);
    all.push_back(std::move(found));
  }
  return all;
}

bool agrees(const Found& found, const Hazard& hazard) noexcept {
  const bool same_pair =
      (contains(found.writers, hazard.earlier) && contains(found.readers, hazard.later)) ||
      (contains(found.writers, hazard.later) && contains(found.readers, hazard.earlier));
  return same_pair && found.ordered == hazard.ordered &&
         found.possible_on_target == hazard.possible_on_target;
}

QueueNumbers queues_of_first_finding(std::istream& report) {
  std::string line;
  std::getline(report, line);
  const json finding = json::parse(line, nullptr, false);
  if (finding.is_discarded() || !finding.contains("writer") ||
      !finding["writer"].contains("kernel") || !finding.contains("reader") ||
      !finding["reader"].contains("kernel"))
    throw std::runtime_error(
        "the checker's report must begin with a race between two kernels; its first line is '" +
        line + "'");
  return {finding["writer"]["queue"].get<uint64_t>(), finding["reader"]["queue"].get<uint64_t>()};
}

}  // namespace uptempo::litmus
