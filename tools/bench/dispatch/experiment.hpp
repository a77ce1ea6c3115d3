// Times every row, and checks after every run that each dispatch was carried out exactly once.
//
// Rows take turns in random order within each round, so that a machine whose speed drifts treats them alike; figures are medians over rounds, ratios
// medians of the rounds' ratios, each with its 95 % interval.
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

// One row at one length of batch in one phase: a value per round, and what was counted in another run.
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

// Medians of the rounds' ratios a / b. Both have a value for each round.
support::MedianInterval ratio(const Series& a, const Series& b);
// Of the rounds' differences a - b, in ns. The same holds.
support::MedianInterval difference(const Series& a, const Series& b);

class Results {
 public:
  std::vector<Series> all;

  const Series* find(std::string_view name, uint32_t batch, Phase phase) const noexcept;
  // Of the variants "NAME/..." keeps for each batch and phase the one with the lowest median, called NAME.
  void keep_best_variants();
};

// How a run is checked.
class Check {
 public:
  virtual ~Check() = default;
  virtual void before(const Row& row, const Load& load) = 0;
  // Throws std::runtime_error naming the row, the batch and what was found.
  virtual void after(const Row& row, const Load& load) = 0;
};

// Kernels ran: each dispatch has left its mark, once.
std::unique_ptr<Check> check_tallies(const Workload& workload);
// Kernels were not executed: the virtual GPU says how many dispatches it has completed. Rows that do without the device are checked by their marks. Throws
// std::runtime_error where it cannot be asked.
std::unique_ptr<Check> check_device_counts(const Workload& workload);

// A row's turn: one load, in one phase.
struct Turn {
  Row* row;
  Load load;
  Phase phase;
};

// Every load of these batches in every phase, as far as the rows take them: row by row, and `rows` must live as long.
std::vector<Turn> turns_of(const Rows& rows, const std::vector<uint32_t>& batches);

// Carries out and checks one load. `around` is given the function that is the phase, to be called once: what is measured is what that call takes.
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

// Before each run that is timed the same row runs untimed for `warm_up` dispatches, at least. Throws std::runtime_error when a check fails, Error when a row does.
Results run(const Rows& rows, Check& check, const std::vector<uint32_t>& batches,
            const support::Rounds& rounds, uint32_t warm_up = 1);

}  // namespace uptempo::bench
