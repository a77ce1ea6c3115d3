// What came out of litmus tests, how often, and what is said to it.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/runtime/agent.hpp"
#include "tools/litmus/litmus.hpp"
#include "tools/litmus/rules.hpp"

namespace uptempo::litmus {

// "r0=1 r1=0": the values that one word's loads saw, by the names of the cells.
using Outcome = std::string;

// Counts outcomes of one test, word by word.
class Counter {
 public:
  // Throws std::invalid_argument for a test without a load: nothing could be said about it.
  explicit Counter(const Test& test);

  void add(const std::vector<std::vector<uint32_t>>& outcome);

  struct Entry {
    uint64_t count = 0;
    bool sequential = false;       // what steps one at a time would give
    bool out_of_thin_air = false;  // a value that the test has nowhere: allowed never
  };
  const std::map<Outcome, Entry>& entries() const noexcept { return entries_; }
  // Words that were not sequential.
  uint64_t others() const noexcept;

 private:
  std::vector<std::string> names_;  // [load]
  std::vector<std::vector<uint32_t>> expected_;
  std::vector<uint32_t> values_;  // sorted; empty: any
  std::map<Outcome, Entry> entries_;
};

struct Result {
  std::string name;
  Verdict verdict;  // of the rules
  std::map<Outcome, Counter::Entry> outcomes;
};

// Whether an outcome must not be, on a target that the rules know or on another one, for which the specification alone speaks.
bool is_forbidden(const Counter::Entry& entry, Verdict verdict, bool known_target) noexcept;

// Who ran the tests, as far as it can be found out; what cannot is left out.
struct Machine {
  std::string device;  // "AMD Instinct MI210 (gfx90a)"
  std::string target;  // "gfx90a"
  bool is_virtual = false;
  std::string hsa_version;   // "1.1"
  std::string rocr_build;    // what the runtime says of itself
  std::string rocr_library;  // the file that the runtime was loaded from: its name holds the version
  std::string driver;        // of the module amdgpu
  std::string kernel;        // uname -r
};
Machine describe_machine(const Agent& gpu, std::string device, bool is_virtual);

struct Report {
  Machine machine;
  uint32_t iterations = 0;
  std::vector<Result> results;

  bool known_target() const noexcept { return is_known_target(machine.target); }
  bool passed() const noexcept;
};

// A row for each shape, then each forbidden outcome as a line of its own. At most 80 columns but for the latter.
std::string table(const Report& report);

// {format: "uptempo-litmus-1", device, target, virtual_gpu, hsa_version, rocr_build, rocr_library, driver, kernel, iterations, words, target_rules, passed,
//  tests: [{name, specification, target, outcomes: [{values, count, sequential, forbidden}]}]}
// specification, target: "sequential" (no outcome but the sequential one is allowed) or "any". target_rules: whether target differs from
// specification at all, which needs a target that the rules know.
nlohmann::ordered_json json(const Report& report);

}  // namespace uptempo::litmus
