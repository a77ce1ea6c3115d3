// What a batch costs beside time, counted from outside of the code that hands it over, in a run of its own: counting disturbs the clock.
//
// The run that counts is this program again (`--count-into FILE`), with the library of counters.h in front of it and, on the virtual GPU, the device's
// trace, in which every doorbell is a line with the time at which it was rung. Every row's batches are handed over as in the run that is timed, twice
// unseen and then counted: the steady state.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/dispatch/row.hpp"

namespace uptempo::bench {

// Per batch, by the thread that hands it over. Without a value: could not be counted, or was not asked for.
struct Counts {
  std::optional<double> allocations{};  // malloc() and its relatives
  std::optional<double>
      system_calls{};  // not those of the virtual device's fault handler (support/cost_meter.hpp)
  std::optional<double> hsa_calls{};  // through ROCr's table of functions
  std::optional<double> doorbells{};
  friend bool operator==(const Counts&, const Counts&) = default;
};

// Their names, in reports.
struct CountKind {
  const char* name;  // "heap allocations"
  const char* key;   // of JSON
  std::optional<double> Counts::*value;
};
inline constexpr CountKind kCountKinds[] = {{"heap allocations", "allocations", &Counts::allocations},
                                            {"system calls", "system_calls", &Counts::system_calls},
                                            {"HSA calls", "hsa_calls", &Counts::hsa_calls},
                                            {"doorbells", "doorbells", &Counts::doorbells}};

struct CountedBatches {
  std::string name;  // without variant
  uint32_t batch = 0;
  Phase phase = Phase::submit;
  Counts counts;
};

struct CountReport {
  std::vector<CountedBatches> all;
  std::map<std::string, std::string> missing;  // by name of the count: why it was not taken

  // Nothing was counted, for this reason.
  static CountReport none(const std::string& reason);
  const Counts* find(std::string_view name, uint32_t batch, Phase phase) const noexcept;
};

// Where a doorbell may have been rung that belongs to a row, on CLOCK_MONOTONIC.
struct Window {
  uint64_t begin_ns = 0, end_ns = 0;
};

class Check;

// In the run that counts: counts every row (of its variants the first, since they differ in the kinds of their stores alone) and returns what read_counts()
// understands. `probe` rings a doorbell. Throws support::Unavailable where the library of counters.h is not preloaded.
nlohmann::ordered_json count(const Rows& rows, Check& check, const std::vector<uint32_t>& batches,
                             const std::function<void()>& probe);

// What that run wrote, and the moments of all doorbells in ascending order: none where there is no trace, whose reason is then `no_trace`. Throws
// std::runtime_error when it is not what count() writes.
CountReport read_counts(const std::string& text, const std::vector<uint64_t>& doorbells_ns,
                        const std::string& no_trace);

// Starts that run and waits for it. `arguments`: which rows, batches and device. Whatever goes wrong is in the report's `missing`.
CountReport count_in_a_run_of_its_own(const std::vector<std::string>& arguments, bool on_virtual_gpu);

}  // namespace uptempo::bench
