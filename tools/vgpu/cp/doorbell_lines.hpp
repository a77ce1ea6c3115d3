// Which doorbells of a queue have their line in the trace: each exactly one.
//
// A doorbell of the program is noted by the fault handler (DoorbellWatch) and, unless another one overwrites it first, found in its slot when the queue looks.
// Either may come first. One that a kernel rings is only found, and one that the handler could not decode too.
//
// Thread safety: none; it belongs to its queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace uptempo::vgpu {

class DoorbellLines {
 public:
  // `value` was noted when it was rung. False: it has its line, from when it was found.
  bool noted(uint64_t value, uint64_t rung_ns) {
    return !drop([&](const Line& line) {
      return !line.noted && line.value == value && line.ns >= rung_ns;
    }) && keep({value, rung_ns, true});
  }

  // `value` is in the slot. False: it has its line, from when it was noted.
  bool found(uint64_t value, uint64_t found_ns) {
    return !drop([&](const Line& line) { return line.noted && line.value == value; }) &&
           keep({value, found_ns, false});
  }

 private:
  // A line that the other side has not asked for yet. For most it never will.
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
