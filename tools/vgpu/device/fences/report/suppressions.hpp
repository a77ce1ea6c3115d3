// Findings that a user does not want to see: a file with one rule per line.
//
//   # a comment
//   CLASS WRITER READER [queue=N]
//   unordered  fill*  "sum(int*, unsigned int)"  queue=2
//
// CLASS: a finding's class, or *. WRITER and READER: globs with * and ?, which must match the
// kernel's whole name, as the program wrote it or as the linker has it, with or without ".kd";
// the name of a copy engine's operation; or "host". A glob with spaces is in double quotes, all of
// it. Where both tasks write, either may come first. queue=N: one of the two is on queue N, as in
// findings. Both tasks of a race are its dispatch. For findings of --check memory, the second glob
// is for one of the functions that allocated the memory, with or without its arguments.
//
// Errors: parse() throws std::invalid_argument, which names the line and the mistake.
// Thread safety: none; the checker's lock guards it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/fences/finding.hpp"

namespace uptempo::vgpu::fences {

class Suppressions {
 public:
  // `file`: the name for messages.
  static Suppressions parse(std::string_view text, const std::string& file);
  // An empty name gives no rules. Throws std::invalid_argument if the file cannot be read, is no
  // regular file, or is larger than 1 MiB.
  static Suppressions read(const std::string& file);

  // Marks each rule that matches as used.
  bool suppress(const Finding& finding);
  // The same for a race inside a kernel.
  bool suppress_race(const std::string& kernel, uint32_t queue);

  // The same for a finding of --check memory.
  struct OfMemory {
    std::string_view what;
    std::string task;  // the kernel's symbol, the copy's operation, or "host"
    bool is_dispatch = false;
    std::optional<uint32_t> queue;
    std::vector<std::string> allocated_by;  // functions, with their arguments
  };
  bool suppress(const OfMemory& finding);

  // "FILE:LINE" of each rule that has matched nothing.
  std::vector<std::string> unused() const;

 private:
  struct Rule {
    std::string what;  // a class, or "*"
    std::string writer, reader;
    std::optional<uint32_t> queue;
    std::string place;
    bool used = false;

    bool matches(const Finding& finding) const;
    bool matches(const OfMemory& finding) const;
    bool matches_race(const std::string& kernel, uint32_t on_queue) const;
  };
  template <class Matches>
  bool suppress_if(Matches matches);

  std::vector<Rule> rules_;
};

}  // namespace uptempo::vgpu::fences
