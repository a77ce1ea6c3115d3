// Tests verdicts: what follows from which evidence, and what the virtual GPU's instruments report
// about workloads with too few fences. A separate program, because it starts itself.
#include "tools/fence_scope/verdict/judge.hpp"

#include <algorithm>
#include <random>

#include "test/support/catch.hpp"
#include "tools/fence_scope/run/vgpu_process.hpp"
#include "tools/fence_scope/sequence/case_message.hpp"
#include "tools/fence_scope/sequence/sequence_rules.hpp"
#include "tools/fence_scope/sequence/workloads.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using aql::Barrier;
using aql::FenceScope;

namespace {

Sequence chain() {
  return make_workload("chain",
                       {.kernels = 6, .bytes_per_kernel = 4096, .working_set_bytes = 8192});
}

}  // namespace

TEST_CASE("headers that satisfy the rules are correct, but unknown if a run was wrong", "[judge]") {
  const Sequence sequence = chain();
  CHECK(judge(sequence, plan(sequence).headers).verdict == Verdict::correct);
  const Judgement broken = judge(sequence, plan(sequence).headers, {.runs = 4, .wrong_runs = 1});
  CHECK(broken.verdict == Verdict::unknown);
  CHECK(broken.wrong_runs == 1);
  CHECK(broken.runs == 4);
}

TEST_CASE("two steps without order are named, whatever the results of the runs", "[judge]") {
  const Sequence sequence = chain();
  Headers headers = plan(sequence).headers;
  headers[3].barrier = Barrier::off;
  const Judgement judgement = judge(sequence, headers, {.runs = 4});
  CHECK(judgement.verdict == Verdict::unordered);
  CHECK(judgement.writer == 2);
  CHECK(judgement.reader == 3);
  CHECK_FALSE(judgement.reason.empty());
}

TEST_CASE("a missing fence is unknown until a run or the checker has shown it", "[judge]") {
  const Sequence sequence = chain();
  Headers headers = plan(sequence).headers;
  headers.back().release = FenceScope::agent;
  CHECK(judge(sequence, headers).verdict == Verdict::unknown);
  CHECK(judge(sequence, headers, {.runs = 4, .wrong_runs = 1}).verdict == Verdict::stale);
  // The last kernel and the host.
  Finding finding{.earlier = {5},
                  .later = {Judgement::kNoStep},
                  .ordered = true,
                  .place = Bench::Place{0, 0},
                  .reason = "r"};
  const Judgement judgement = judge(sequence, headers, {.checked = true, .findings = {finding}});
  finding.possible_on_target = true;
  CHECK(judge(sequence, headers, {.checked = true, .findings = {finding}}).verdict ==
        Verdict::stale);
  CHECK(judgement.verdict == Verdict::unknown);
  CHECK(judgement.reader == Judgement::kNoStep);  // the host
}

TEST_CASE("the reported pair is the checker's if the rules contain it too", "[judge]") {
  const Sequence sequence = chain();
  Headers headers = plan(sequence).headers;
  headers[1].barrier = headers[4].barrier = Barrier::off;
  CHECK(judge(sequence, headers).reader == 1);
  const Finding finding{.earlier = {3}, .later = {4}, .place = Bench::Place{0, 0}, .reason = "r"};
  const Judgement judgement = judge(sequence, headers, {.checked = true, .findings = {finding}});
  CHECK(judgement.verdict == Verdict::unordered);
  CHECK(judgement.writer == 3);
  CHECK(judgement.reader == 4);
  CHECK(judgement.reason.find("nothing orders the two") != std::string::npos);
  CHECK(judgement.reason.find("disagree") == std::string::npos);
  // Either of two unordered steps may run first. If the later one does, it reads before the other
  // one overwrites.
  const Finding turned{.earlier = {4}, .later = {3}, .place = Bench::Place{0, 0}, .reason = "r"};
  const Judgement early = judge(sequence, headers, {.checked = true, .findings = {turned}});
  CHECK(early.writer == 4);
  CHECK(early.reader == 3);
  CHECK(early.reason.find("disagree") == std::string::npos);
}

TEST_CASE("a finding about undeclared accesses names step, buffer and byte", "[judge]") {
  Sequence sequence = chain();
  // The third step reads what the second one wrote, but no longer declares it.
  std::erase_if(sequence.steps[2].accesses, [](const Access& access) { return !access.writes; });
  const Headers headers = plan(sequence).headers;
  const Finding finding{.earlier = {1},
                        .later = {2},
                        .possible_on_target = true,
                        .place = Bench::Place{sequence.steps[1].accesses[0].buffer, 64},
                        .reason = "no barrier bit"};
  const Judgement judgement = judge(sequence, headers, {.checked = true, .findings = {finding}});
  CHECK(judgement.verdict == Verdict::unordered);
  CHECK(judgement.writer == 1);
  CHECK(judgement.reader == 2);
  CAPTURE(judgement.reason);
  CHECK(judgement.reason.starts_with(
      "'link 2' (2) does not declare all that it reads, found by the fence checker: "));
  CHECK(judgement.reason.find("from byte 64: no barrier bit") != std::string::npos);
}

TEST_CASE(
    "if rules and checker disagree about declared accesses, the reason says so, whatever the "
    "verdict",
    "[judge]") {
  const Sequence sequence = chain();
  const Headers planned = plan(sequence).headers;
  const Access* written = nullptr;
  for (const Access& access : sequence.steps[1].accesses)
    if (access.writes) written = &access;
  REQUIRE(written != nullptr);
  const Finding finding{.earlier = {1},
                        .later = {3},
                        .later_reads = false,
                        .place = Bench::Place{written->buffer, written->begin},
                        .reason = "r"};
  const Judgement judgement = judge(sequence, planned, {.checked = true, .findings = {finding}});
  CAPTURE(judgement.reason);
  CHECK(judgement.verdict == Verdict::unordered);
  CHECK(judgement.reason.starts_with(
      "the fence checker and the rules disagree, so one of them has a defect: "));
  CHECK(judgement.writer == 1);
  CHECK(judgement.reader == 3);
  // The same if the checker ran and saw none of the accesses that the rules complain about.
  Headers headers = planned;
  headers[3].barrier = Barrier::off;
  const Judgement unseen = judge(sequence, headers, {.checked = true});
  CHECK(unseen.verdict == Verdict::unordered);
  CHECK(unseen.reader == 3);
  CHECK(unseen.reason.ends_with("; the fence checker saw no such accesses"));
  CHECK_FALSE(judge(sequence, headers).reason.ends_with("saw no such accesses"));
}

TEST_CASE(
    "a line of the checker's report is translated to steps, by queue and index of its packets",
    "[judge]") {
  const Sequence sequence = make_workload("copy-kernel-copy", {.kernels = 3});
  size_t up = 0, kernel = 0, down = 0;
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    const Step& step = sequence.steps[i];
    if (step.kind == Step::Kind::copy) (i == 0 ? up : down) = i;
    if (step.kind == Step::Kind::dispatch && kernel == 0) kernel = i;
  }
  using Role = Bench::Packet::Role;
  const Placement placement{
      .queues = {7u, 9u},
      .packets = {{.role = Role::dispatch, .queue = 0, .step = kernel, .index = 40},
                  {.role = Role::dispatch, .queue = 0, .step = kernel + 1, .index = 41},
                  {.role = Role::dispatch, .queue = 1, .step = kernel + 2, .index = 40}},
      .place_of = [&](uint64_t address) -> std::optional<Bench::Place> {
        if (address < 1000) return std::nullopt;
        return Bench::Place{sequence.steps[up].to.buffer, address - 1000};
      }};
  const auto finding_for = [&](const std::string& conflict, const std::string& writer,
                               const std::string& reader, int address = 1000) {
    return finding_of(R"({"class":"stale","conflict":")" + conflict + R"(","writer":)" + writer +
                          R"(,"reader":)" + reader + R"(,"address":)" + std::to_string(address) +
                          R"(,"bytes":4,"reason":"r","target":"possible"})",
                      sequence, placement);
  };
  const std::string one = R"({"queue":7,"index":40,"kernel":"k.kd"})",
                    two = R"({"queue":7,"index":41,"kernel":"k.kd"})",
                    other = R"({"queue":9,"index":40,"kernel":"k.kd"})",
                    ahead = R"({"queue":7,"index":3,"kernel":"k.kd"})",
                    copy = R"({"queue":4,"offset":64,"engine":"copy_linear"})",
                    host = R"({"engine":"host"})";
  using Steps = std::vector<size_t>;
  const Finding raw = finding_for("read-after-write", one, two);
  CHECK(raw.earlier == Steps{kernel});
  CHECK(raw.later == Steps{kernel + 1});
  CHECK(raw.ordered);
  CHECK(raw.possible_on_target);
  const Finding war = finding_for("write-after-read", other, one);
  CHECK(war.earlier == Steps{kernel});
  CHECK(war.later == Steps{kernel + 2});
  CHECK_FALSE(war.earlier_writes);
  CHECK_FALSE(war.later_reads);
  // A copy is identified by the memory that it accesses; the host's own copies access the same.
  const Finding from_engine = finding_for("read-after-write", copy, one);
  CHECK(from_engine.earlier == Steps{up, Judgement::kNoStep});
  CHECK(finding_for("read-after-write", copy, one, 1).earlier == Steps{Judgement::kNoStep});
  CHECK_FALSE(finding_for("read-after-write", copy, one, 1).place.has_value());
  CHECK(finding_for("read-after-write", ahead, host).earlier == Steps{Judgement::kNoStep});
  CHECK(finding_for("read-after-write", one, host).later == Steps{Judgement::kNoStep});
  CHECK_THROWS_AS(finding_of("{}", sequence, placement), std::runtime_error);
  CHECK(down > kernel);
}

TEST_CASE("cases are passed to another process unchanged", "[judge]") {
  for (const Workload& workload : workloads()) {
    CAPTURE(workload.name);
    const Sequence sequence = make_workload(workload.name);
    const Case one{&sequence, plan(sequence).headers}, two{&sequence, everywhere(sequence)};
    const std::vector<Case> cases{one, two};
    const std::vector<uint8_t> bytes = to_bytes(cases);
    const Cases read = from_bytes(bytes);
    REQUIRE(read.sequences.size() == 1);
    REQUIRE(read.cases.size() == 2);
    for (size_t i = 0; i < sequence.steps.size(); ++i)
      if (sequence.steps[i].kind == Step::Kind::dispatch)
        CHECK(read.cases[0].headers[i] == one.headers[i]);
    // Nothing is lost: writing what was read gives the same bytes.
    const std::vector<Case> again{{&read.sequences[0], read.cases[0].headers},
                                  {&read.sequences[0], read.cases[1].headers}};
    CHECK(to_bytes(again) == bytes);
    CHECK(read.sequences[0].steps.size() == sequence.steps.size());
    CHECK(read.sequences[0].steps.back().kernel == sequence.steps.back().kernel);
  }
}

TEST_CASE("checker and stale caches agree with the rules on each workload and each mistake",
          "[judge][device]") {
  std::vector<Sequence> sequences{chain(), make_workload("producer-consumer", {.kernels = 6}),
                                  make_workload("copy-kernel-copy", {.kernels = 3})};
  std::vector<Case> cases;
  for (const Sequence& sequence : sequences) {
    const Headers planned = plan(sequence).headers;
    cases.push_back({&sequence, planned});
    Headers headers = planned;  // the host does not get the results
    for (aql::HeaderFlags& flags : headers) flags.release = FenceScope::agent;
    cases.push_back({&sequence, headers});
    headers = planned;  // no packet invalidates old copies
    for (aql::HeaderFlags& flags : headers) flags.acquire = FenceScope::none;
    cases.push_back({&sequence, headers});
  }
  std::vector<std::string> progress;
  const std::vector<Evidence> evidence =
      gather_evidence(cases, {.seeds = 4, .runs = 2, .progress = [&](const std::string& what) {
                                progress.push_back(what);
                              }});
  CHECK(progress.size() == 5);
  REQUIRE(evidence.size() == cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    CHECK(evidence[i].checked);
    const Judgement judgement = judge(*cases[i].sequence, cases[i].headers, evidence[i]);
    CHECK(judgement.runs == 8);
    REQUIRE(evidence[i].l2_lines_written_back.has_value());
    if (i % 3 == 0) {
      CHECK(judgement.verdict == Verdict::correct);
      CHECK(evidence[i].findings.empty());
      CHECK(judgement.wrong_runs == 0);
      CHECK(*evidence[i].l2_lines_written_back > 0);
    } else {
      CHECK(judgement.verdict == Verdict::stale);
      CHECK_FALSE(evidence[i].findings.empty());
      CHECK(judgement.wrong_runs > 0);
    }
    if (i % 3 == 1 && cases[i].sequence->name == "chain")
      CHECK(*evidence[i].l2_lines_written_back == 0);
  }
}

TEST_CASE(
    "for a kernel that occurs many times the checker's pair is exactly the two steps that lack "
    "order",
    "[judge][device]") {
  const Sequence sequence =
      make_workload("chain", {.kernels = 40, .bytes_per_kernel = 1024, .working_set_bytes = 2048});
  for (const Step& step : sequence.steps) REQUIRE(step.kernel == sequence.steps[0].kernel);
  const Headers planned = plan(sequence).headers;
  std::vector<Case> cases;
  for (size_t step = 1; step < sequence.steps.size(); ++step) {
    cases.push_back({&sequence, planned});
    cases.back().headers[step].barrier = Barrier::off;
  }
  const std::vector<Evidence> evidence = gather_evidence(cases, {.seeds = 0, .runs = 2});
  for (size_t i = 0; i < cases.size(); ++i) {
    const size_t step = i + 1;
    CAPTURE(step);
    // Gated and ungated runs report these two steps and no others, through whichever of their
    // accesses.
    size_t unordered = 0;
    for (const Finding& finding : evidence[i].findings) {
      REQUIRE(finding.earlier.size() == 1);
      REQUIRE(finding.later.size() == 1);
      if (finding.ordered) {
        // The host reads the result of the last step only.
        CHECK(step + 1 == sequence.steps.size());
        CHECK(finding.later[0] == Judgement::kNoStep);
        continue;
      }
      ++unordered;
      CHECK(std::min(finding.earlier[0], finding.later[0]) == step - 1);
      CHECK(std::max(finding.earlier[0], finding.later[0]) == step);
    }
    CHECK(unordered > 0);
    const Judgement judgement = judge(sequence, cases[i].headers, evidence[i]);
    CHECK(judgement.verdict == Verdict::unordered);
    CHECK(std::min(judgement.writer, judgement.reader) == step - 1);
    CHECK(std::max(judgement.writer, judgement.reader) == step);
    CHECK(judgement.reason.find("checker") == std::string::npos);
  }
}

TEST_CASE("rules and checker agree about each pair, for random changes to a workload's headers",
          "[judge][device]") {
  std::vector<Sequence> sequences;
  for (const Workload& workload : workloads())
    sequences.push_back(workload.name == std::string("bitonic-sort")
                            ? make_workload(workload.name, {.bytes_per_kernel = 1024})
                            : make_workload(workload.name, {.kernels = 6}));
  std::mt19937 random(7);
  std::vector<Case> cases;
  for (const Sequence& sequence : sequences)
    for (int i = 0; i < 12; ++i) {
      Headers headers = plan(sequence).headers;
      // One mistake at first, then more and more.
      for (int mistakes = 0; mistakes <= i / 3; ++mistakes) {
        aql::HeaderFlags& flags = headers[random() % headers.size()];
        if (random() % 3 == 0) flags.barrier = Barrier::off;
        if (random() % 3 == 0) flags.acquire = FenceScope(random() % 3);
        if (random() % 3 == 0) flags.release = FenceScope(random() % 3);
      }
      cases.push_back({&sequence, headers});
    }
  const std::vector<Evidence> evidence = gather_evidence(cases, {.seeds = 0, .runs = 2});
  size_t complaints = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::vector<Hazard> hazards = hazards_of(*cases[i].sequence, cases[i].headers);
    const Judgement judgement = judge(*cases[i].sequence, cases[i].headers, evidence[i]);
    CAPTURE(i, cases[i].sequence->name, judgement.reason);
    complaints += hazards.empty() ? 0 : 1;
    CHECK(hazards.empty() == evidence[i].findings.empty());
    for (const Finding& finding : evidence[i].findings) {
      CAPTURE(in_words(finding, *cases[i].sequence), finding.reason);
      CHECK(std::ranges::any_of(hazards,
                                [&](const Hazard& hazard) { return agrees(finding, hazard); }));
    }
    CHECK(judgement.reason.find("checker") == std::string::npos);
  }
  CHECK(complaints > 20);
}

// Runs before Catch2's main(), through the linker's option --wrap=main.
extern "C" int __real_main(int argc, char** argv);
extern "C" int __wrap_main(int argc, char** argv) {
  if (const auto status = run_task(argc, argv, {{kJudgeTask, run_cases}})) return *status;
  return __real_main(argc, argv);
}
