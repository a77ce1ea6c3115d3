#include <uptempo/dispatch/batch_queue.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {
namespace {

uint32_t timing_signals_for(const Publication& publication) noexcept {
  const auto packets = static_cast<uint32_t>(publication.packets.size());
  switch (publication.timing) {
    case Timing::none:
      break;
    case Timing::batch:
      return packets > 1 ? 1 : 0;
    case Timing::each:
      return packets - 1;
  }
  return 0;
}

// Packets [from, from + published) are published. `whole`: with them, the whole batch.
[[gnu::always_inline]] inline void count_packets(const Publication& publication, uint64_t from,
                                                 uint64_t published, uint64_t doorbells, bool whole,
                                                 const aql::HeaderCosts& costs) noexcept {
  const uint64_t end = from + published;
  uint64_t signals = whole;
  if (!publication.timing_signals.empty()) [[unlikely]]
    for (uint64_t i = from; i < std::min<uint64_t>(end, publication.timing_signals.size()); ++i)
      signals += publication.timing_signals[i].handle != 0;
  count_published({.packets = published,
                   .completion_signals = signals,
                   .doorbells = doorbells,
                   .batches = whole},
                  costs);
}

}  // namespace

// Every submission makes the steps that are inlined here, whatever the compiler expects: saving and
// restoring registers at ten calls costs as much as the steps.

// Reserves what a part of the publication needs: every step that can wait or fail. Returns false at
// the deadline; then lack_ names the resource, and nothing is held.
[[gnu::always_inline]] inline bool BatchQueue::reserve(Publication& publication, aql::Slots& slots,
                                                       bool is_last, Deadline deadline) {
  reclaim(kReclaimInPassing);
  // Fast path: most batches need no scarce resource.
  if (publication.timing == Timing::none && publication.own_signal.handle == 0 &&
      timeline_.has_room() && signals_.has(SignalKind::interrupt) && !writer_->has_intruder() &&
      writer_->try_reserve(slots)) [[likely]]
    return true;
  return reserve_when_free(publication, slots, is_last, deadline);
}

bool BatchQueue::reserve_when_free(Publication& publication, aql::Slots& slots, bool is_last,
                                   Deadline deadline) {
  if (writer_->has_intruder()) refuse_beside_others(publication);
  // Before the first part, whose publication nothing takes back, and before the last one.
  if (publication.own_signal.handle != 0) check_own_signal(publication);
  const bool own_signal = is_last && publication.own_signal.handle != 0;
  const uint32_t timing = publication.timing_signals.empty() ? timing_signals_for(publication) : 0;
  if (!await_signals(timing, own_signal, deadline)) return false;
  publication.timing_signals.reserve(timing);
  if (publication.timing != Timing::none) {
    require_profiling();
    // The last part has the batch's times.
    timeline_.expect_times(timeline_.last_begun() + 1 + parts_before_last(publication),
                           timing_signals_for(publication) + size_t{1});
  }
  // Last, because slots that a shared producer has claimed must be published.
  ring_refusal_ = writer_->reserve(slots, deadline);
  if (ring_refusal_) return true;
  if (ring_refusal_.status == aql::PublishStatus::too_long) refuse_longer_than_ring(publication);
  if (ring_refusal_.status == aql::PublishStatus::queue_failed) {
    timeline_.fail(ring_refusal_.queue_error, "the queue's error source reported an error");
    throw_failed();
  }
  note_ring(ring_refusal_.occupancy);
  lack_ = Lack::ring;
  return false;
}

// Waits for a place on the timeline and for signals.
bool BatchQueue::await_signals(uint32_t timing, bool own_signal, Deadline deadline) {
  // Without interrupt signals, the completion signal is event-less, too.
  const uint32_t event_less = timing + (signals_.interrupts() == 0 && !own_signal ? 1 : 0);
  if (timing != 0 && event_less > signals_.event_less())
    throw_exhausted(
        ErrorCode::argument,
        fmt::format("set of {} event-less signals for timing and completion", event_less),
        fmt::format("{} event-less signals", signals_.event_less()),
        "a batch cannot have more, whatever is free");
  Waiter waiter(deadline);
  for (bool has_reclaimed = false;; has_reclaimed = true) {
    lack_ = !timeline_.has_room()                                 ? Lack::publications
            : !own_signal && !signals_.has(SignalKind::interrupt) ? Lack::signals
            : timing != 0 && signals_.free(SignalKind::event_less) < event_less
                ? Lack::timing_signals
                : Lack::none;
    if (lack_ == Lack::none) return true;
    if (!has_reclaimed) {
      reclaim_signals(kAll);
    } else if (!wait_for_oldest(waiter)) {
      return false;
    }
  }
}

void BatchQueue::take_timing_signals(Publication& publication) noexcept {
  const uint32_t count = timing_signals_for(publication);
  // A finished packet keeps the caller's completion signal.
  for (uint32_t i = 0; i < count; ++i)
    publication.timing_signals.push_back(
        publication.is_finished(i) ? hsa_signal_t{0} : signals_.take(SignalKind::event_less));
}

// Takes a signal and a place on the timeline for reserved slots.
[[gnu::always_inline]] inline void BatchQueue::begin(Publication& publication,
                                                     bool is_last) noexcept {
  if (publication.timing != Timing::none && publication.timing_signals.empty()) [[unlikely]]
    take_timing_signals(publication);
  // With the first part: others may wait for it from then on.
  if (publication.own_signal.handle != 0 && publication.published == 0) [[unlikely]]
    aql::rearm(publication.own_signal, 1);
  const bool own_signal = is_last && publication.own_signal.handle != 0;
  publication.completion =
      own_signal ? publication.own_signal : signals_.take(SignalKind::interrupt);
  publication.value = QueueResources::begin(publication.completion,
                                            own_signal ? SignalOwner::caller : SignalOwner::queue);
  if (is_last && publication.timing != Timing::none) [[unlikely]]
    note_timing(publication.value);
}

bool BatchQueue::append_closing_packet(Publication& publication) {
  const size_t count = publication.packets.size();
  if (count != 0 && !publication.is_finished(count - 1)) return false;
  if (publication.packets.full()) make_room(publication);
  publication.put_barrier();
  return true;
}

namespace {

// Emits `count` packets of the publication, the first of them being `from`, and a packet `end`
// after them. `barrier`: added to the first one's header.
struct Packets {
  uint32_t operator()(uint64_t i, void* slot) const noexcept {
    if (i == count) return aql::fill(slot, end);
    const uint32_t word = publication.emit(from + i, slot);
    return i == 0 ? word | barrier : word;
  }
  void operator()(uint64_t i, std::span<aql::Packet64> slots) const noexcept {
    const size_t own = std::min<size_t>(slots.size(), count - i);
    publication.emit(from + i, slots.first(own));
    aql::store_behind_gate(slots.subspan(own), &end);
  }
  Publication& publication;
  uint64_t from, count;
  uint32_t barrier;
  const aql::Packet64& end;
};

constexpr uint32_t kBarrierBit = 1u << HSA_PACKET_HEADER_BARRIER;

}  // namespace

// Publishes packets in reserved slots: the rest of the publication, or a part of it with a barrier
// packet at its end.
[[gnu::always_inline]] inline void BatchQueue::publish(Publication& publication,
                                                       const aql::Slots& slots,
                                                       bool is_last) noexcept {
  const uint64_t from = publication.published, count = slots.count - !is_last;
  begin(publication, is_last);
  // Before the first header, and once for the whole batch: it is written by now.
  if (publication.kernargs.blocks != 0 && from == 0) device_writes_.flush();
  aql::Packet64 end;
  if (!is_last) [[unlikely]]
    end = aql::to_packet(
        aql::BarrierAnd{.flags = {aql::Barrier::on, aql::FenceScope::none, aql::FenceScope::system},
                        .completion_signal = publication.completion});
  // The first packet of a later part follows other batches, which may have passed.
  const bool follows = from != 0 && !publication.is_finished(from);
  // Before the first header: a failure names the submission.
  flight_.begin({.value = publication.value,
                 .first = slots.first,
                 .packets = static_cast<uint32_t>(slots.count),
                 .headers = from == 0 && is_last
                                ? publication.flight_headers()
                                : FlightHeaders{publication.header(from),
                                                is_last ? publication.header(from + count - 1)
                                                        : end.header()},
                 .kernel = aql::detail::load_eight_bytes(&publication.packets[from].word[8]),
                 .site = publication.site});
  if (publication.holds_slots) [[unlikely]]
    writer_->hold(slots, {.owner = &timeline_, .value = publication.value});
  const uint64_t doorbells = writer_->commit(
      slots, Packets{publication, from, count, follows ? kBarrierBit : 0, end},
      from == 0 ? publication.chunking : aql::Chunking{.chunk = publication.chunking.chunk});
  aql::HeaderCosts costs = publication.costs(from, count);
  if (follows) [[unlikely]]
    costs.barriers += (publication.header(from) & kBarrierBit) == 0;
  count_packets(publication, from, count, doorbells, is_last, costs);
  if (is_last) [[likely]]
    return retain(publication);
  publication.published += count;
  count_published({.packets = 1, .completion_signals = 1, .doorbells = 0, .batches = 0},
                  aql::costs_of(end.header()));
}

void BatchQueue::make_room(Publication& publication) {
  if (publication.ended_by != EndedBy::nothing) refuse_ended(publication);
  if (publication.published != 0) refuse_more(publication, "one more packet");
  publication.packets.grow();
}

std::optional<uint64_t> BatchQueue::submit(Publication& publication, Deadline deadline) {
  if (timeline_.failed()) {
    if (publication.published != 0) drop(publication);
    throw_failed();
  }
  if (publication.packets.empty() && publication.own_signal.handle == 0)
    return timeline_.last_begun();

  try {
    if (publication.published == 0) plan(publication, deadline);
    for (bool is_last = false; !is_last;) {
      is_last = parts_before_last(publication) == 0;
      aql::Slots slots{is_last ? publication.packets.size() - publication.published
                               : part_size() + 1};
      if (!reserve(publication, slots, is_last, deadline)) {
        restore(publication);
        return {};
      }
      publish(publication, slots, is_last);
    }
  } catch (...) {
    restore(publication);
    throw;
  }
  const uint64_t value = publication.value;
  clear(publication);
  if (!publication.kept && !writer_->has_device_ring())
    publication.packets.expect_slots(writer_->ring(), ring_size() - 1, writer_->next_index());
  return value;
}

// Every step that depends on the batch alone.
[[gnu::always_inline]] inline void BatchQueue::plan(Publication& publication, Deadline deadline) {
  publication.has_closing_packet = false;
  // The caller's signal needs a packet, too, if there is no other.
  publication.has_closing_packet = (!publication.declared.empty() || publication.packets.empty()) &&
                                   append_closing_packet(publication);
  if (deadline.is_now() && publication.packets.size() > longest_run())
    refuse_longer_than_ring(publication);
  if (publication.holds_slots) [[unlikely]]
    make_holds();
  publication.plan();
}

// Keeps the resources that the device may use from now on.
[[gnu::always_inline]] inline void BatchQueue::retain(Publication& publication) noexcept {
  Retained& held = retained(publication.value);
  held.slabs = kernargs_.publish(publication.kernargs);
  if (!publication.timing_signals.empty()) held.timing_signals.swap(publication.timing_signals);
  if (publication.borrows()) [[unlikely]]
    retain_borrowed(publication);
}

void BatchQueue::retain_borrowed(Publication& publication) noexcept {
  retained(publication.value).loans.swap(publication.loans);
  if (publication.lending != 0) lent_.publish(publication.lending, timeline_.last_begun());
}

// Restores the batch after a refusal, or keeps the rest of it.
void BatchQueue::restore(Publication& publication) noexcept {
  if (publication.published != 0)
    return timeline_.failed() ? drop(publication) : publication.packets.close();
  publication.reopen();
  if (publication.has_closing_packet) publication.drop_barrier();
}

[[gnu::always_inline]] inline void BatchQueue::clear(Publication& publication) noexcept {
  if (publication.lending != 0) [[unlikely]]
    lent_.drop(publication.lending);
  publication.kept ? publication.reopen() : publication.clear();
}

void BatchQueue::drop(Publication& publication) noexcept {
  if (usable()) {
    // The published parts may still use what the whole batch holds. A value that is reclaimed is
    // complete.
    if (publication.published != 0 && publication.value >= timeline_.oldest_pending()) {
      retain(publication);
    } else {
      for (const hsa_signal_t signal : publication.timing_signals)
        if (signal.handle != 0) signals_.give_back(signal);
    }
    kernargs_.drop(publication.kernargs);
  }
  clear(publication);
}

BatchQueue::~BatchQueue() {
  listener_.stop();
  end_publications(EndedBy::queue);
}

void BatchQueue::end_publications(EndedBy what) noexcept {
  while (publications_ != nullptr) end(*publications_, what);
}

void BatchQueue::end(Publication& publication, EndedBy what) noexcept {
  if (what == EndedBy::queue) drop(publication);
  leave(publication);
  if (!publication.kept) publication.end(what);
}

void BatchQueue::join(Publication& publication) noexcept {
  publication.queue = this;
  publication.next_ = publications_;
  publication.link_ = &publications_;
  if (publications_ != nullptr) publications_->link_ = &publication.next_;
  publications_ = &publication;
  if (!usable()) end(publication, EndedBy::runtime);
}

void BatchQueue::leave(Publication& publication) noexcept {
  *publication.link_ = publication.next_;
  if (publication.next_ != nullptr) publication.next_->link_ = publication.link_;
  publication.queue = nullptr;
}

}  // namespace uptempo::detail
