#include "tools/fence_scope/verdict/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include <uptempo/runtime/runtime.hpp>
#include "tools/fence_scope/run/bench.hpp"
#include "tools/fence_scope/run/vgpu_process.hpp"
#include "tools/fence_scope/sequence/sequence_rules.hpp"
#include "tools/support/command.hpp"
#include "tools/support/interrupt.hpp"

// A place as [buffer, byte], or null.
template <>
struct nlohmann::adl_serializer<std::optional<uptempo::fence_scope::Bench::Place>> {
  using Place = uptempo::fence_scope::Bench::Place;
  static void to_json(json& value, const std::optional<Place>& place) {
    value = place ? json::array({place->buffer, place->byte}) : json(nullptr);
  }
  static void from_json(const json& value, std::optional<Place>& place) {
    if (!value.is_null()) place = Place{value.at(0), value.at(1)};
  }
};

namespace uptempo::fence_scope {

using nlohmann::ordered_json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, earlier, later, ordered, possible_on_target,
                                   earlier_writes, later_reads, place, reason)

namespace {

// ---- in a process under uptempo-vgpu

struct Lines {
  uint64_t l1_invalidated = 0, l2_invalidated = 0, l2_written_back = 0;

  void add(const uptempo_vgpu_device_counts& before, const uptempo_vgpu_device_counts& after) {
    l1_invalidated += after.vector_l1_lines_invalidated - before.vector_l1_lines_invalidated +
                      after.scalar_l1_lines_invalidated - before.scalar_l1_lines_invalidated;
    l2_invalidated += after.l2_lines_invalidated - before.l2_lines_invalidated;
    l2_written_back += after.l2_lines_written_back - before.l2_lines_written_back;
  }
};

// Lines that the checker has reported since the last call.
class NewLines {
 public:
  explicit NewLines(std::string file) : file_(std::move(file)) {}

  std::vector<std::string> take() {
    std::vector<std::string> lines;
    if (file_.empty()) return lines;
    std::ifstream in(file_);
    in.seekg(read_);
    for (std::string line; std::getline(in, line);) {
      if (in.eof()) break;  // incomplete line
      read_ += static_cast<std::streamoff>(line.size()) + 1;
      lines.push_back(std::move(line));
    }
    return lines;
  }

 private:
  const std::string file_;
  std::streamoff read_ = 0;
};

// Each pair once, for any number of lines and runs.
ordered_json findings_in(const std::vector<std::string>& lines, const Sequence& sequence,
                         const Placement& placement) {
  std::vector<Finding> all;
  for (const std::string& line : lines) {
    Finding finding = finding_of(line, sequence, placement);
    if (std::ranges::none_of(all, [&](const Finding& each) { return same(each, finding); }))
      all.push_back(std::move(finding));
  }
  return nlohmann::json(all);
}

// ---- in the calling program

Verdict verdict_of(bool complaint, bool unordered, bool possible, uint32_t wrong_runs) {
  if (!complaint) return wrong_runs > 0 ? Verdict::unknown : Verdict::correct;
  if (unordered) return Verdict::unordered;
  return possible || wrong_runs > 0 ? Verdict::stale : Verdict::unknown;
}

// The reason for a finding that the rules do not know: either a declaration is wrong, or the rules
// or the checker are.
std::string unexplained(const Finding& finding, const Sequence& sequence) {
  const std::string pair = fmt::format("{}: {}", in_words(finding, sequence), finding.reason);
  if (const auto step = undeclared(finding, sequence))
    return fmt::format(
        "'{}' ({}) does not declare all that it {}, found by the fence checker: {}",
        sequence.steps[*step].name, *step,
        (*step == finding.later.front() ? finding.later_reads : !finding.earlier_writes) ? "reads"
                                                                                         : "writes",
        pair);
  if (!finding.place) return "accesses outside the buffers, found by the fence checker: " + pair;
  return fmt::format(
      "the fence checker and the rules disagree, so one of them has a defect: {}, {}", pair,
      finding.ordered ? "which is fenced by the rules" : "which is ordered by the rules");
}

void set_pair(Judgement& judgement, size_t earlier, size_t later, bool earlier_writes) {
  judgement.writer = earlier;
  judgement.reader = later;
  if (!earlier_writes) std::swap(judgement.writer, judgement.reader);
}

}  // namespace

Judgement judge(const Sequence& sequence, const Headers& headers, const Evidence& evidence) {
  const std::vector<Hazard> hazards = hazards_of(sequence, headers);
  const std::vector<Finding>& findings = evidence.findings;
  std::vector<Finding> strange;
  std::ranges::copy_if(findings, std::back_inserter(strange),
                       [&](const Finding& each) { return hazard_of(each, hazards) == nullptr; });
  const Hazard* const hazard = worst_of(hazards);
  const Finding* const finding = worst_of(findings);
  const auto orders = [](const auto* complaint) {
    return complaint == nullptr || complaint->ordered;
  };

  Judgement judgement{.wrong_runs = evidence.wrong_runs, .runs = evidence.runs};
  judgement.verdict =
      verdict_of(hazard != nullptr || finding != nullptr, !orders(hazard) || !orders(finding),
                 std::ranges::any_of(findings, &Finding::possible_on_target), evidence.wrong_runs);
  // The checker saw actual accesses, so its pair is used unless the rules have a worse one.
  const Hazard* shown = finding != nullptr ? hazard_of(*finding, hazards) : hazard;
  const bool unseen =
      hazard != nullptr && (finding == nullptr || (orders(finding) && !orders(hazard)));
  if (unseen) shown = hazard;
  if (shown != nullptr) {
    set_pair(judgement, shown->earlier, shown->later, shown->earlier_writes);
    judgement.reason = in_words(*shown, sequence, headers);
    if (unseen && evidence.checked) judgement.reason += "; the fence checker saw no such accesses";
  } else if (finding != nullptr) {
    set_pair(judgement, finding->earlier.front(), finding->later.front(), finding->earlier_writes);
  }
  if (const Finding* const strangest = worst_of(strange))
    judgement.reason += (judgement.reason.empty() ? "" : "; ") + unexplained(*strangest, sequence);
  else if (judgement.reason.empty() && evidence.wrong_runs > 0)
    judgement.reason = "the rules promise right results, and some were wrong";
  return judgement;
}

std::vector<Evidence> gather_evidence(std::span<const Case> cases, const JudgeOptions& options) {
  const auto report_progress = [&](const std::string& what) {
    if (options.progress) options.progress(what);
  };
  const test::TemporaryDirectory directory;
  const std::string report = directory.file("report.jsonl"), runs = std::to_string(options.runs);
  std::vector<Evidence> all(cases.size());
  // No value if there was no time.
  const auto run = [&](const std::string& name, const std::vector<std::string>& launcher_options,
                       const std::vector<std::string>& arguments) -> std::optional<ordered_json> {
    report_progress(name);
    const auto left = options.seconds_left ? options.seconds_left() : std::nullopt;
    try {
      return run_under_vgpu(launcher_options, kJudgeTask, cases, arguments, left);
    } catch (const OutOfTime&) {
      if (options.left_out) options.left_out(name);
      return std::nullopt;
    } catch (const support::Interrupted&) {
      return std::nullopt;
    }
  };
  const auto checked =
      run("fence checker", {"--check", "fences,hsa,repeated", "--report", report}, {runs, report});
  for (size_t i = 0; checked && i < all.size(); ++i) {
    all[i].checked = true;
    all[i].findings = nlohmann::json(checked->at(i).at("findings")).get<std::vector<Finding>>();
  }
  for (uint32_t seed = 1; seed <= options.seeds; ++seed) {
    const auto outcomes = run(fmt::format("seed {} of {}", seed, options.seeds),
                              {"--incoherent", std::to_string(seed)}, {runs});
    for (size_t i = 0; outcomes && i < all.size(); ++i) {
      const ordered_json& one = outcomes->at(i);
      all[i].runs += options.runs;
      all[i].wrong_runs += one.at("wrong").get<uint32_t>();
      if (seed != 1) continue;
      all[i].l1_lines_invalidated = one.at("l1").get<uint64_t>();
      all[i].l2_lines_invalidated = one.at("l2").get<uint64_t>();
      all[i].l2_lines_written_back = one.at("back").get<uint64_t>();
    }
  }
  return all;
}

ordered_json run_cases(const Cases& cases, const std::vector<std::string>& arguments) {
  const auto runs = static_cast<uint32_t>(std::stoul(arguments.at(0)));
  const Runtime runtime;
  NewLines reported(arguments.size() > 1 ? arguments[1] : "");
  ordered_json out = ordered_json::array();
  for (size_t number = 0; number < cases.cases.size(); ++number) out.push_back(nullptr);
  for (size_t number = 0; number < cases.sequences.size(); ++number) {
    Bench bench(runtime.gpu(), cases.sequences[number]);
    const std::array<std::optional<uint32_t>, 2> queues = device_numbers(bench);
    (void)reported.take();  // of the reference run: none, since it waits for each step
    for (size_t i = 0; i < cases.cases.size(); ++i) {
      if (cases.cases[i].sequence != number) continue;
      uptempo_vgpu_device_counts before{};
      Lines lines;
      bench.watch([&] { before = device_counts().value(); },
                  [&] { lines.add(before, device_counts().value()); });
      Placement placement{.queues = queues,
                          .place_of = [&](uint64_t at) { return bench.place_of(at); }};
      uint32_t wrong = 0;
      for (uint32_t run = 0; run < runs; ++run) {
        Bench::Run one =
            bench.run(cases.cases[i].headers, run % 2 == 0 ? Release::gated : Release::ungated);
        wrong += one.correct ? 0 : 1;
        placement.packets.insert(placement.packets.end(), one.packets.begin(), one.packets.end());
      }
      out[i] = {{"findings", findings_in(reported.take(), bench.sequence(), placement)},
                {"wrong", wrong},
                {"l1", lines.l1_invalidated / runs},
                {"l2", lines.l2_invalidated / runs},
                {"back", lines.l2_written_back / runs}};
    }
  }
  return out;
}

}  // namespace uptempo::fence_scope
