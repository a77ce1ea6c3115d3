// One HSA signal, owned.
//
// Creating one costs 10-50 us, because an interrupt signal may allocate a driver event, of which a process has 4096: make signals in
// set-up, or take them from a SignalPool. Every interrupt signal counts against the process's budget (signal_budget.hpp). Beyond it, and where ROCr
// 5.2.3 silently hands out a signal without event because the driver has none left, the budget says whether that is an Error or not;
// `interrupt()` says what was really got. A blocked wait of HSA on an event-less signal spins.
//
// Thread safety: as HSA signals, any thread; the object itself is move-only with one owner.
#pragma once

#include <hsa/hsa.h>

#include <chrono>
#include <cstdint>

#include "engine/runtime/session.hpp"

namespace uptempo {

enum class SignalKind : uint8_t {
  interrupt,   // a waiter can sleep
  event_less,  // no driver event: for timestamps and for dependencies between packets
};

namespace detail {

// The longest sleep before deadlines and failures are looked at again; also what a lost interrupt costs at most.
inline constexpr std::chrono::nanoseconds longest_sleep = std::chrono::milliseconds(250);

// Pauses between looks at a signal that nobody can sleep on double from the first to the longest: seen late by no more than the time waited, and 250
// looks a second at 10 to 20 us of CPU time each are below 1 % of a core. (Once a millisecond was 2.3 %, measured on two busy cores.)
inline constexpr std::chrono::nanoseconds first_pause = std::chrono::microseconds(10);
inline constexpr std::chrono::nanoseconds longest_pause = std::chrono::milliseconds(4);

// What hsa_signal_wait_* take: ticks of the system's clock.
uint64_t ticks_in(std::chrono::nanoseconds duration) noexcept;

}  // namespace detail

class Signal {
 public:
  // Throws Error if HSA or the budget has none left.
  explicit Signal(SignalKind asked = SignalKind::interrupt, hsa_signal_value_t initial = 1);

  hsa_signal_t handle() const noexcept { return {owned_.handle()}; }
  // True if completion can wake a sleeping waiter.
  bool interrupt() const noexcept { return interrupt_; }
  bool alive() const noexcept { return owned_.alive(); }
  // Gives up the signal, which lives on until the end of the Runtime: something in flight may still use it.
  void leave_to_session() noexcept { owned_.leave_to_session(); }

 private:
  Owned owned_;
  bool interrupt_ = false;
};

}  // namespace uptempo
