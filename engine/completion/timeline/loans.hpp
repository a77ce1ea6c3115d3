// Loans: the publications of a timeline for whose signals packets of other queues wait, and the
// publications of those packets, the borrowers. A loan is over when its borrower is complete: the
// packet has then read the signal for the last time. Private to Timeline.
//
// Thread safety: the timeline's mutex protects every function except any().
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace uptempo {
class Timeline;
}

namespace uptempo::detail {

class Loans {
 public:
  // True if there are loans. Any thread; another thread's call may not be visible yet.
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  bool has(uint64_t value) const noexcept {
    return std::ranges::find(all_, value, &Loan::value) != all_.end();
  }
  // True if can_end(value, borrower) holds for every loan. The borrower may be null.
  template <class CanEnd>
  bool all_of(CanEnd&& can_end) const noexcept {
    return std::ranges::all_of(
        all_, [&](const Loan& loan) { return can_end(loan.value, loan.borrower); });
  }

  // Adds a loan without a borrower. Throws std::bad_alloc.
  void add(uint64_t value) {
    all_.push_back({.value = value});
    any_.store(true, std::memory_order_relaxed);
  }
  // Sets the borrower of a loan of `value` that has none, unless clear() has removed it.
  void set_borrower(uint64_t value, Timeline& timeline, uint64_t until) noexcept {
    const auto loan = find_open(value);
    if (loan == all_.end()) return;
    loan->borrower = &timeline;
    loan->until = until;
  }
  // Removes a loan of `value` that has no borrower. Returns false if clear() has removed it.
  bool remove(uint64_t value) noexcept {
    const auto loan = find_open(value);
    if (loan == all_.end()) return false;
    all_.erase(loan);
    note_size();
    return true;
  }
  // Removes the loans whose borrower is_over(timeline, value). Calls on_end(value) for each value
  // that has no loan left.
  template <class IsOver, class OnEnd>
  void sweep(IsOver&& is_over, OnEnd&& on_end) noexcept {
    for (size_t i = 0; i < all_.size();) {
      const Loan loan = all_[i];
      if (loan.borrower == nullptr || !is_over(*loan.borrower, loan.until)) {
        ++i;
        continue;
      }
      all_[i] = all_.back();
      all_.pop_back();
      if (!has(loan.value)) on_end(loan.value);
    }
    note_size();
  }
  void clear() noexcept {
    all_.clear();
    note_size();
  }

 private:
  struct Loan {
    uint64_t value = 0;
    Timeline* borrower = nullptr;  // null: its packet is not published yet
    uint64_t until = 0;
  };
  std::vector<Loan>::iterator find_open(uint64_t value) noexcept {
    return std::ranges::find_if(
        all_, [=](const Loan& loan) { return loan.value == value && loan.borrower == nullptr; });
  }
  void note_size() noexcept { any_.store(!all_.empty(), std::memory_order_relaxed); }

  std::vector<Loan> all_;
  std::atomic<bool> any_{false};
};

}  // namespace uptempo::detail
