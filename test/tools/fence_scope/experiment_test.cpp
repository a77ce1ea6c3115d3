#include "tools/fence_scope/experiment.hpp"

#include <set>
#include <tuple>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/fence_scope/run/profile.hpp"
#include "tools/fence_scope/sequence/workloads.hpp"
#include "tools/fence_scope/verdict/judge.hpp"
#include "tools/support/program.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using aql::Barrier;
using aql::FenceScope;
using test::error_of;

namespace {

constexpr aql::HeaderFlags kSystemScopes{Barrier::on, FenceScope::system, FenceScope::system};
constexpr aql::HeaderFlags kAgentScopes{Barrier::on, FenceScope::agent, FenceScope::agent};

// A chain of kernels, each on 4 KiB of the same buffer.
Sequence chain(size_t kernels) {
  Sequence sequence{
      .name = "chain", .description = "", .buffers = {{.name = "x", .bytes = 8192}}, .steps = {}};
  for (size_t i = 0; i < kernels; ++i)
    sequence.steps.push_back(
        {.name = "k", .accesses = {{.buffer = 0, .begin = 0, .bytes = 4096, .writes = true}}});
  return sequence;
}

Headers planned_for(size_t kernels) {
  Headers planned(kernels, kAgentScopes);
  planned.front().acquire = FenceScope::system;
  planned.back().release = FenceScope::system;
  return planned;
}

// Cost of all dispatches' headers, in the planner's order.
FenceCost cost_of(const Sequence& sequence, const Headers& headers) {
  FenceCost cost;
  for (const size_t step : steps_at(sequence, Position::all)) {
    const aql::HeaderFlags& flags = headers[step];
    for (const FenceScope scope : {flags.acquire, flags.release}) {
      cost.system_fences += scope == FenceScope::system;
      cost.agent_fences += scope == FenceScope::agent;
    }
    cost.barrier_bits += flags.barrier == Barrier::on;
  }
  return cost;
}

// Times and verdicts of a chain's cells, as a device would give them. Every packet needs the fences
// of the plan.
struct FakeDevice {
  const Sequence sequence;
  std::vector<Cell>& cells;
  bool modelled = true, runs_right = true;
  std::function<bool(const Cell&)> breaks = [](const Cell&) { return false; };

  bool right(const Cell& cell) const {
    return std::ranges::all_of(cell.headers, [](const aql::HeaderFlags& flags) {
      return flags.barrier == Barrier::on && flags.acquire != FenceScope::none &&
             flags.release != FenceScope::none;
    });
  }
  double us(const Cell& cell) const {
    const FenceCost cost = cost_of(sequence, cell.headers);
    return 100 + 10.0 * static_cast<double>(cost.system_fences) +
           5.0 * static_cast<double>(cost.barrier_bits) + static_cast<double>(cost.agent_fences);
  }
  Instruments instruments() {
    return {.run =
                [this](size_t i, Release) {
                  const bool right_now = (right(cells[i]) || runs_right) && !breaks(cells[i]);
                  return Bench::Run{.us = us(cells[i]), .correct = right_now};
                },
            .judge =
                [this](size_t i) {
                  return right(cells[i])
                             ? Judgement{.verdict = Verdict::correct, .runs = 2, .reason = {}}
                             : Judgement{.verdict = Verdict::unknown, .runs = 2, .reason = {}};
                },
            .counts =
                [this](size_t i) {
                  DeviceCounts counts;
                  for (const aql::HeaderFlags& flags : cells[i].headers) {
                    counts.barrier_bits += flags.barrier == Barrier::on;
                    counts.system_acquires += flags.acquire == FenceScope::system;
                    counts.system_releases += flags.release == FenceScope::system;
                    counts.agent_acquires += flags.acquire == FenceScope::agent;
                    counts.agent_releases += flags.release == FenceScope::agent;
                  }
                  return counts;
                },
            .model = [this](size_t i) -> std::optional<ModelTime> {
              if (!modelled) return std::nullopt;
              return ModelTime{.profile = "paper", .us = 2 * us(cells[i])};
            }};
  }
};

std::vector<Cell> carried_out(std::vector<Cell> cells, TimeKind kind, bool modelled = true,
                              bool runs_right = true) {
  FakeDevice device{.sequence = chain(cells.front().headers.size()),
                    .cells = cells,
                    .modelled = modelled,
                    .runs_right = runs_right};
  carry_out(cells, device.instruments(), {}, [] { return 0.0; });
  recommend(cells, kind);
  return cells;
}

std::vector<Cell> interior_cells() {
  const Position interior[] = {Position::interior};
  return scopes_cells(chain(5), planned_for(5), interior);
}

const Cell& recommended(const std::vector<Cell>& cells) {
  const auto found = std::ranges::find(cells, true, &Cell::recommended);
  REQUIRE(found != cells.end());
  return *found;
}

}  // namespace

TEST_CASE("each of the 18 combinations of barrier bit, acquire and release occurs once") {
  std::set<std::tuple<Barrier, FenceScope, FenceScope>> seen;
  for (const aql::HeaderFlags& flags : all_flags())
    seen.emplace(flags.barrier, flags.acquire, flags.release);
  CHECK(all_flags().size() == 18);
  CHECK(seen.size() == 18);
}

TEST_CASE("the positions are the dispatches of each queue; a copy has none") {
  Sequence sequence = chain(6);
  sequence.steps[1].kind = Step::Kind::copy;
  sequence.steps[4].queue = 1;
  CHECK(steps_at(sequence, Position::first) == std::vector<size_t>{0, 4});
  CHECK(steps_at(sequence, Position::interior) == std::vector<size_t>{2, 3});
  CHECK(steps_at(sequence, Position::last) == std::vector<size_t>{5, 4});
  CHECK(steps_at(sequence, Position::all).size() == 5);
}

TEST_CASE(
    "scopes has a baseline and 18 cells per position, which differ from the plan only there") {
  const Position positions[] = {Position::first, Position::interior, Position::last};
  const Headers planned = planned_for(5);
  const std::vector<Cell> cells = scopes_cells(chain(5), planned, positions);
  REQUIRE(cells.size() == 1 + 3 * 18);
  CHECK(cells[0].baseline);
  CHECK(cells[0].headers == Headers(5, kSystemScopes));
  for (size_t i = 1; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    CHECK_FALSE(cell.baseline);
    CHECK(cell.position == positions[(i - 1) / 18]);
    CHECK(cell.flags == all_flags()[(i - 1) % 18]);
    const std::vector<size_t> varied = steps_at(chain(5), cell.position);
    for (size_t step = 0; step < 5; ++step) {
      const bool varies = std::ranges::find(varied, step) != varied.end();
      CHECK(cell.headers[step] == (varies ? cell.flags : planned[step]));
    }
  }
}

TEST_CASE("the plan has a cell of its own if it is not one of the 18") {
  Headers planned = planned_for(5);
  const Position interior[] = {Position::interior};
  CHECK(scopes_cells(chain(5), planned, interior).size() == 1 + 18);
  planned[2].barrier = Barrier::off;
  const std::vector<Cell> cells = scopes_cells(chain(5), planned, interior);
  REQUIRE(cells.size() == 1 + 18 + 1);
  CHECK(cells.back().label == "as planned");
  CHECK(cells.back().headers == planned);
}

TEST_CASE("a position without a packet is a usage error that names the sequence") {
  const Position interior[] = {Position::interior};
  const std::string error = error_of<support::UsageError>(
      [&] { (void)scopes_cells(chain(2), planned_for(2), interior); });
  CHECK(error.find("chain") != std::string::npos);
  CHECK(error.find("between the first and the last") != std::string::npos);
}

TEST_CASE("a cell has the number of kernels, the bytes of each and the working set of all") {
  for (const Cell& cell : comparison_cells(chain(5), planned_for(5))) {
    CHECK(cell.kernels == 5);
    CHECK(cell.bytes_per_kernel == 4096);
    CHECK(cell.working_set_bytes == 8192);
  }
}

TEST_CASE("a filter keeps the baseline and the matching cells, and is refused if none matches") {
  std::vector<Cell> cells = interior_cells();
  keep_matching(cells, "acquire agent, release none");
  CHECK(cells.size() == 3);
  CHECK(cells[0].baseline);
  CHECK(error_of<support::UsageError>([&] { keep_matching(cells, "no such"); }).find("--list") !=
        std::string::npos);
}

TEST_CASE(
    "on the virtual GPU the correct cell with the lowest model time is recommended, not a faster "
    "wrong one") {
  const std::vector<Cell> cells = carried_out(interior_cells(), TimeKind::virtual_gpu);
  const Cell& best = recommended(cells);
  CHECK(best.flags == kAgentScopes);
  CHECK(best.position == Position::interior);
  const auto fastest =
      std::ranges::min_element(cells, {}, [](const Cell& cell) { return cell.gated.median_us; });
  CHECK(fastest->gated.median_us < best.gated.median_us);
  CHECK(fastest->judgement.verdict == Verdict::unknown);
  CHECK(conclusion_of(cells, TimeKind::virtual_gpu) ==
        "Cheapest correct: " + best.label +
            " on packets between the first and the last, others as planned; saves 32 % of the "
            "model time "
            "against a "
            "barrier bit and system scopes on every packet.");
}

TEST_CASE(
    "for each profile and workload the device's model chooses among the cells that the rules call "
    "correct") {
  for (const char* profile : {"fiji", "mi210", "mi300x"}) {
    for (const char* workload : {"chain", "bitonic-sort", "independent"}) {
      CAPTURE(profile, workload);
      const Sequence sequence = make_workload(workload);
      const Position interior[] = {Position::interior};
      std::vector<Cell> cells = scopes_cells(sequence, plan(sequence).headers, interior);
      FakeDevice device{.sequence = sequence, .cells = cells};
      Instruments instruments = device.instruments();
      instruments.judge = [&](size_t i) { return judge(sequence, cells[i].headers); };
      instruments.model = [&](size_t i) -> std::optional<ModelTime> {
        return model_time(find_profile(profile), sequence, cells[i].headers);
      };
      carry_out(cells, instruments, {}, [] { return 0.0; });
      recommend(cells, TimeKind::virtual_gpu);
      const Cell& best = recommended(cells);
      CHECK(best.judgement.verdict == Verdict::correct);
      for (const Cell& cell : cells)
        if (cell.judgement.verdict == Verdict::correct) CHECK(best.model->us <= cell.model->us);
      // On each of these devices unneeded fences cost time, and omitting needed ones would save
      // time.
      CHECK(best.model->us < cells[0].model->us);
      // Independent kernels may write back early, concurrently with others, in less time than the
      // last kernel's release would take: more fences, less time. The other workloads exclude that.
      if (workload != std::string("independent")) {
        CHECK(cost_of(sequence, best.headers) == cost_of(sequence, plan(sequence).headers));
        CHECK(std::ranges::any_of(cells, [&](const Cell& cell) {
          return cell.judgement.verdict != Verdict::correct && cell.model->us < best.model->us;
        }));
      }
      CHECK(conclusion_of(cells, TimeKind::virtual_gpu).find("of the model time against") !=
            std::string::npos);
    }
  }
}

TEST_CASE("without a model the conclusion counts the fences that are saved") {
  const std::vector<Cell> cells = carried_out(interior_cells(), TimeKind::virtual_gpu, false);
  CHECK(recommended(cells).flags == kAgentScopes);
  CHECK(conclusion_of(cells, TimeKind::virtual_gpu).find("saves 8 of 10 system fences against") !=
        std::string::npos);
}

TEST_CASE("on hardware the fastest correct cell is recommended, whatever a model says") {
  std::vector<Cell> cells = carried_out(interior_cells(), TimeKind::hardware);
  CHECK(recommended(cells).flags == kAgentScopes);
  CHECK(conclusion_of(cells, TimeKind::hardware).starts_with("Fastest correct: "));
  // A baseline that is faster in every round is recommended.
  Cell& baseline = cells[0];
  baseline.gated = times_of(std::vector<double>(6, 1), 0.05);
  recommend(cells, TimeKind::hardware);
  CHECK(baseline.recommended);
  CHECK(std::ranges::count(cells, true, &Cell::recommended) == 1);
}

TEST_CASE("cells whose times do not differ are ranked by their fences, and a warning says so") {
  std::vector<Cell> cells = carried_out(interior_cells(), TimeKind::hardware);
  for (Cell& cell : cells) {
    if (cell.judgement.verdict != Verdict::correct) continue;
    // By the median the more expensive cell is faster, but the rounds contradict one another.
    const double us = cell.baseline ? 99 : 100;
    cell.gated = times_of({us - 20, us + 20, us - 10, us + 10, us, us - 15, us + 15}, 0.05);
    if (cell.baseline) std::ranges::reverse(cell.gated.samples_us);
  }
  recommend(cells, TimeKind::hardware);
  CHECK(recommended(cells).flags == kAgentScopes);
  const std::vector<std::string> warnings = warnings_of(cells, {}, TimeKind::hardware);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0].starts_with("noisy: 5 of 19 cells are not known to 5 %"));
  CHECK(warnings[1].find("times of 4 other correct cells do not differ") != std::string::npos);
  CHECK(conclusion_of(cells, TimeKind::hardware).find("below this machine's noise") !=
        std::string::npos);
}

TEST_CASE("the packets' timestamps decide if there are any") {
  std::vector<Cell> cells = carried_out(interior_cells(), TimeKind::hardware);
  for (Cell& cell : cells)
    cell.device = times_of(std::vector<double>(6, cell.baseline ? 1 : 2), 0.05);
  recommend(cells, TimeKind::hardware);
  CHECK(recommended(cells).baseline);
}

TEST_CASE(
    "wrong runs turn an unknown cell into a stale one, and a cell with wrong runs is not "
    "recommended") {
  const std::vector<Cell> cells = carried_out(interior_cells(), TimeKind::hardware, true, false);
  size_t stale = 0;
  for (const Cell& cell : cells) {
    CHECK(cell.judgement.runs == 2 + 2 * (1 + 6));
    if (cell.judgement.verdict != Verdict::stale) continue;
    ++stale;
    CHECK(cell.judgement.wrong_runs == cell.judgement.runs - 2);
    CHECK_FALSE(cell.recommended);
  }
  CHECK(stale == 14);
}

TEST_CASE(
    "a wrong result of a cell that the rules call correct is a broken promise, and the only "
    "conclusion") {
  std::vector<Cell> cells = interior_cells();
  FakeDevice device{.sequence = chain(5), .cells = cells, .breaks = [](const Cell& cell) {
                      return cell.baseline;
                    }};
  carry_out(cells, device.instruments(), {}, [] { return 0.0; });
  recommend(cells, TimeKind::hardware);
  CHECK(contradicts_rules(cells[0]));
  CHECK(std::ranges::count_if(cells, contradicts_rules) == 1);
  CHECK_FALSE(cells[0].recommended);
  CHECK(conclusion_of(cells, TimeKind::hardware).starts_with("Broken: 1 of 19 cells"));
  CHECK(warnings_of(cells, {}, TimeKind::hardware)[0].find("14 of 16 runs were wrong") !=
        std::string::npos);
}

TEST_CASE(
    "a recommendation by the model that was measured slower than a correct cell is a warning") {
  std::vector<Cell> cells = carried_out(interior_cells(), TimeKind::virtual_gpu);
  recommend(cells, TimeKind::virtual_gpu);
  for (Cell& cell : cells) {
    cell.model = ModelTime{.profile = "mi210", .us = cell.recommended ? 1.0 : 2.0};
    cell.gated = times_of(std::vector<double>(6, 100), 0.05);
  }
  const auto warns = [&] {
    for (const std::string& warning : warnings_of(cells, {}, TimeKind::virtual_gpu))
      if (warning.find("is recommended by the model") != std::string::npos) return warning;
    return std::string();
  };
  CHECK(warns() == "");  // all alike
  for (Cell& cell : cells)
    if (cell.judgement.verdict != Verdict::correct)
      cell.gated = times_of(std::vector<double>(6, 10), 0.05);
  CHECK(warns() == "");  // only wrong cells are faster
  cells[0].gated = times_of(std::vector<double>(6, 75), 0.05);
  REQUIRE(cells[0].judgement.verdict == Verdict::correct);
  REQUIRE_FALSE(cells[0].recommended);
  CHECK(warns().find("'" + cells[0].label + "', which is also correct, in 25 % less time") !=
        std::string::npos);
  for (Cell& cell : cells) cell.model.reset();
  CHECK(warns() == "");  // not by a model
}

TEST_CASE("a cell without a time is not recommended beside timed ones, and a warning counts it") {
  std::vector<Cell> cells = carried_out(interior_cells(), TimeKind::hardware);
  const auto cell = std::ranges::find(cells, true, &Cell::recommended);
  const std::string label = cell->label;
  cell->gated = {};
  recommend(cells, TimeKind::hardware);
  CHECK(recommended(cells).label != label);
  CHECK(warnings_of(cells, {}, TimeKind::hardware)[0].starts_with("1 of 19 cells have no time"));
}

TEST_CASE("relative times refer to the baseline, which is 1") {
  const std::vector<Cell> cells = carried_out(interior_cells(), TimeKind::hardware);
  CHECK(cells[0].relative == 1);
  for (const Cell& cell : cells)
    CHECK(cell.relative == cell.gated.median_us / cells[0].gated.median_us);
}

TEST_CASE("the traced cell is the recommended one, or the one whose label is given") {
  const std::vector<Cell> cells = carried_out(interior_cells(), TimeKind::virtual_gpu);
  CHECK(&cell_to_trace(cells, "") == &recommended(cells));
  const std::string label = "no barrier, acquire none, release system";
  CHECK(cell_to_trace(cells, label).label == label);
  CHECK(cell_to_trace(cells, "no barrier, acquire none, release sys").label == label);
  const auto refusal = [&](const std::vector<Cell>& of, const std::string& wanted) {
    return error_of<support::UsageError>([&] { (void)cell_to_trace(of, wanted); });
  };
  CHECK(refusal(cells, "no such").find("--list") != std::string::npos);
  CHECK(refusal(cells, "acquire none, release none").starts_with("--cell: 2 cells have"));
  CHECK(refusal(interior_cells(), "").find("choose the cell to trace with --cell") !=
        std::string::npos);
  // The baseline, and the cell with the same headers at the position that varies.
  CHECK(refusal(cells, cells[0].label).find("--position") != std::string::npos);
}

TEST_CASE("if no cell is correct, none is recommended") {
  std::vector<Cell> cells = interior_cells();
  std::erase_if(
      cells, [](const Cell& cell) { return cell.baseline || cell.flags.barrier == Barrier::on; });
  const std::vector<Cell> done = carried_out(cells, TimeKind::virtual_gpu);
  CHECK(std::ranges::count(done, true, &Cell::recommended) == 0);
  CHECK(conclusion_of(done, TimeKind::virtual_gpu).starts_with("No recommendation"));
}

TEST_CASE("each size of a sweep has its own baseline and recommendation") {
  std::vector<Cell> cells;
  for (const size_t kernels : {2u, 5u, 9u})
    for (Cell& cell : comparison_cells(chain(kernels), planned_for(kernels)))
      cells.push_back(std::move(cell));
  const std::vector<Cell> done = carried_out(cells, TimeKind::virtual_gpu);
  CHECK(groups_of(done).size() == 3);
  CHECK(std::ranges::count(done, true, &Cell::recommended) == 3);
  const std::string conclusion = conclusion_of_sweep(done, TimeKind::virtual_gpu);
  CHECK(conclusion.find("2 kernels of 4 KiB") != std::string::npos);
  CHECK(conclusion.find("9 kernels of 4 KiB") != std::string::npos);
  CHECK(conclusion.find("of the model time") != std::string::npos);
  const std::vector<Cell> counted = carried_out(cells, TimeKind::virtual_gpu, false);
  CHECK(conclusion_of_sweep(counted, TimeKind::virtual_gpu).find("of the system fences") !=
        std::string::npos);
}
