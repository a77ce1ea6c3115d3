// The verdict beside every time: by the rules over declared accesses (sequence_rules.hpp), and on the virtual GPU also by what two of its instruments find in processes of their own:
//   the checker   uptempo-vgpu --check fences,hsa,repeated: accesses that were made, packet by packet; one process for all cases
//   the caches    uptempo-vgpu --incoherent SEED: wrong results; one process for each seed, with all cases
//
// The verdict:
//   unordered   the rules know two steps that nothing orders, or the checker saw two such accesses
//   stale       a fence is missing, and a run was wrong for it or the checker says that the caches of this target can show it
//   unknown     a fence is missing, and nothing has shown it: other hardware might. Or everything is promised and a run was wrong all the same
//   correct     neither
// The pair beside it is the checker's where it found one, by queue and index of its packets (findings.hpp). Where the rules know nothing of that pair the reason says so: a
// step does not declare what it touches, or else rules or checker are wrong. So it does where the checker saw nothing of what the rules complain about.
//
// The processes are this program once more. main() calls run_judge_process() ahead of everything else:
//   if (const auto status = run_judge_process(argc, argv)) return *status;
//
// Thread safety: as said at each.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/fence_scope/sequence/case_message.hpp"
#include "tools/fence_scope/verdict/findings.hpp"
#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

// What is known of a case besides the rules.
struct Evidence {
  uint32_t runs = 0, wrong_runs = 0;  // of which the caches went stale, or on hardware
  bool checked = false;               // the fence checker has looked,
  std::vector<Finding> findings{};    // and found this; each pair once
  // Of one run, averaged over one seed's; where caches are kept.
  std::optional<uint64_t> l1_lines_invalidated{}, l2_lines_invalidated{}, l2_lines_written_back{};
};

// Pure. On hardware `evidence` stays empty: wrong results of timed runs are added where they are known (carry_out()).
Judgement judge(const Sequence& sequence, const Headers& headers, const Evidence& evidence = {});

struct JudgeOptions {
  uint32_t seeds = 4;
  uint32_t runs = 2;  // of each case and process
  // Told ahead of each process: "fence checker", "seed 2 of 4".
  std::function<void(const std::string&)> progress{};
};
// Starts 1 + seeds processes, one after the other, and waits for them; the device of $UPTEMPO_VGPU_DEVICE, if that is set. Throws std::runtime_error with a process's words if it fails, or
// if uptempo-vgpu is not found. From one thread at a time.
std::vector<Evidence> gather_evidence(std::span<const Case> cases, const JudgeOptions& options = {});

// Null: this process is none of those.
std::optional<int> run_judge_process(int argc, char** argv);

}  // namespace uptempo::fence_scope
