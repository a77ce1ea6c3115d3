// LentSignal: the completion signal of a publication, on loan to a packet of another queue, the
// borrower. The packet waits on the device until the signal is zero. Private to the engine.
//
// The publication's queue neither re-arms nor destroys the signal before the borrower's publication
// is complete. The borrower does nothing for that: the lending queue looks when it needs the
// signal (timeline/loans.hpp).
//
// If the awaited publication is lost, the packet would wait forever, so the borrower's queue fails,
// too. The caller then destroys that queue. The signal lives at least as long.
//
// Thread safety: any thread may borrow. The object is move-only with one owner.
// Lifetime: the lending queue and the Runtime may end at any time.
#pragma once

#include <hsa/hsa.h>

#include <functional>
#include <optional>
#include <utility>

#include <uptempo/completion/completion.hpp>
#include <uptempo/completion/waiter.hpp>

namespace uptempo::detail {

class LentSignal {
 public:
  LentSignal() = default;  // of no publication
  // Empty for a publication that is complete or lost; for one with a caller's own signal
  // (BatchSubmitter::complete_with()), which may be re-armed at completion; for a borrowed queue
  // with an error source, whose failure is found only by looking at it; and while the queue may
  // lend no more signals. Throws std::bad_alloc.
  static std::optional<LentSignal> borrow(const Completion& completion);
  // The same for a queue of streams or a copy lane, but waits for a signal that may be lent. Empty:
  // the publication is complete. Calls `end_loans` meanwhile, so that the borrowers of other
  // signals can complete. Throws Error if the publication is lost, and if no signal returns in
  // time: `waiter` has the deadline.
  static std::optional<LentSignal> borrow_in_time(const Completion& completion, Waiter waiter,
                                                  const std::function<void()>& end_loans);
  LentSignal(LentSignal&& other) noexcept
      : completion_(std::exchange(other.completion_, {})), signal_(other.signal_) {}
  LentSignal& operator=(LentSignal&& other) noexcept {
    std::swap(completion_, other.completion_);
    std::swap(signal_, other.signal_);
    return *this;
  }
  // Ends the loan, unless read_by() was called.
  ~LentSignal();

  hsa_signal_t signal() const noexcept { return signal_; }
  // The publication that the signal belongs to.
  const Completion& awaited() const noexcept { return completion_; }
  // Packets of the queue of `borrower`, which may be any of its publications, are about to wait for
  // the signal. Throws std::bad_alloc.
  void expect_reader(const Completion& borrower);
  // These packets are published, in `borrower`. Requires expect_reader().
  void read_by(const Completion& borrower) noexcept;

  // True if both are of one queue and `later` does not complete first.
  static bool are_in_order(const Completion& earlier, const Completion& later) noexcept;

 private:
  static std::optional<LentSignal> try_borrow(const Completion& completion);
  LentSignal(const Completion& completion, hsa_signal_t signal) noexcept
      : completion_(completion), signal_(signal) {}

  Completion completion_;
  hsa_signal_t signal_{0};
};

}  // namespace uptempo::detail
