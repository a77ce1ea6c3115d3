#include "engine/stream/queue/signal_waits.hpp"

#include <algorithm>
#include <utility>

namespace uptempo::detail {

void WaitSet::add(Timeline& timeline, uint64_t value, SignalSource::Borrowed&& signal) noexcept {
  members_[size_++] = {.timeline = &timeline, .value = value, .signal = std::move(signal)};
}

aql::Packet64 WaitSet::packet() const noexcept {
  aql::BarrierAnd barrier{};
  for (size_t i = 0; i < size_; ++i) barrier.dependencies[i] = members_[i].signal.signal;
  return aql::to_packet(barrier);
}

SignalWaits::SignalWaits(Timeline& own) : own_(own) { reserve(loans_); }

void SignalWaits::reserve(std::vector<SignalLoan>& loans) {
  loans.reserve(kManyLoans + WaitSet::kMost);
}

const SignalWaits::Place* SignalWaits::find(const Timeline& timeline,
                                            uint64_t value) const noexcept {
  const auto at = std::ranges::find(seen_, &timeline, &Seen::timeline);
  return at == seen_.end() || at->value < value ? nullptr : &at->place;
}

void SignalWaits::keep_loans(WaitSet& waits) {
  if (seen_.capacity() < seen_.size() + WaitSet::kMost)
    seen_.reserve(2 * (seen_.size() + WaitSet::kMost));
  for (const WaitSet::Member& wait : waits.members()) wait.timeline->expect_dependent(own_);
  for (WaitSet::Member& wait : waits.members()) loans_.push_back(std::move(wait.signal.loan));
}

void SignalWaits::note(WaitSet& waits, Place place) noexcept {
  for (const WaitSet::Member& wait : waits.members()) {
    auto at = std::ranges::find(seen_, wait.timeline, &Seen::timeline);
    if (at == seen_.end()) at = seen_.insert(at, Seen{});
    if (at->value <= wait.value)
      *at = {.timeline = wait.timeline, .value = wait.value, .place = place};
    wait.timeline->fail_too(own_, wait.value);
  }
}

}  // namespace uptempo::detail
