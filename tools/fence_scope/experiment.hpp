// Experiments as data: which cells they have, and what is concluded from what was found of them. How cells are run, judged, counted and modelled is given as functions, so all of this is tested without a
// device.
//
// Thread safety: pure, but for what it is given to call.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/fences/fence_planner.hpp"
#include "tools/fence_scope/run/measure.hpp"
#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

// A barrier bit and system scopes on every packet, and the engine's plan (Bench::everywhere(), Bench::planned()).
struct Choices {
  Headers everywhere, planned;
};

// Both settings of the barrier bit, each with acquire and release over none, agent and system: 18.
std::vector<aql::HeaderFlags> all_flags();

// Steps that are dispatches at a position: the first or last of each queue, or those between. In a queue with one dispatch that is first and last.
std::vector<size_t> steps_at(const Sequence& sequence, Position position);

// What the headers of all dispatches cost, in the planner's order: system fences, barrier bits, agent fences.
FenceCost cost_of(const Sequence& sequence, const Headers& headers);

// The baseline, which is a barrier bit and system scopes on every packet; then for each position all_flags() on its packets, while all others are as planned; then the plan, if none of these is it.
// Throws support::UsageError for a position at which there are no packets.
std::vector<Cell> scopes_cells(const Sequence& sequence, const Choices& choices,
                               std::span<const Position> positions);

// Three ways to send all packets: the baseline, "system everywhere"; "agent in between", which is the baseline but for agent scopes between the first and the last; and "as planned".
// With the sizes of the sequence.
std::vector<Cell> comparison_cells(const Sequence& sequence, const Choices& choices);

// A plan as reports have it: the packets of each queue in their order, with their reasons.
// `checker`: what the fence checker holds to be enough, a header for each step; null: it was not asked.
std::vector<PlannedPacket> planned_packets(const Sequence& sequence, const PlannedHeaders& plan,
                                           const Headers* checker);

// Only cells whose label contains `filter`, and baselines. Throws support::UsageError if no other is left.
void keep_matching(std::vector<Cell>& cells, const std::string& filter);

// The one that is to be traced: whose label is `wanted`, or the only one whose label contains it; the recommended one if it is empty. Throws support::UsageError if there is none, or
// several.
const Cell& cell_to_trace(std::span<const Cell> cells, const std::string& wanted);

// What cells are asked; each function is told which one.
struct Instruments {
  std::function<Bench::Run(size_t cell, Release release)> run;
  std::function<Judgement(size_t cell)> judge;
  std::function<DeviceCounts(size_t cell)> counts;
  std::function<std::optional<ModelTime>(size_t cell)> model;
};

// Fills in what is found of `cells`: times, relative to the baseline of the cell's group (see below); counts; model; and the judgement, in which wrong results of timed runs count as others do: they
// make a verdict of `unknown` one of `stale`, and of `correct` one of `unknown`, for which a promise was broken.
void carry_out(std::vector<Cell>& cells, const Instruments& instruments, const Method& method,
               const Clock& now = steady_seconds);

// Cells that differ in their headers alone: of one workload and one size. Each group has one baseline.
std::vector<std::vector<size_t>> groups_of(std::span<const Cell> cells);

// Marks in each group the cell to be recommended, of those that are correct and had no wrong run.
//   hardware     the fastest, by the packets' timestamps where there are some, else gated; among those that its rounds do not tell from the fastest, the cheapest by cost
//   virtual GPU  the cheapest by the model where there is one, then by cost
void recommend(std::vector<Cell>& cells, TimeKind kind);

// Of one group, in one sentence: the cell that is recommended, and what it saves against the baseline.
std::string conclusion_of(std::span<const Cell> group, TimeKind kind);

// Of several groups: how much is saved from where to where.
std::string conclusion_of_sweep(std::span<const Cell> cells, TimeKind kind);

// Where the machine was too noisy to tell, and what broke a promise; a sentence each.
std::vector<std::string> warnings_of(std::span<const Cell> cells, const Method& method, TimeKind kind);

// Whether a run was wrong where the rules promise a right result.
bool broken_promise(const Cell& cell);

}  // namespace uptempo::fence_scope
