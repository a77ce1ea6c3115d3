// Gives each doorbell of a queue exactly one line in the trace.
//
// The fault handler notes a doorbell of the program (DoorbellWatch). The queue finds the same
// doorbell in its slot, unless another one overwrites it first. Either may happen first. A doorbell
// that a kernel rings, or whose store the handler cannot decode, is only found.
//
// Thread safety: none; the queue owns it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace uptempo::vgpu {

class DoorbellLines {
 public:
  // Reports a noted doorbell. Returns false if it already has a line because it was found.
  bool noted(uint64_t value, uint64_t rung_ns) {
    return !drop([&](const Line& line) {
      return !line.noted && line.value == value && line.ns >= rung_ns;
    }) && keep({value, rung_ns, true});
  }

  // Reports a value found in the slot. Returns false if it already has a line because it was noted.
  bool found(uint64_t value, uint64_t found_ns) {
    return !drop([&](const Line& line) { return line.noted && line.value == value; }) &&
           keep({value, found_ns, false});
  }

 private:
  // A line that the other side has not asked for yet. For most lines it never asks.
  struct Line {
    uint64_t value;
    uint64_t ns;
    bool noted;
  };
  static constexpr size_t kMaxLines = 256;

  template <typename Condition>
  bool drop(Condition condition) {
    const auto line = std::find_if(lines_.begin(), lines_.end(), condition);
    if (line == lines_.end()) return false;
    lines_.erase(line);
    return true;
  }
  bool keep(const Line& line) {
    lines_.push_front(line);
    if (lines_.size() > kMaxLines) lines_.pop_back();
    return true;
  }

  std::deque<Line> lines_;  // newest first
};

}  // namespace uptempo::vgpu
