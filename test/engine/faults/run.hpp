// Runs fault_matrix itself under the launcher, in a process group of its own, until a limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace uptempo::faults {

// A process's output and its end.
struct Outcome {
  std::vector<std::pair<std::string, std::string>> facts;  // subject.hpp, in order
  int exit_code = -1;                                      // 128 + signal number
  bool hung = false;                                       // killed at the limit
  std::string err;                                         // its last lines on stderr

  // The last value of a fact, or "".
  std::string last(const std::string& name) const;
  bool has(const std::string& name) const { return !last(name).empty(); }
  // Values of `name` after round 1 (`again`) or before its end.
  std::string first(const std::string& name, bool again) const;
  bool died() const { return hung || exit_code >= 128; }
  bool was_injected() const;
  // Whether any event matched the rule.
  bool was_matched() const;
  // The numbers of the fact's Nth occurrence, from 1; empty if there is none.
  std::vector<uint64_t> numbers(const std::string& name, unsigned occurrence) const;
  // "hang", "SIGABRT", "exit 1", "ok"
  std::string end() const;
};

struct Command {
  std::string program;                  // "--subject" or "--control"
  std::vector<std::string> launcher{};  // its options
  std::string inject{};                 // rules, or ""
  std::string scenario = "work";        // subject.hpp
  std::chrono::seconds patience{60};
  std::chrono::seconds limit{120};
};

Outcome run(const std::string& launcher, const Command& command);

}  // namespace uptempo::faults
