#include "engine/dispatch/batch_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "aql/amd_abi.hpp"
#include "engine/completion/end_wait.hpp"
#include "engine/dispatch/shared_hsa_queue.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo::detail {
namespace {

// Number of oldest publications that each submission reclaims. More than one, so that reclaiming is
// faster than submitting. Constant, so that a submission costs the same however many are finished.
constexpr uint32_t kReclaimInPassing = 2;

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

// Packets [from, from + published) are published.
[[gnu::always_inline]] inline void count_packets(const Publication& publication, uint64_t from,
                                                 uint64_t published, uint64_t doorbells,
                                                 const aql::HeaderCosts& costs) noexcept {
  if (published == 0) return;
  const uint64_t end = from + published;
  const bool whole = end == publication.packets.size();
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

// Fast path: most batches need no scarce resource.
[[gnu::always_inline]] inline bool BatchQueue::admits_at_once(
    const Publication& publication) noexcept {
  return publication.timing == Timing::none && publication.own_signal.handle == 0 &&
         timeline_.has_room() && signals_.has(SignalKind::interrupt) && !writer_->has_intruder() &&
         writer_->admits_now(publication.packets.size());
}

BatchQueue::SignalNeeds BatchQueue::signal_needs(const Publication& publication) const {
  const uint32_t timing = timing_signals_for(publication);
  // Without interrupt signals, the completion signal is event-less, too.
  const uint32_t event_less =
      timing + (signals_.interrupts() == 0 && publication.own_signal.handle == 0 ? 1 : 0);
  if (timing != 0 && event_less > signals_.event_less()) {
    throw_exhausted(
        fmt::format("set of {} event-less signals for timing and completion", event_less),
        fmt::format("{} event-less signals", signals_.event_less()),
        "a batch cannot have more, whatever is free");
  }
  return {timing, event_less};
}

// Waits for a place on the timeline and for signals.
bool BatchQueue::await_signals(const Publication& publication, const SignalNeeds& needs,
                               Deadline deadline) {
  for (;;) {
    refusal_ = !timeline_.has_room() ? Refusal::publications
               : publication.own_signal.handle == 0 && !signals_.has(SignalKind::interrupt)
                   ? Refusal::signals
               : needs.timing != 0 && signals_.free(SignalKind::event_less) < needs.event_less
                   ? Refusal::timing_signals
                   : Refusal::none;
    if (refusal_ == Refusal::none) return true;
    const uint32_t before = timeline_.pending();
    reclaim(kAll);
    if (timeline_.pending() == before && !wait_for_oldest(deadline)) return false;
  }
}

bool BatchQueue::await_ring(uint64_t packets, Deadline deadline) {
  if (writer_->admits_now(packets)) return true;
  ring_refusal_ = writer_->admit(packets, deadline);
  if (ring_refusal_) return true;
  refusal_ = Refusal::ring;
  note_ring(ring_refusal_.occupancy);
  if (ring_refusal_.status == aql::PublishStatus::queue_failed) check_failed();
  return false;
}

void BatchQueue::take_timing_signals(Publication& publication, uint32_t count) noexcept {
  for (uint32_t i = 0; i < count; ++i)
    publication.timing_signals.push_back(signals_.take(SignalKind::event_less));
  // A finished packet keeps the caller's completion signal.
  for (const Publication::PacketDeclarations& what : publication.declared) {
    if (!what.declarations.is_finished || what.packet >= count) continue;
    signals_.give_back(std::exchange(publication.timing_signals[what.packet], {0}));
  }
}

// Takes a place on the timeline. Requires room.
[[gnu::always_inline]] inline void BatchQueue::begin(Publication& publication,
                                                     hsa_signal_t completion) noexcept {
  publication.completion = completion;
  publication.value = timeline_.begin(
      completion, publication.own_signal.handle == 0 ? SignalOwner::queue : SignalOwner::caller);
  publications_level_.set(timeline_.pending());
}

bool BatchQueue::append_closing_packet(Publication& publication) {
  if (!publication.packets.empty() &&
      (publication.declared.back().packet + 1 != publication.packets.size() ||
       !publication.declared.back().declarations.is_finished))
    return false;
  if (publication.packets.full()) make_room(publication);
  publication.put_barrier();
  return true;
}

// True if all packets are in their slots, or a single packet can be copied there: publishing takes
// a few stores.
[[gnu::always_inline]] inline bool BatchQueue::is_in_place(
    const Publication& publication) const noexcept {
  return publication.packets.in_ring() ||
         (publication.packets.size() == 1 && !publication.kept && !writer_->is_shared());
}

// Before the first header: a failure names the submission.
[[gnu::always_inline]] inline void BatchQueue::record_flight(const Publication& publication,
                                                             uint64_t first) noexcept {
  const uint64_t published = publication.published;
  flight_.begin({.value = publication.value,
                 .first = first,
                 .packets = static_cast<uint32_t>(publication.packets.size() - published),
                 .headers = published == 0 ? publication.flight_headers() : FlightHeaders{},
                 .kernel = aql::detail::load_eight_bytes(&publication.packets[published].word[8]),
                 .site = publication.site});
}

[[gnu::always_inline]] inline void BatchQueue::publish_in_place(Publication& publication) noexcept {
  const uint64_t count = publication.packets.size();
  if (publication.holds_slots) [[unlikely]]
    writer_->hold_next(count, {.owner = &timeline_, .value = publication.value});
  publication.finish_in_place();
  // Before publication: afterwards the packet processor may have set the headers to INVALID.
  const aql::HeaderCosts costs = publication.costs(0, count);
  count_packets(publication, 0, count,
                writer_->publish_in_place(publication.packets[0], count, publication.chunking),
                costs);
}

namespace {

// Emits packets of the publication, the first of them being `from`.
struct Packets {
  uint32_t operator()(uint64_t i, void* slot) const noexcept {
    return publication.emit(from + i, slot);
  }
  void operator()(uint64_t i, std::span<aql::Packet64> slots) const noexcept {
    publication.emit(from + i, slots);
  }
  Publication& publication;
  uint64_t from;
};

}  // namespace

// True if admit() has proven room for every packet: with shared producers, only a claim does.
[[gnu::always_inline]] inline bool BatchQueue::has_proven_room(
    const Publication& publication) const noexcept {
  return publication.published == 0 && !publication.holds_slots &&
         publication.packets.size() <= longest_run() && !writer_->is_shared();
}

[[gnu::always_inline]] inline void BatchQueue::publish_copies(Publication& publication) noexcept {
  const uint64_t count = publication.packets.size();
  const uint64_t doorbells =
      writer_->publish_proven(count, Packets{publication, 0}, publication.chunking);
  count_packets(publication, 0, count, doorbells, publication.costs(0, count));
}

// A publication longer than longest_run() whose slots are held. All of its packets have one
// completion signal, which cannot free slots for its own later packets. So the writer publishes it
// in portions of about half the ring and adds a barrier packet to each but the last. The read index
// passes that packet when the portion's kernels are complete. Returns a result without an error
// once only the last portion is left.
aql::PublishResult BatchQueue::publish_in_portions(Publication& publication, Deadline deadline) {
  static constexpr aql::HoldEnd kAtReadIndex{};
  const aql::Packet64 barrier = aql::to_packet(
      aql::BarrierAnd{.flags = {aql::Barrier::on, aql::FenceScope::none, aql::FenceScope::none}});
  const uint64_t half = ring_size() / 2, portion = std::max<uint64_t>(half, 2) - 1;
  aql::PublishResult sum{.ring_size = ring_size(), .requested = publication.packets.size()};
  while (publication.packets.size() - publication.published > portion) {
    const uint64_t from = publication.published;
    const auto emit = [&](uint64_t i, void* slot) noexcept -> uint32_t {
      return i == portion ? aql::fill(slot, barrier) : publication.emit(from + i, slot);
    };
    const aql::PublishResult result =
        writer_->publish(portion + 1, deadline, emit, publication.chunking, &kAtReadIndex);
    if (!result) {
      sum.status = result.status;
      sum.queue_error = result.queue_error;
      sum.occupancy = result.occupancy;
      return sum;
    }
    publication.published += portion;
    sum.published += portion;
    count_packets(publication, from, portion, result.doorbells, publication.costs(from, portion));
    count_published({.packets = 1, .completion_signals = 0, .doorbells = 0, .batches = 0},
                    aql::costs_of(barrier.header()));
  }
  return sum;
}

aql::PublishResult BatchQueue::publish_by_copy(Publication& publication, Deadline deadline) {
  const bool holds = publication.holds_slots;
  const bool in_portions = holds && publication.packets.size() > longest_run();
  if (in_portions) [[unlikely]]
    if (const aql::PublishResult result = publish_in_portions(publication, deadline); !result)
      return result;
  const uint64_t from = publication.published;
  const uint64_t count = publication.packets.size() - from;
  const aql::HoldEnd completion{.owner = &timeline_, .value = publication.value};
  const aql::PublishResult result =
      writer_->publish(count, deadline, Packets{publication, from}, publication.chunking,
                       holds ? &completion : nullptr);
  publication.published += result.published;
  count_packets(publication, from, result.published, result.doorbells,
                publication.costs(from, result.published));
  return result;
}

void BatchQueue::make_room(Publication& publication) {
  if (publication.ended != Ending::none) refuse_ended(publication);
  if (publication.published != 0) refuse_more(publication, "one more packet");
  if (writer_->has_intruder()) refuse_beside_others();
  PacketStore& packets = publication.packets;
  const bool opens = packets.size() == 1 && !publication.kept && ring_batch_ == nullptr &&
                     partly_out_ == nullptr && !writer_->is_shared() && !writer_->has_device_ring();
  if (!opens && !packets.in_ring()) return packets.grow();
  const std::span<aql::Packet64> free = writer_->free_run(packets.size());
  if (free.empty()) return opens ? packets.grow() : evict(publication);
  if (!opens) return packets.extend(free);
  packets.open_ring(writer_->ring(), writer_->ring_size() - 1, writer_->next_index(), free);
  ring_batch_ = &publication;
}

// `first` is not known where other threads claim slots, too. Their packets may be between those
// of a publication longer than longest_run(), whose first packets may be overwritten by then.
void BatchQueue::place_flight(uint64_t first, const aql::PublishResult& result,
                              uint64_t published) noexcept {
  if (published == 0) return flight_.refuse();
  if (first == FlightRecorder::kUnplaced && result.published != 0)
    first = result.last_index + 1 - std::min(result.published, result.last_index + 1);
  flight_.place(first, static_cast<uint32_t>(published));
}

void BatchQueue::evict(Publication& ring_batch) {
  flight_.note_dropped(writer_->next_index() + ring_batch.packets.size());
  ring_batch.packets.leave_ring();
  ring_batch_ = nullptr;
}

std::optional<uint64_t> BatchQueue::submit(Publication& publication, Deadline deadline) {
  if (timeline_.failed()) refuse_failed(publication);
  if (publication.packets.empty() && publication.own_signal.handle == 0)
    return timeline_.last_begun();
  if (partly_out_ != nullptr && partly_out_ != &publication)
    refuse_behind(*partly_out_, publication);
  if (ring_batch_ != nullptr && ring_batch_ != &publication) evict(*ring_batch_);

  const bool resumes = publication.value != 0;  // an earlier call has published its first packets
  if (!resumes) {
    try {
      plan(publication, deadline);
      if (!admit(publication, deadline)) {
        take_back(publication);
        return {};
      }
    } catch (...) {  // nothing has been taken
      take_back(publication);
      throw;
    }
  }

  // Before the first header, and once for the whole batch: it is written by now.
  if (publication.kernargs.blocks != 0) device_writes_.flush();
  const bool in_place = is_in_place(publication);
  if (in_place || has_proven_room(publication)) [[likely]] {
    record_flight(publication, writer_->next_index());
    in_place ? publish_in_place(publication) : publish_copies(publication);
    retain(publication);
    return settle(publication);
  }
  const uint64_t before = publication.published;
  const uint64_t first = !writer_->is_shared() ? writer_->next_index() : FlightRecorder::kUnplaced;
  record_flight(publication, first);
  const aql::PublishResult result = publish_by_copy(publication, deadline);
  place_flight(first, result, publication.published - before);
  if (!resumes && publication.published != 0) {
    retain(publication);
    if (!result) {  // the unpublished packets have the same signals; both vectors have room
      const std::vector<hsa_signal_t>& held = retained(publication.value).timing_signals;
      publication.timing_signals.assign(held.begin(), held.end());
    }
  }
  if (result) return settle(publication);
  return settle_refused(publication, result);
}

// Every step that depends on the batch alone.
[[gnu::always_inline]] inline void BatchQueue::plan(Publication& publication, Deadline deadline) {
  publication.has_closing_packet = false;
  // The caller's signal needs a packet, too, if there is no other.
  publication.has_closing_packet = (!publication.declared.empty() || publication.packets.empty()) &&
                                   append_closing_packet(publication);
  if (const size_t packets = publication.packets.size();
      deadline.is_now() && packets > longest_run() && !publication.packets.in_ring())
    refuse_longer_than_ring(packets);
  if (publication.holds_slots) [[unlikely]]
    make_holds();
  publication.plan();
}

// Every step that can fail for lack of a resource. Returns false at the deadline; then refusal_
// names the resource and the batch holds nothing.
[[gnu::always_inline]] inline bool BatchQueue::admit(Publication& publication, Deadline deadline) {
  reclaim(kReclaimInPassing);
  if (admits_at_once(publication)) [[likely]] {
    begin(publication, signals_.take(SignalKind::interrupt));
    return true;
  }
  return admit_when_free(publication, deadline);
}

bool BatchQueue::admit_when_free(Publication& publication, Deadline deadline) {
  if (writer_->has_intruder()) refuse_beside_others();
  if (publication.own_signal.handle != 0) check_own_signal(publication);
  const SignalNeeds needs = signal_needs(publication);
  if (!await_signals(publication, needs, deadline) ||
      !await_ring(publication.packets.size(), deadline))
    return false;
  if (publication.timing != Timing::none) {
    require_profiling();
    timeline_.expect_times(needs.timing + size_t{1});
  }
  publication.timing_signals.reserve(needs.timing);
  // A partly published batch needs them twice (submit()).
  if (publication.packets.size() > longest_run())
    retained(timeline_.last_begun() + 1).timing_signals.reserve(needs.timing);
  // After this point, only a shared ring can refuse the batch.
  take_timing_signals(publication, needs.timing);
  if (publication.own_signal.handle != 0) aql::rearm(publication.own_signal, 1);
  begin(publication, publication.own_signal.handle != 0 ? publication.own_signal
                                                        : signals_.take(SignalKind::interrupt));
  if (publication.timing != Timing::none) note_timing(publication.value);
  return true;
}

// All packets are published. Returns the value of the publication.
[[gnu::always_inline]] inline uint64_t BatchQueue::settle(Publication& publication) noexcept {
  const uint64_t value = publication.value;
  vacate(publication);
  return value;
}

// The ring refused packets after admit() had found room: it is shared, or the batch is longer than
// longest_run() and the deadline has passed.
std::optional<uint64_t> BatchQueue::settle_refused(Publication& publication,
                                                   const aql::PublishResult& result) {
  if (result.status == aql::PublishStatus::queue_failed) {
    forget(publication);
    timeline_.fail(result.queue_error, "the queue's error source reported an error");
    throw_failed();
  }
  refusal_ = Refusal::ring;
  ring_refusal_ = result;
  ring_refusal_.published = publication.published;
  if (publication.published == 0) {  // another producer took the slots
    note_ring(result.occupancy);
    give_back_admission(publication);
    take_back(publication);
    return {};
  }
  publication.packets.close();
  partly_out_ = &publication;
  throw_last_refusal();
}

void BatchQueue::give_back_admission(Publication& publication) noexcept {
  timeline_.cancel();
  publications_level_.set(timeline_.pending());
  if (publication.own_signal.handle == 0) signals_.give_back(publication.completion);
  for (const hsa_signal_t signal : publication.timing_signals) {
    if (signal.handle != 0) signals_.give_back(signal);
  }
}

// Keeps the resources that the device may use from now on.
[[gnu::always_inline]] inline void BatchQueue::retain(Publication& publication) noexcept {
  Retained& held = retained(publication.value);
  held.slabs = kernargs_.publish(publication.kernargs);
  held.completion = publication.completion;
  if (!publication.timing_signals.empty()) held.timing_signals.swap(publication.timing_signals);
  if (publication.borrows()) [[unlikely]]
    retain_borrowed(publication);
}

void BatchQueue::retain_borrowed(Publication& publication) noexcept {
  retained(publication.value).loans.swap(publication.loans);
  if (publication.lending != 0) lent_.publish(publication.lending, publication.value);
}

// Restores the batch after a refusal.
void BatchQueue::take_back(Publication& publication) noexcept {
  publication.reopen();
  if (publication.has_closing_packet) publication.drop_barrier();
}

// The queue has failed. Its resources are not reused; its timeline keeps the published packets.
void BatchQueue::forget(Publication& publication) noexcept {
  if (publication.published == 0) kernargs_.drop(publication.kernargs);
  vacate(publication);
}

[[gnu::always_inline]] inline void BatchQueue::vacate(Publication& publication) noexcept {
  if (partly_out_ == &publication) partly_out_ = nullptr;
  if (ring_batch_ == &publication) ring_batch_ = nullptr;
  if (publication.lending != 0) [[unlikely]]
    lent_.drop(publication.lending);
  publication.kept ? publication.reopen() : publication.clear();
}

void BatchQueue::close(Publication& publication, Deadline deadline) noexcept {
  const aql::Packet64 closing = aql::to_packet(
      aql::BarrierAnd{.flags = {aql::Barrier::on, aql::FenceScope::agent, aql::FenceScope::system},
                      .completion_signal = publication.completion});
  // Each returns when a slot is free, the queue has failed or the deadline has passed.
  const auto publish = [&](Deadline until) {
    return writer_->publish(std::span(&closing, 1), until);
  };
  const Deadline silent = Deadline::after(kSilentWait);
  const bool is_silent = deadline.when() <= silent.when();
  aql::PublishResult result = publish(is_silent ? deadline : silent);
  if (result.status == aql::PublishStatus::resource_full && !is_silent) {
    say_waiting(timeline_, deadline,
                [this] { return "a partly published batch of " + flight_name(); });
    result = publish(deadline);
  }
  if (result) {
    count_published(
        {.packets = 1, .completion_signals = 1, .doorbells = result.doorbells, .batches = 0},
        aql::costs_of(closing.header()));
  } else if (result.status == aql::PublishStatus::resource_full) {
    // Nothing would tell when the published packets are complete.
    give_up(
        "a partly published batch was dropped, and no slot of the ring became free for the "
        "packet that completes it",
        "is given up");
  }
}

void BatchQueue::drop(Publication& publication, Deadline deadline) noexcept {
  if (publication.ended != Ending::none) return;
  if (usable()) {
    if (publication.published != 0) close(publication, deadline);
    if (ring_batch_ == &publication) {
      flight_.note_dropped(writer_->next_index() + publication.packets.size());
      publication.packets.discard();
    }
    kernargs_.drop(publication.kernargs);
  }
  vacate(publication);
}

BatchQueue::BatchQueue(Ended)
    : QueueResources(
          Failure{.status = HSA_STATUS_ERROR_INVALID_QUEUE, .text = "the queue has ended"}) {}

BatchQueue& BatchQueue::ended() {
  // batches in static storage may outlive every other object
  static BatchQueue* const state = new BatchQueue(Ended{});
  return *state;
}

BatchQueue::~BatchQueue() {
  session_end_.stop();
  const Deadline deadline = Deadline::after(options_.drain_timeout);
  while (attachments_ != nullptr) {
    QueueAttachment& attachment = *attachments_;
    Publication& publication = *attachment.publication;
    leave(attachment);
    drop(publication, deadline);
    if (publication.kept && publication.ended == Ending::none) {
      attachment.state = nullptr;  // its replay is dropped, and another queue may replay it
      continue;
    }
    if (publication.ended == Ending::none) publication.end(Ending::queue);
    attachment.state = &ended();
  }
}

void BatchQueue::end_attachments() noexcept {
  for (const QueueAttachment* attachment = attachments_; attachment != nullptr;
       attachment = attachment->next_)
    attachment->publication->end(Ending::runtime);
}

void BatchQueue::join(QueueAttachment& attachment) noexcept {
  attachment.state = this;
  attachment.next_ = attachments_;
  attachment.link_ = &attachments_;
  if (attachments_ != nullptr) attachments_->link_ = &attachment.next_;
  attachments_ = &attachment;
  if (!usable()) attachment.publication->end(Ending::runtime);
}

void BatchQueue::leave(QueueAttachment& attachment) noexcept {
  if (attachment.link_ == nullptr) return;
  *attachment.link_ = attachment.next_;
  if (attachment.next_ != nullptr) attachment.next_->link_ = attachment.link_;
  attachment.link_ = nullptr;
}

}  // namespace uptempo::detail
