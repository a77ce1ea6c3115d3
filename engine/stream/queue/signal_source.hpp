// What work of streams runs on, one thing after another: a hardware queue. Each track tells on a timeline how far it is. Private to engine/stream.
//
// Thread safety: every function from any thread.
#pragma once

#include <hsa/hsa.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "engine/dispatch/pools/signal_pool.hpp"
#include "engine/completion/timeline.hpp"

namespace uptempo::detail {

class SignalSource {
 public:
  // A signal that is zero once a value of the track's timeline is complete, and stays so while the loan lasts.
  struct Borrowed {
    hsa_signal_t signal{0};
    SignalLoan loan;
  };

  virtual Timeline& source_timeline() noexcept = 0;
  // For packets to wait for. Empty: the value is complete. The null signal: all that the track may lend are on loan; some may come back when their borrowers give back loans. Throws
  // Error if the track has failed.
  virtual std::optional<Borrowed> borrow(uint64_t value) = 0;
  // The same, but waits for a signal that may be lent, and calls `ask` (if any) for loans to be given back. Throws Error when none comes in time.
  std::optional<Borrowed> borrow_in_time(uint64_t value, std::chrono::nanoseconds patience,
                                         const std::function<void()>& ask);
  // Ends the loans of what has completed.
  virtual void give_back_loans() noexcept = 0;

 protected:
  ~SignalSource() = default;
  // borrow() of a track whose values these are, under its lock. `check_failed` throws Error if the track has failed.
  template <class CheckFailed>
  static std::optional<Borrowed> lend(Timeline& timeline, SignalPool& signals, uint64_t value,
                                      CheckFailed&& check_failed) {
    if (timeline.is_done(value)) return {};
    check_failed();
    const hsa_signal_t signal = timeline.signal_of(value);
    if (!signals.may_lend(signal)) return Borrowed{};
    return Borrowed{.signal = signal, .loan = signals.lend(signal)};
  }
};

}  // namespace uptempo::detail
