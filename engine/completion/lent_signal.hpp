// LentSignal: the completion signal of a publication, on loan to a packet of another queue, the
// borrower. The packet waits on the device until the signal is zero. Private to the engine.
//
// The publication's queue neither re-arms nor destroys the signal before the borrower's publication
// is complete. Its owner notices that at a later submission. So the borrower should execute soon
// after the awaited publication: otherwise the lending queue cannot reuse the resources of this and
// of later publications.
//
// If the awaited publication is lost, the packet would wait forever, so the borrower's queue fails,
// too. The caller then destroys that queue. The signal lives at least as long.
//
// Thread safety: any thread may borrow. The object is move-only with one owner.
// Lifetime: the lending queue and the Runtime may end at any time.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "engine/completion/completion.hpp"

namespace uptempo::detail {

class LentSignal {
 public:
  // Empty for a publication that is complete or lost; for one with a caller's own signal
  // (BatchSubmitter::complete_with()), which may be re-armed at completion; and for a borrowed
  // queue with an error source, whose failure is found only by looking at it. Throws
  // std::bad_alloc.
  static std::optional<LentSignal> borrow(const Completion& completion);
  LentSignal(LentSignal&& other) noexcept
      : completion_(std::exchange(other.completion_, {})), signal_(other.signal_) {}
  LentSignal& operator=(LentSignal&&) = delete;
  // Ends the loan, unless read_by() was called.
  ~LentSignal();

  hsa_signal_t signal() const noexcept { return signal_; }
  // Packets of the queue of `borrower`, which may be any of its publications, are about to wait for
  // the signal. Throws std::bad_alloc.
  void expect_reader(const Completion& borrower);
  // These packets are published, in `borrower`. Requires expect_reader().
  void read_by(const Completion& borrower) noexcept;

  // True if both are of one queue and `later` does not complete first.
  static bool are_in_order(const Completion& earlier, const Completion& later) noexcept;

 private:
  LentSignal(const Completion& completion, hsa_signal_t signal) noexcept
      : completion_(completion), signal_(signal) {}

  Completion completion_;
  hsa_signal_t signal_;
};

}  // namespace uptempo::detail
