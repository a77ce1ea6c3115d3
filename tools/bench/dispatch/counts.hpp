// Allocations, calls and doorbells per batch, counted in a separate run because counting disturbs
// the clock.
//
// The counting run is this program again (`--count-into FILE`), with the library of counters.h
// preloaded. On the virtual GPU the device's trace has a line with the time of every doorbell. Each
// row submits its batches as in the timed run: twice uncounted, then counted, which is the steady
// state.
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

// Per batch, by the submitting thread. No value: could not be counted, or was not requested.
struct Counts {
  std::optional<double> allocations{};  // malloc() and its relatives
  std::optional<double>
      // without those of the virtual device's fault handler (support/cost_meter.hpp)
      system_calls{};
  std::optional<double> hsa_calls{};  // through ROCr's table of functions
  std::optional<double> doorbells{};
  // after arguments in device memory were written; by this library
  std::optional<double> hdp_flushes{}, read_backs{};
  friend bool operator==(const Counts&, const Counts&) = default;
};

// Names of the counts in reports.
struct CountKind {
  const char* name;  // for example "heap allocations"
  const char* key;   // JSON key
  std::optional<double> Counts::*value;
};
inline constexpr CountKind kCountKinds[] = {
    {"heap allocations", "allocations", &Counts::allocations},
    {"system calls", "system_calls", &Counts::system_calls},
    {"HSA calls", "hsa_calls", &Counts::hsa_calls},
    {"doorbells", "doorbells", &Counts::doorbells},
    {"HDP flushes", "hdp_flushes", &Counts::hdp_flushes},
    {"read-backs", "read_backs", &Counts::read_backs}};

struct CountedBatches {
  std::string name;  // without the variant
  uint32_t batch = 0;
  Phase phase = Phase::submit;
  Counts counts;
};

struct CountReport {
  std::vector<CountedBatches> all;
  std::map<std::string, std::string> missing;  // by name of the count: why it is missing

  static CountReport none(const std::string& reason);
  const Counts* find(std::string_view name, uint32_t batch, Phase phase) const noexcept;
};

// Time interval in which a row's doorbells were rung, on CLOCK_MONOTONIC.
struct Window {
  uint64_t begin_ns = 0, end_ns = 0;
};

class Check;

// In the counting run: counts every row and returns what read_counts() reads. It counts only the
// first variant of a row, since variants differ only in the kind of store. `probe` rings a
// doorbell.
// Errors: support::Unavailable if the library of counters.h is not preloaded.
nlohmann::ordered_json count(const Rows& rows, Check& check, const std::vector<uint32_t>& batches,
                             const std::function<void()>& probe);

// Reads the output of that run. `doorbells_ns`: times of all doorbells in ascending order, empty
// without a trace; `no_trace` is then the reason.
// Errors: std::runtime_error if `text` is not the output of count().
CountReport read_counts(const std::string& text, const std::vector<uint64_t>& doorbells_ns,
                        const std::string& no_trace);

// Starts the counting run and waits for it. `arguments` select rows, batches and device. Failures
// are in the report's `missing`.
CountReport count_in_a_run_of_its_own(const std::vector<std::string>& arguments,
                                      bool on_virtual_gpu);

}  // namespace uptempo::bench
