#include "tools/fence_scope/verdict/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

namespace uptempo::fence_scope {
namespace {

constexpr size_t kHost = Judgement::kNoStep;

bool contains(const std::vector<size_t>& steps, size_t step) {
  return std::ranges::find(steps, step) != steps.end();
}

// Copies that touch the byte; and the host, for which the bench also copies.
std::vector<size_t> copies_at(const std::optional<Bench::Place>& place, bool writes,
                              const Sequence& sequence) {
  std::vector<size_t> steps;
  for (size_t i = 0; place && i < sequence.steps.size(); ++i) {
    const Step& step = sequence.steps[i];
    if (step.kind == Step::Kind::copy && holds(writes ? step.to : step.from, *place))
      steps.push_back(i);
  }
  steps.push_back(kHost);
  return steps;
}

std::vector<size_t> steps_of(const nlohmann::json& side, bool writes,
                             const std::optional<Bench::Place>& place, const Sequence& sequence,
                             const Placement& placement) {
  if (!side.contains("kernel"))
    return side.at("engine") == "host" ? std::vector{kHost} : copies_at(place, writes, sequence);
  const auto queue = side.at("queue").get<uint32_t>();
  const auto index = side.at("index").get<uint64_t>();
  const auto number = std::ranges::find(placement.queues, queue);
  // A queue of the runtime: a copy made by a kernel.
  if (number == placement.queues.end()) return copies_at(place, writes, sequence);
  const auto packet = std::ranges::find_if(placement.packets, [&](const Bench::Packet& each) {
    return each.queue == number - placement.queues.begin() && each.index == index;
  });
  return {packet == placement.packets.end() ? kHost : packet->step};
}

bool declares(size_t number, const Bench::Place& place, bool writes, const Sequence& sequence) {
  if (number == kHost) return true;
  const Step& step = sequence.steps[number];
  if (step.kind == Step::Kind::copy) return holds(writes ? step.to : step.from, place);
  return std::ranges::any_of(step.accesses, [&](const Access& access) {
    return access.writes == writes && holds(access, place);
  });
}

auto rank(const Finding& finding) {
  size_t earlier = finding.earlier.front(), later = finding.later.front();
  // Without order, which of the two comes first is random.
  if (!finding.ordered && earlier != kHost && earlier > later) std::swap(earlier, later);
  return std::tuple(finding.ordered, !finding.possible_on_target, later, earlier);
}

}  // namespace

Finding finding_of(std::string_view line, const Sequence& sequence, const Placement& placement) {
  try {
    const nlohmann::json report = nlohmann::json::parse(line);
    const auto conflict = report.at("conflict").get<std::string>();
    Finding finding{.ordered = report.at("class") != "unordered",
                    .possible_on_target = report.at("target") == "possible",
                    .earlier_writes = conflict != "write-after-read",
                    .later_reads = conflict == "read-after-write",
                    .place = placement.place_of(report.at("address").get<uint64_t>()),
                    .reason = report.at("reason").get<std::string>()};
    // The report's "writer" is the writer of any conflict; "reader" is the later writer of two.
    const bool two_writers = conflict == "write-after-write";
    std::vector<size_t> writer =
        steps_of(report.at("writer"), true, finding.place, sequence, placement);
    std::vector<size_t> reader =
        steps_of(report.at("reader"), two_writers, finding.place, sequence, placement);
    if (!finding.earlier_writes) std::swap(writer, reader);
    finding.earlier = std::move(writer);
    finding.later = std::move(reader);
    return finding;
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(
        fmt::format("the fence checker's report has an invalid line ({}): {}", error.what(), line));
  }
}

bool same(const Finding& a, const Finding& b) noexcept {
  const auto key = [](const Finding& finding) {
    return std::tie(finding.earlier, finding.later, finding.ordered, finding.possible_on_target,
                    finding.earlier_writes, finding.later_reads);
  };
  return key(a) == key(b);
}

bool agrees(const Finding& finding, const Hazard& hazard) noexcept {
  return finding.ordered == hazard.ordered &&
         ((contains(finding.earlier, hazard.earlier) && contains(finding.later, hazard.later)) ||
          (!hazard.ordered && contains(finding.earlier, hazard.later) &&
           contains(finding.later, hazard.earlier)));
}

const Hazard* hazard_of(const Finding& finding, const std::vector<Hazard>& hazards) noexcept {
  const Hazard* found = nullptr;
  for (const Hazard& hazard : hazards) {
    if (!agrees(finding, hazard)) continue;
    const bool turned = !contains(finding.earlier, hazard.earlier);
    const bool same_accesses = turned ? finding.earlier_writes == !hazard.later_reads &&
                                            finding.later_reads == !hazard.earlier_writes
                                      : finding.earlier_writes == hazard.earlier_writes &&
                                            finding.later_reads == hazard.later_reads;
    if (same_accesses) return &hazard;
    if (found == nullptr) found = &hazard;
  }
  return found;
}

const Finding* worst_of(const std::vector<Finding>& findings) noexcept {
  const auto worst = std::ranges::min_element(findings, {}, rank);
  return worst == findings.end() ? nullptr : &*worst;
}

std::string in_words(const Finding& finding, const Sequence& sequence) {
  const std::string where =
      finding.place ? fmt::format(" {}, from byte {}", sequence.buffers[finding.place->buffer].name,
                                  finding.place->byte)
                    : " memory outside the buffers";
  return fmt::format("{} {} what {} {}{}", name_of(finding.later.front(), sequence),
                     finding.later_reads ? "reads" : "overwrites",
                     name_of(finding.earlier.front(), sequence),
                     finding.earlier_writes ? "wrote to" : "reads of", where);
}

std::optional<size_t> undeclared(const Finding& finding, const Sequence& sequence) {
  if (!finding.place) return std::nullopt;
  if (!declares(finding.later.front(), *finding.place, !finding.later_reads, sequence))
    return finding.later.front();
  if (!declares(finding.earlier.front(), *finding.place, finding.earlier_writes, sequence))
    return finding.earlier.front();
  return std::nullopt;
}

}  // namespace uptempo::fence_scope
