#include "engine/stream/queue/signal_waits.hpp"

#include <algorithm>

#include "engine/completion/timeline.hpp"

namespace uptempo::detail {
namespace {

auto of_queue(const Completion& completion) {
  return [timeline = timeline_of(completion)](const auto& seen) {
    return timeline_of(seen.awaited) == timeline;
  };
}

}  // namespace

aql::Packet64 WaitSet::packet() const noexcept {
  aql::BarrierAnd barrier{};
  for (size_t i = 0; i < size_; ++i) barrier.dependencies[i] = signals_[i].signal();
  return aql::to_packet(barrier);
}

const SignalWaits::Place* SignalWaits::find(const Completion& awaited) const noexcept {
  const auto at = std::ranges::find_if(seen_, of_queue(awaited));
  return at == seen_.end() || at->awaited.value() < awaited.value() ? nullptr : &at->place;
}

void SignalWaits::expect(WaitSet& waits, const Completion& own) {
  if (seen_.capacity() < seen_.size() + WaitSet::kMost)
    seen_.reserve(2 * (seen_.size() + WaitSet::kMost));
  for (size_t i = 0; i < waits.size_; ++i) waits.signals_[i].expect_reader(own);
}

void SignalWaits::note(WaitSet& waits, uint64_t packet, const Completion& own) noexcept {
  for (size_t i = 0; i < waits.size_; ++i) {
    const Completion awaited = waits.signals_[i].awaited();
    auto at = std::ranges::find_if(seen_, of_queue(awaited));
    if (at == seen_.end()) at = seen_.insert(at, Seen{});
    if (at->awaited.value() <= awaited.value())
      *at = {.awaited = awaited, .place = {.packet = packet, .epoch = own.value()}};
    waits.signals_[i].read_by(own);
  }
}

}  // namespace uptempo::detail
