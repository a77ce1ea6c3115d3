// Loans: the signals of a timeline's publications that packets of other queues wait for, and the
// publications of those packets, the borrowers. A loan is over when its borrower is complete: the
// packet has then read the signal for the last time. Private to Timeline.
//
// A publication is reclaimed while its signal is on loan. Only the signal returns later, so a
// borrower that does not execute delays nobody's kernargs. At most three quarters of the owner's
// signals are on loan, so the owner always has some.
//
// Thread safety: the timeline's mutex protects every function except any().
#pragma once

#include <hsa/hsa.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <uptempo/completion/completion.hpp>

namespace uptempo::detail {

class Loans {
 public:
  // Begins the loans of an owner with this many signals; the earlier ones are forgotten. Throws
  // std::bad_alloc.
  void start(size_t signals);

  // True if there is something to sweep or to return. Any thread; another thread's call may not be
  // visible yet.
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  // True if a timeline of the process has a signal on loan.
  static bool any_of_process() noexcept { return owners_.load(std::memory_order_relaxed) != 0; }

  // Lends the signal of a publication, without a borrower. Returns false if no further signal may
  // be lent. Throws std::bad_alloc.
  bool add(uint64_t value, hsa_signal_t signal);
  // Sets the borrower of a loan of `value` that has none, unless start() has removed it. Without a
  // borrower, ends the loan.
  void settle(uint64_t value, Timeline* borrower, uint64_t until) noexcept;

  // Ends the loans whose borrowers are complete.
  void sweep() noexcept;
  // The owner has no more use for the signal. Returns true if it is on loan; take_returned() then
  // returns it after its last loan.
  bool keep(hsa_signal_t signal) noexcept;
  // Calls f(signal) for the kept signals whose loans are over.
  template <class F>
  void take_returned(F&& f) noexcept {
    sweep();
    std::ranges::for_each(returned_, f);
    returned_.clear();
    note();
  }
  // Returns the borrower of a loan that will end: that of a publication up to `complete`, which is
  // published and has not failed. The empty Completion: its packet is about to be published. Empty
  // if there is none.
  std::optional<Completion> reader(uint64_t complete) noexcept;
  // Calls f(signal) for each signal on loan.
  template <class F>
  void for_each(F&& f) noexcept {
    sweep();
    for (const Lent& lent : lent_) f(lent.signal);
  }

 private:
  struct Loan {
    uint64_t value = 0;
    hsa_signal_t signal{0};
    Timeline* borrower = nullptr;  // null: its packet is not published yet
    uint64_t until = 0;
  };
  struct Lent {
    hsa_signal_t signal{0};
    uint32_t loans = 0;
    bool kept = false;  // the owner's publication is reclaimed
  };

  void end(size_t loan) noexcept;
  std::vector<Lent>::iterator find(hsa_signal_t signal) noexcept;
  void note() noexcept {
    any_.store(!all_.empty() || !returned_.empty(), std::memory_order_relaxed);
    if (lends_ == !all_.empty()) return;
    lends_ = !lends_;
    lends_ ? owners_.fetch_add(1, std::memory_order_relaxed)
           : owners_.fetch_sub(1, std::memory_order_relaxed);
  }

  size_t most_ = 0;  // signals on loan
  std::vector<Loan> all_;
  std::vector<Lent> lent_;              // has room for most_
  std::vector<hsa_signal_t> returned_;  // has room for every signal of the owner
  std::atomic<bool> any_{false};
  bool lends_ = false;
  static inline constinit std::atomic<uint32_t> owners_{0};  // whose lends_ is true
};

}  // namespace uptempo::detail
