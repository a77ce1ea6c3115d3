#include "engine/completion/lent_signal.hpp"

#include "engine/completion/timeline.hpp"

namespace uptempo::detail {

std::optional<LentSignal> LentSignal::borrow(const Completion& completion) {
  if (completion.timeline_ == nullptr) return {};
  const hsa_signal_t signal = completion.timeline_->lend(completion.value());
  if (signal.handle == 0) return {};
  return LentSignal(completion, signal);
}

LentSignal::~LentSignal() {
  if (completion_.timeline_ != nullptr) completion_.timeline_->end_loan(completion_.value());
}

void LentSignal::expect_reader(const Completion& borrower) {
  completion_.timeline_->expect_dependent(*borrower.timeline_);
}

void LentSignal::read_by(const Completion& borrower) noexcept {
  const Completion awaited = std::exchange(completion_, {});
  awaited.timeline_->lent_to(awaited.value(), *borrower.timeline_, borrower.value());
  awaited.timeline_->fail_too(*borrower.timeline_, awaited.value());
}

bool LentSignal::are_in_order(const Completion& earlier, const Completion& later) noexcept {
  return earlier.timeline_ == later.timeline_ && earlier.value() <= later.value();
}

}  // namespace uptempo::detail
