// Times every row, and checks after every run that each dispatch completed exactly once.
//
// Rows take turns in random order within each round, so that a drift of the machine's speed affects
// all alike. Figures are medians over rounds, ratios medians of the rounds' ratios, each with its
// 95 % interval.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/dispatch/counts.hpp"
#include "tools/bench/dispatch/row.hpp"
#include "tools/support/rounds.hpp"
#include "tools/support/statistics.hpp"

namespace uptempo::bench {

// One row at one batch length in one phase: a value per round, and the counts of the counting run.
struct Series {
  std::string name;
  uint32_t batch = 0;
  Phase phase = Phase::submit;
  std::vector<double> ns_per_dispatch;
  Counts counts{};

  support::MedianInterval interval() const { return support::median_interval(ns_per_dispatch); }
  double median() const { return interval().median; }
  friend bool operator==(const Series&, const Series&) = default;
};

// Median of the rounds' ratios a / b. Both must have a value for each round.
support::MedianInterval ratio(const Series& a, const Series& b);
// Median of the rounds' differences a - b in ns. The same requirement.
support::MedianInterval difference(const Series& a, const Series& b);

class Results {
 public:
  std::vector<Series> all;

  const Series* find(std::string_view name, uint32_t batch, Phase phase) const noexcept;
  // Each name once, in the order of `all`.
  std::vector<std::string> names() const;
  // Keeps, for each batch and phase, the variant of "NAME/..." with the lowest median, and names it
  // NAME.
  void keep_best_variants();
};

class Check {
 public:
  virtual ~Check() = default;
  virtual void before(const Row& row, const Load& load) = 0;
  // Throws std::runtime_error naming the row, the batch and what was found.
  virtual void after(const Row& row, const Load& load) = 0;
};

// For executed kernels: each dispatch has left its mark once.
std::unique_ptr<Check> check_tallies(const Workload& workload);
// For kernels that were not executed: compares the number of dispatches that the virtual GPU
// reports as completed. Rows that do not use the device are checked by their marks.
// Errors: std::runtime_error where the device does not report it.
std::unique_ptr<Check> check_device_counts(const Workload& workload);

// One turn of a row: one load in one phase.
struct Turn {
  Row* row;
  Load load;
  Phase phase;
};

// Every load of these batches in every phase that the row supports, row by row. Lifetime: `rows`
// must outlive the result.
std::vector<Turn> turns_of(const Rows& rows, const std::vector<uint32_t>& batches);

// Runs and checks one load. `around` receives the function that is the phase and must call it once;
// the caller measures that call.
template <class Around>
void take(const Turn& turn, Check& check, Around&& around) {
  Row& row = *turn.row;
  const bool gated = turn.phase == Phase::submit;
  row.prepare(turn.load);
  check.before(row, turn.load);
  if (gated) row.close_gate();
  around([&] {
    row.submit(turn.load);
    if (!gated) row.wait();
  });
  if (gated) {
    row.open_gate();
    row.wait();
  }
  check.after(row, turn.load);
}

// Before each timed run the same row runs untimed for at least `warm_up` dispatches.
// Errors: std::runtime_error if a check fails, Error if a row fails.
Results run(const Rows& rows, Check& check, const std::vector<uint32_t>& batches,
            const support::Rounds& rounds, uint32_t warm_up = 1);

}  // namespace uptempo::bench
