#include <uptempo/completion/lent_signal.hpp>

#include <uptempo/completion/timeline.hpp>
#include <uptempo/completion/waiter.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {

std::optional<LentSignal> LentSignal::borrow(const Completion& completion) {
  Timeline* const timeline = timeline_of(completion);
  // Only looks at an error source find its errors, and the borrower does not look.
  if (timeline == nullptr || timeline->watches()) return {};
  return try_borrow(completion);
}

std::optional<LentSignal> LentSignal::try_borrow(const Completion& completion) {
  Timeline* const timeline = timeline_of(completion);
  if (timeline == nullptr) return {};
  const hsa_signal_t signal = timeline->lend(completion.value());
  if (signal.handle == 0) return {};
  return LentSignal(completion, signal);
}

std::optional<LentSignal> LentSignal::borrow_in_time(const Completion& completion, Waiter waiter,
                                                     const std::function<void()>& end_loans) {
  while (true) {
    // First, because a failed copy's signal, which is negative, would never become zero.
    if (completion.ready()) return {};  // it needs no signal any more
    if (std::optional<LentSignal> signal = try_borrow(completion)) return signal;
    if (end_loans) end_loans();
    if (waiter.wait()) continue;
    throw Error(
        {.code = ErrorCode::signals,
         .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
         .call = "Stream::after",
         .asked = "a completion signal of another queue, for packets to wait for",
         .found = "packets of other queues still wait on every signal that the queue may lend",
         .remedy = "wait on the host, or create the Streams with more "
                   "QueueOptions::publications or CopyLimits::engine_copies"});
  }
}

LentSignal::~LentSignal() {
  if (Timeline* const timeline = timeline_of(completion_)) timeline->end_loan(completion_.value());
}

void LentSignal::expect_reader(const Completion& borrower) {
  timeline_of(completion_)->expect_dependent(*timeline_of(borrower));
}

void LentSignal::read_by(const Completion& borrower) noexcept {
  const Completion awaited = std::exchange(completion_, {});
  timeline_of(awaited)->lent_to(awaited.value(), *timeline_of(borrower), borrower.value());
  timeline_of(awaited)->fail_too(*timeline_of(borrower), awaited.value());
}

bool LentSignal::are_in_order(const Completion& earlier, const Completion& later) noexcept {
  return timeline_of(earlier) == timeline_of(later) && earlier.value() <= later.value();
}

}  // namespace uptempo::detail
