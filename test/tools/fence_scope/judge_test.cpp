// Verdicts: what follows from which evidence; and what the virtual GPU's instruments make of workloads with fences too few. A program of its own, because it
// starts itself.
#define CATCH_CONFIG_RUNNER
#include "fence_scope/judge.hpp"

#include "fence_scope/case_file.hpp"
#include "fence_scope/workloads.hpp"
#include "support/catch.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using aql::Barrier;
using aql::FenceScope;

namespace {

Sequence chain() {
  return make_workload("chain", {.kernels = 6, .bytes_per_kernel = 4096, .working_set_bytes = 8192});
}

}  // namespace

TEST_CASE("what the rules promise is correct, and unknown if a run was wrong all the same", "[judge]") {
  const Sequence sequence = chain();
  CHECK(judge(sequence, plan(sequence).headers).verdict == Verdict::correct);
  const Judgement broken = judge(sequence, plan(sequence).headers, {.runs = 4, .wrong_runs = 1});
  CHECK(broken.verdict == Verdict::unknown);
  CHECK(broken.wrong_runs == 1);
  CHECK(broken.runs == 4);
}

TEST_CASE("two steps that nothing orders are named, whatever the runs gave", "[judge]") {
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
  CHECK(judge(sequence, headers, {.found_stale = 1, .found_possible = true}).verdict == Verdict::stale);
  const Judgement judgement = judge(sequence, headers, {.found_stale = 1});
  CHECK(judgement.verdict == Verdict::unknown);
  CHECK(judgement.reader == Judgement::npos);  // the host
}

TEST_CASE("what the checker finds beside the declared accesses is told in its words", "[judge]") {
  const Sequence sequence = chain();
  const Judgement judgement =
      judge(sequence, plan(sequence).headers,
            {.found_unordered = 1, .found_possible = true, .first_finding = "a and b"});
  CHECK(judgement.verdict == Verdict::unordered);
  CHECK(judgement.reason.find("a and b") != std::string::npos);
}

TEST_CASE("cases reach another process as they are", "[judge]") {
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
      if (sequence.steps[i].kind == Step::Kind::dispatch) CHECK(read.cases[0].headers[i] == one.headers[i]);
    // Nothing is lost: what was read is written the same.
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
    headers = planned;  // nobody drops old copies
    for (aql::HeaderFlags& flags : headers) flags.acquire = FenceScope::none;
    cases.push_back({&sequence, headers});
  }
  std::vector<std::string> told;
  const std::vector<Evidence> evidence = gather_evidence(
      cases, {.seeds = 4, .runs = 2, .progress = [&](const std::string& what) { told.push_back(what); }});
  CHECK(told.size() == 5);
  REQUIRE(evidence.size() == cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i, evidence[i].first_finding, evidence[i].found_unordered, evidence[i].found_stale);
    const Judgement judgement = judge(*cases[i].sequence, cases[i].headers, evidence[i]);
    CHECK(judgement.runs == 8);
    REQUIRE(evidence[i].l2_lines_written_back.has_value());
    if (i % 3 == 0) {
      CHECK(judgement.verdict == Verdict::correct);
      CHECK(evidence[i].found_unordered + evidence[i].found_stale == 0);
      CHECK(judgement.wrong_runs == 0);
      CHECK(*evidence[i].l2_lines_written_back > 0);
    } else {
      CHECK(judgement.verdict == Verdict::stale);
      CHECK(evidence[i].found_stale > 0);
      CHECK(judgement.wrong_runs > 0);
    }
    if (i % 3 == 1 && cases[i].sequence->name == "chain") CHECK(*evidence[i].l2_lines_written_back == 0);
  }
}

int main(int argc, char** argv) {
  if (const auto status = run_judge_process(argc, argv)) return *status;
  return Catch::Session().run(argc, argv);
}
