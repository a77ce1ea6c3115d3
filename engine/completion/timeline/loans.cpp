#include <uptempo/completion/timeline/loans.hpp>

#include <algorithm>

#include <uptempo/completion/timeline.hpp>

namespace uptempo::detail {

void Loans::start(size_t signals) {
  most_ = signals - std::min(signals, std::max<size_t>(1, signals / 4));
  all_.clear();
  lent_.clear();
  returned_.clear();
  lent_.reserve(most_);
  returned_.reserve(signals);
  note();
}

bool Loans::add(uint64_t value, hsa_signal_t signal) {
  auto lent = find(signal);
  if (all_.size() == all_.capacity() || (lent == lent_.end() && lent_.size() == most_)) {
    sweep();
    lent = find(signal);
    if (lent == lent_.end() && lent_.size() == most_) return false;
  }
  all_.push_back({.value = value, .signal = signal});
  if (lent == lent_.end()) lent = lent_.insert(lent, Lent{.signal = signal});
  ++lent->loans;
  note();
  return true;
}

void Loans::settle(uint64_t value, Timeline* borrower, uint64_t until) noexcept {
  const auto loan = std::ranges::find_if(
      all_, [=](const Loan& one) { return one.value == value && one.borrower == nullptr; });
  if (loan == all_.end()) return;
  loan->borrower = borrower;
  loan->until = until;
  if (borrower == nullptr) end(static_cast<size_t>(loan - all_.begin()));
  note();
}

bool Loans::keep(hsa_signal_t signal) noexcept {
  const auto lent = find(signal);
  if (lent == lent_.end()) return false;
  lent->kept = true;
  return true;
}

std::optional<Completion> Loans::reader(uint64_t complete) noexcept {
  sweep();
  for (const Loan& loan : all_) {
    if (loan.value > complete) continue;
    if (loan.borrower == nullptr) return Completion();
    if (loan.until <= loan.borrower->last_begun() &&
        loan.borrower->error().load(std::memory_order_acquire) == HSA_STATUS_SUCCESS)
      return completion_of(*loan.borrower, loan.until);
  }
  return {};
}

void Loans::sweep() noexcept {
  for (size_t i = 0; i < all_.size();) {
    const Loan& loan = all_[i];
    // Acquire, in both: the packet has read the signal before the signal is used again.
    if (loan.borrower != nullptr &&
        (loan.borrower->is_done(loan.until) || loan.borrower->reads_are_over())) {
      end(i);
    } else {
      ++i;
    }
  }
  note();
}

void Loans::end(size_t loan) noexcept {
  const auto lent = find(all_[loan].signal);
  all_[loan] = all_.back();
  all_.pop_back();
  if (--lent->loans != 0) return;
  if (lent->kept) returned_.push_back(lent->signal);
  *lent = lent_.back();
  lent_.pop_back();
}

std::vector<Loans::Lent>::iterator Loans::find(hsa_signal_t signal) noexcept {
  return std::ranges::find(lent_, signal.handle,
                           [](const Lent& lent) { return lent.signal.handle; });
}

}  // namespace uptempo::detail
