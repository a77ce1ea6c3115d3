// Counts of the outcomes of litmus tests, and the verdict on each.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/litmus/litmus.hpp"
#include "tools/litmus/rules.hpp"
#include "tools/support/software.hpp"

namespace uptempo::litmus {

// for example "r0=1 r1=0": the values that one word's loads read, by the names of the cells.
using Outcome = std::string;

// Counts the outcomes of one test, word by word.
class Counter {
 public:
  // Throws std::invalid_argument for a test without loads, since it has no outcome.
  explicit Counter(const Test& test);

  void add(const std::vector<std::vector<uint32_t>>& outcome);

  struct Entry {
    uint64_t count = 0;
    bool sequential = false;       // the outcome of executing steps one at a time
    bool out_of_thin_air = false;  // a value that no step writes: never allowed
  };
  const std::map<Outcome, Entry>& entries() const noexcept { return entries_; }
  // Number of words whose outcome was not sequential.
  uint64_t others() const noexcept;

 private:
  std::vector<std::string> names_;  // [load]
  std::vector<std::vector<uint32_t>> expected_;
  std::vector<uint32_t> values_;  // sorted; empty: any value
  std::map<Outcome, Entry> entries_;
};

struct Result {
  std::string name;
  Verdict verdict;  // the rules' verdict
  std::map<Outcome, Counter::Entry> outcomes;
};

// Whether an outcome is forbidden. On a target unknown to the rules, only the specification
// decides.
bool is_forbidden(const Counter::Entry& entry, Verdict verdict, bool known_target) noexcept;

struct Report {
  std::string device;  // "AMD Instinct MI210 (gfx90a)"
  std::string target;  // "gfx90a"
  bool is_virtual = false;
  support::Software software;
  uint32_t iterations = 0;
  std::vector<Result> results;
  bool interrupted = false;  // tests are missing, and the last one may have fewer iterations

  bool known_target() const noexcept { return cache_rules_of(target).has_value(); }
  bool passed() const noexcept;
};

// A row per shape, then a line for each forbidden outcome, and one if the run was interrupted. Rows
// have at most 80 columns.
std::string table(const Report& report);

//   {format: "uptempo-litmus-1", device, target, virtual_gpu, hsa_version, rocr_build,
//    rocr_library, driver, kernel, iterations, words, target_rules, passed, interrupted,
//    tests: [{name, specification, target, outcomes: [{values, count, sequential, forbidden}]}]}
// Unknown fields of the software are left out.
// specification, target: "sequential" (only the sequential outcome is allowed) or "any".
// target_rules: whether the rules know the target. Only then can `target` differ from
// `specification`.
nlohmann::ordered_json json(const Report& report);

}  // namespace uptempo::litmus
