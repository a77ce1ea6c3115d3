// The verdict on a case: by the rules over declared accesses (sequence_rules.hpp) and, on the
// virtual GPU, also by two instruments in other processes:
//   checker   uptempo-vgpu --check fences,hsa,repeated: actual accesses, packet by packet; one
//             process for all cases
//   caches    uptempo-vgpu --incoherent SEED: wrong results; one process per seed, with all cases
//
// Verdicts:
//   unordered   the rules find two steps that nothing orders, or the checker saw two such accesses
//   stale       a fence is missing, and a run was wrong for it or the checker reports that the
//               caches of this target can show it
//   unknown     a fence is missing, but nothing has shown it: other hardware might. Or nothing is
//               missing, but a run was wrong
//   correct     otherwise
// The pair of a verdict is the checker's if it found one, by queue and index of its packets
// (findings.hpp). The reason says if the rules do not know that pair: a step does not declare an
// access, or rules or checker are wrong. It also says if the checker did not see the pair of the
// rules.
//
// The processes execute this program, whose main() calls run_task() before anything else.
//
// Thread safety: pure functions, except where noted.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/sequence/case_message.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"
#include "tools/fence_scope/verdict/findings.hpp"

namespace uptempo::fence_scope {

// Results for a case besides the rules.
struct Evidence {
  uint32_t runs = 0, wrong_runs = 0;  // runs whose caches went stale, or on hardware
  bool checked = false;               // whether the fence checker has run
  std::vector<Finding> findings{};    // its findings; each pair once
  // Per run, averaged over the runs of one seed; only if caches are simulated.
  std::optional<uint64_t> l1_lines_invalidated{}, l2_lines_invalidated{}, l2_lines_written_back{};
};

// On hardware `evidence` stays empty; carry_out() adds wrong results of timed runs.
Judgement judge(const Sequence& sequence, const Headers& headers, const Evidence& evidence = {});

struct JudgeOptions {
  uint32_t seeds = 4;
  uint32_t runs = 2;  // per case and process
  // Called before each process: "fence checker", "seed 2 of 4".
  std::function<void(const std::string&)> progress{};
  // Seconds that are left for all processes; no value: any number.
  std::function<std::optional<double>()> seconds_left{};
  // Called for each process that had no time, or was ended because its time was up: its name as in
  // `progress`.
  std::function<void(const std::string&)> left_out{};
};
// Starts 1 + seeds processes in succession and waits for them. Evidence of a process that was left
// out is missing, and so is that of the processes since support::interrupted(). Uses the device of
// $UPTEMPO_VGPU_DEVICE, if set.
// Errors: std::runtime_error with a process's message if it fails, or if uptempo-vgpu is not found.
// Thread safety: one thread at a time.
std::vector<Evidence> gather_evidence(std::span<const Case> cases,
                                      const JudgeOptions& options = {});

// The task of those processes (run_task()). Arguments RUNS [REPORT]: the number of runs of each
// case, and the checker's report.
inline constexpr const char* kJudgeTask = "--judge-cases";
nlohmann::ordered_json run_cases(const Cases& cases, const std::vector<std::string>& arguments);

}  // namespace uptempo::fence_scope
