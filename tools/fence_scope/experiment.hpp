// Experiments as data: their cells, and the conclusions from the results. Functions are passed in
// to run, judge, count and model cells, so all of this can be tested without a device.
//
// Thread safety: pure, except the passed functions.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <uptempo/fences/fence_plan.hpp>
#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/run/measure.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

// Both settings of the barrier bit, each with acquire and release of none, agent and system: 18.
std::vector<aql::HeaderFlags> all_flags();

// The dispatches at a position: the first or last of each queue, or those between. The only
// dispatch of a queue is both first and last.
std::vector<size_t> steps_at(const Sequence& sequence, Position position);

// The cells of `scopes`: the baseline (barrier bit and system scopes on every packet); for each
// position all_flags() on its packets, with the other packets as `planned`; and the plan, unless it
// is one of these. Throws support::UsageError for a position without packets.
std::vector<Cell> scopes_cells(const Sequence& sequence, const Headers& planned,
                               std::span<const Position> positions);

// Three headers for all packets: the baseline, "system everywhere"; "agent in between", the
// baseline with agent scopes between the first and the last packet; and "as planned". The cells
// hold the sequence's sizes.
std::vector<Cell> comparison_cells(const Sequence& sequence, const Headers& planned);

// A plan in the form of reports: the packets of each queue in order, with reasons. `checker`: the
// headers that the fence checker considers sufficient, one per step; null if it was not asked.
std::vector<PlannedPacket> planned_packets(const Sequence& sequence, const PlannedHeaders& plan,
                                           const Headers* checker);

// Keeps baselines and cells whose label contains `filter`. Throws support::UsageError if only
// baselines are left.
void keep_matching(std::vector<Cell>& cells, const std::string& filter);

// The cell to trace: the one whose label is `wanted` or, alone, contains it; the recommended one if
// `wanted` is empty. Throws support::UsageError if there is none, or several.
const Cell& cell_to_trace(std::span<const Cell> cells, const std::string& wanted);

// How to examine cells; each function receives the cell's index.
struct Instruments {
  std::function<Bench::Run(size_t cell, Release release)> run;
  std::function<Judgement(size_t cell)> judge;
  std::function<DeviceCounts(size_t cell)> counts;
  std::function<std::optional<ModelTime>(size_t cell)> model;
};

// Fills in the results of `cells`: times relative to the baseline of the cell's group (see
// groups_of()), counts, model and judgement. Wrong results of timed runs count like others: they
// turn the verdict `unknown` into `stale`, and `correct` into `unknown`, which is a broken promise.
void carry_out(std::vector<Cell>& cells, const Instruments& instruments, const Method& method,
               const Clock& now = steady_seconds);

// Cells that differ in their headers only: the same workload and size. Each group has one baseline.
std::vector<std::vector<size_t>> groups_of(std::span<const Cell> cells);

// Marks in each group the recommended cell, among those that are correct and had no wrong run.
//   hardware     the fastest, by the packets' timestamps if there are some, else gated; of the
//                cells that its rounds do not distinguish from the fastest, the cheapest by cost
//   virtual GPU  the cheapest by the model if there is one, then by cost
void recommend(std::vector<Cell>& cells, TimeKind kind);

// One sentence for one group: the recommended cell, and its saving against the baseline.
std::string conclusion_of(std::span<const Cell> group, TimeKind kind);

// The same for several groups: the range of savings.
std::string conclusion_of_sweep(std::span<const Cell> cells, TimeKind kind);

// One sentence for each broken promise, for results that the machine's noise makes uncertain, for
// cells without a time, and on the virtual GPU for a recommendation by the model that was measured
// slower than another correct cell.
std::vector<std::string> warnings_of(std::span<const Cell> cells, const Method& method,
                                     TimeKind kind);

// Whether a run was wrong although the rules promise a right result.
bool contradicts_rules(const Cell& cell);

}  // namespace uptempo::fence_scope
