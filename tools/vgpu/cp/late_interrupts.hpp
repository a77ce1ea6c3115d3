// Delayed interrupts under --delay.
//
// They belong to the device, not to a queue. The device raises a signal's event even if its queue
// has been destroyed, since a thread may sleep on the event. Interrupts::raise() ignores an event
// that has been destroyed.
//
// Thread safety: none; the command processor's thread owns it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "device/interrupts.hpp"

namespace uptempo::vgpu {

class LateInterrupts {
 public:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  explicit LateInterrupts(Interrupts& interrupts) : interrupts_(interrupts) {}

  // Raises the event when host_clock_ns() has reached `due_ns`; 0: now.
  void raise(uint64_t due_ns, uint32_t event_id) {
    if (due_ns == 0) return interrupts_.raise(event_id);
    waiting_.emplace(due_ns, event_id);
  }

  // Returns false if none was due.
  bool raise_due(uint64_t now_ns) {
    bool raised = false;
    for (; next_ns() <= now_ns; waiting_.pop()) {
      interrupts_.raise(waiting_.top().second);
      raised = true;
    }
    return raised;
  }

  // Returns when the next one is due, or kNever.
  uint64_t next_ns() const noexcept { return waiting_.empty() ? kNever : waiting_.top().first; }

 private:
  using Late = std::pair<uint64_t, uint32_t>;  // due time and event
  Interrupts& interrupts_;
  std::priority_queue<Late, std::vector<Late>, std::greater<>> waiting_;
};

}  // namespace uptempo::vgpu
