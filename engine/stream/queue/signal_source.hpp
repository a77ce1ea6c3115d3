// SignalSource: executes stream work in order and tracks progress on a timeline, for example a
// hardware queue or a copy lane. Private to engine/stream.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <hsa/hsa.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "engine/completion/timeline.hpp"
#include "engine/dispatch/pools/signal_pool.hpp"

namespace uptempo::detail {

class SignalSource {
 public:
  // A signal that is zero once a value of the source's timeline is complete. It stays zero until
  // the loan ends.
  struct Borrowed {
    hsa_signal_t signal{0};
    SignalLoan loan;
  };

  virtual Timeline& source_timeline() noexcept = 0;
  // Lends a signal for packets to wait on. Empty: the value is complete. Null signal: all signals
  // that the source may lend are on loan; some may return when borrowers end their loans. Throws
  // Error if the source has failed.
  virtual std::optional<Borrowed> borrow(uint64_t value) = 0;
  // Like borrow(), but waits for a signal and calls `on_shortage` (if any) to have loans returned.
  // Throws Error on timeout.
  std::optional<Borrowed> borrow_in_time(uint64_t value, std::chrono::nanoseconds patience,
                                         const std::function<void()>& on_shortage);
  // Ends the loans of completed work.
  virtual void give_back_loans() noexcept = 0;

 protected:
  ~SignalSource() = default;
  // Implements borrow() for the source that owns the timeline, under its lock. `check_failed`
  // throws Error if the source has failed.
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
