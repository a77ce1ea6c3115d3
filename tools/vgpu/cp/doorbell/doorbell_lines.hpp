// Gives each doorbell of a queue exactly one line in the trace.
//
// The fault handler notes a doorbell of the program (DoorbellWatch). The queue finds the same
// doorbell in its slot, unless another one overwrites it first. Either may happen first. A doorbell
// that a kernel rings, or whose store the handler cannot decode, is only found.
//
// A queue reads its slot, then takes the notes that wait, then reports what it read. Up to
// DoorbellWatch::kRecords newer doorbells can therefore be noted before the one that it found.
//
// Thread safety: none; the queue owns it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "cp/doorbell/doorbell_watch.hpp"

namespace uptempo::vgpu {

class DoorbellLines {
 public:
  // Reports a noted doorbell. Returns false if it already has a line because it was found.
  bool noted(uint64_t value, uint64_t rung_ns) {
    if (drop(found_, [&](const Line& line) { return line.value == value && line.ns >= rung_ns; }))
      return false;
    keep(noted_, {value, rung_ns}, kMaxNoted);
    return true;
  }

  // Reports a value found in the slot. Returns false if it already has a line because it was noted.
  bool found(uint64_t value, uint64_t found_ns) {
    if (drop(noted_, [&](const Line& line) { return line.value == value; })) return false;
    keep(found_, {value, found_ns}, kMaxFound);
    return true;
  }

 private:
  // A line that the other side has not asked for yet. For most lines it never asks.
  struct Line {
    uint64_t value;
    uint64_t ns;
  };
  using Lines = std::deque<Line>;  // newest first
  // Twice the doorbells that can be noted in between, for threads that have noted one and not
  // stored it yet.
  static constexpr size_t kMaxNoted = 2 * DoorbellWatch::kRecords;
  static constexpr size_t kMaxFound = 256;

  template <typename Condition>
  static bool drop(Lines& lines, Condition condition) {
    const auto line = std::find_if(lines.begin(), lines.end(), condition);
    if (line == lines.end()) return false;
    lines.erase(line);
    return true;
  }
  static void keep(Lines& lines, const Line& line, size_t limit) {
    lines.push_front(line);
    if (lines.size() > limit) lines.pop_back();
  }

  Lines noted_, found_;
};

}  // namespace uptempo::vgpu
