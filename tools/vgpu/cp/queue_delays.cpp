#include "cp/queue_delays.hpp"

#include <algorithm>

#include "device/clock.hpp"

namespace uptempo::vgpu {

QueueDelays::QueueDelays(uint64_t seed, uint32_t ordinal, LateInterrupts& interrupts) noexcept
    : delays_(seed, ordinal), interrupts_(interrupts) {}

bool QueueDelays::over(DelayPlace place, uint64_t number) noexcept {
  Hold& hold = holds_[static_cast<size_t>(place)];
  if (!hold.begun || hold.number != number) hold = {true, number, begin(place, number)};
  return reached(hold.until_ns);
}

bool QueueDelays::doorbell_over(uint64_t value) noexcept {
  Hold& hold = holds_[static_cast<size_t>(DelayPlace::doorbell)];
  if (!hold.begun) hold = {true, value, begin(DelayPlace::doorbell, value)};
  if (!reached(hold.until_ns)) return false;
  hold.begun = false;
  return true;
}

uint64_t QueueDelays::begin(DelayPlace place, uint64_t number) const noexcept {
  const uint64_t delay_ns = drawn_ns(place, number);
  return delay_ns == 0 ? 0 : host_clock_ns() + delay_ns;
}

bool QueueDelays::reached(uint64_t until_ns) noexcept {
  if (until_ns == 0 || host_clock_ns() >= until_ns) return true;
  next_look_ns_ = std::min(next_look_ns_, until_ns);
  return false;
}

void QueueDelays::raise(uint32_t event_id, uint64_t number) {
  interrupts_.raise(begin(DelayPlace::interrupt, number), event_id);
}

uint64_t QueueDelays::drawn_ns(DelayPlace place, uint64_t number) const noexcept {
  return static_cast<uint64_t>(delays_.of(place, number).count());
}

}  // namespace uptempo::vgpu
