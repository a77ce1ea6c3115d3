#include "engine/dispatch/queue_state.hpp"

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <bit>
#include <thread>
#include <utility>

#include "aql/amd_abi.hpp"
#include "engine/dispatch/common_queue.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo::detail {
namespace {

// The oldest publications that a submission reclaims in passing. More than one, so that reclaiming outruns submitting; a
// constant, so that a submission costs the same whatever has piled up.
constexpr uint32_t reclaim_in_passing = 2;
constexpr uint32_t all = UINT32_MAX;

void on_queue_error(hsa_status_t status, hsa_queue_t*, void* timeline) {
  static_cast<Timeline*>(timeline)->fail(status, stopped_with(status));
}

}  // namespace

QueueOptions checked(QueueOptions options) {
  const auto refuse = [](std::string asked, std::string found) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Queue",
                 .asked = std::move(asked),
                 .found = std::move(found),
                 .remedy = "correct the QueueOptions"});
  };
  if (!std::has_single_bit(options.packets))
    refuse(fmt::format("a ring of {} packets", options.packets), "no power of two");
  if (options.publications == 0) refuse("no publication at a time", "at least one is needed");
  if (options.kernarg_slab_bytes == 0 || options.kernarg_slab_bytes % KernargPool::block_alignment != 0) {
    refuse(fmt::format("kernarg slabs of {} bytes", options.kernarg_slab_bytes), "no multiple of 64");
  }
  if (options.kernarg_bytes < options.kernarg_slab_bytes) {
    refuse(fmt::format("{} bytes of kernargs", options.kernarg_bytes),
           fmt::format("less than one slab of {}", options.kernarg_slab_bytes));
  }
  for (const WaterMarks& marks : {options.marks.ring, options.marks.publications, options.marks.signals,
                                  options.marks.timing_signals, options.marks.kernarg_slabs}) {
    if (marks.high_per_cent == 0 || marks.high_per_cent > 100 || marks.low_per_cent > marks.high_per_cent)
      refuse(
          fmt::format("a high mark of {} % and a low mark of {} %", marks.high_per_cent, marks.low_per_cent),
          "high marks are 1 to 100, and low marks not above them");
  }
  return options;
}

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

struct Published {
  uint64_t packets, completion_signals, doorbells, batches;
};

void count_published(const Published& published, const aql::HeaderCosts& costs) noexcept {
  CounterBlock& counters = counters_of_this_thread();
  count(counters.packets, published.packets);
  count(counters.barrier_bits, costs.barriers);
  count(counters.system_acquires, costs.system_acquires);
  count(counters.system_releases, costs.system_releases);
  count(counters.completion_signals, published.completion_signals);
  count(counters.doorbells, published.doorbells);
  count(counters.batches, published.batches);
}

// Packets [from, from + published) are out.
void count_packets(const Publication& publication, uint64_t from, uint64_t published, uint64_t doorbells,
                   const aql::HeaderCosts& costs) noexcept {
  if (published == 0) return;
  const uint64_t end = from + published;
  const bool whole = end == publication.packets.size();
  uint64_t signals = whole;
  for (uint64_t i = from; i < std::min<uint64_t>(end, publication.timing_signals.size()); ++i)
    signals += publication.timing_signals[i].handle != 0;
  count_published(
      {.packets = published, .completion_signals = signals, .doorbells = doorbells, .batches = whole}, costs);
}

}  // namespace

QueueState::QueueState(const Agent& agent, const QueueOptions& options)
    : QueueState(agent, options, Parts{}) {}

QueueState::QueueState(const Agent& agent, const QueueOptions& options, Parts parts)
    : agent_(agent),
      options_(checked(options)),
      kernarg_memory_(agent, options.kernarg_bytes),
      signals_(options.publications, options.timing_signals, options.marks),
      timeline_(Timeline::acquire(options.publications)),
      kernargs_(kernarg_memory_.span(), options.kernarg_slab_bytes, options.marks.kernarg_slabs),
      session_(Session::current()) {
  try {
    if (parts.queue == nullptr) {
      queue_ = make_hsa_queue(agent, options_.packets, on_queue_error, &timeline_);
      parts.queue = hsa_queue(queue_);
    }
    connect(parts);
    session_end_ = Owned(session_, Session::Kind::listener, reinterpret_cast<uint64_t>(&timeline_),
                         [](uint64_t timeline) noexcept {
                           auto* const t = reinterpret_cast<Timeline*>(timeline);
                           t->fail(HSA_STATUS_ERROR_NOT_INITIALIZED, "the Runtime has gone");
                           t->close();
                         });
    fault_listener_ =
        session_->listen([timeline = &timeline_, gpu = agent.handle()](const Session::MemoryFault& fault) {
          return fault.agent.handle == gpu.handle && timeline->fail(fault.status, fault.text);
        });
  } catch (...) {
    session_end_.forget();
    if (common_) common_->leave(timeline_);
    queue_.reset();  // its error callback must not meet the timeline's next life
    timeline_.release();
    throw;
  }
}

QueueState::QueueState(Parts parts, std::span<const hsa_signal_t> signals, const QueueOptions& options)
    : options_(checked(options)),
      signals_(signals, options.marks),
      timeline_(Timeline::acquire(options.publications)),
      kernargs_(parts.kernargs, options.kernarg_slab_bytes, options.marks.kernarg_slabs) {
  try {
    connect(parts);
  } catch (...) {
    timeline_.release();
    throw;
  }
}

void QueueState::connect(const Parts& parts) {
  retained_.resize(timeline_.places());
  timeline_.watch(parts.foreign_error);
  common_ = parts.common;
  writer_ = common_ ? aql::AqlQueueWriter::share(common_->ring(), &timeline_.error())
                    : aql::AqlQueueWriter::borrow(parts.queue, parts.producers, &timeline_.error());
  // Both: of memory faults and of the end of the Runtime the owner of a borrowed queue tells nothing; they fail the timeline.
  writer_->also_watch(parts.foreign_error);
  ring_level_.start(writer_->ring_size(), options_.marks.ring);
  publications_level_.start(options_.publications, options_.marks.publications);
  const aql::QueueApertures apertures = aql::apertures(parts.queue);
  facts_ = {.queue_address = reinterpret_cast<uint64_t>(parts.queue),
            .private_aperture_high = apertures.private_segment_high,
            .group_aperture_high = apertures.group_segment_high};
  if (common_) common_->join(timeline_);
}

QueueState::~QueueState() {
  const bool usable = !session_ || session_->alive();
  if (usable) drain();
  timeline_.close();
  session_end_.forget();
  if (session_) session_->stop_listening(fault_listener_);
  if (common_) common_->leave(timeline_);
  if (usable && queue_.handle() != 0) {
    queue_.reset();  // before the signals that its packets may still name
  } else if (usable && !timeline_.is_done(timeline_.last_begun())) {
    // Nobody here can stop a borrowed queue: its packets may read and write these yet.
    kernarg_memory_.leave_to_session();
    signals_.leave_to_session();
  }
  timeline_.release();
}

void QueueState::drain() noexcept {
  const uint64_t last = timeline_.last_begun();
  if (timeline_.is_done(last)) return;
  if (timeline_.wait(last, {}, Deadline::after(options_.drain)) == WaitResult::done) return;
  if (queue_.handle() != 0) hsa_queue_inactivate(handle());
  timeline_.fail(HSA_STATUS_ERROR_INVALID_QUEUE, "its Queue was destroyed before the work was finished");
}

void QueueState::reclaim(uint32_t limit) noexcept {
  const uint32_t reclaimed = timeline_.reclaim(limit, [this](uint64_t value, hsa_signal_t signal) noexcept {
    Retained& held = retained_[timeline_.place(value)];
    kernargs_.retire(held.slabs);
    held.slabs = {};
    if (held.pooled_signal) signals_.give_back(signal);
    for (const hsa_signal_t timing : held.timing_signals) {
      if (timing.handle != 0) signals_.give_back(timing);
    }
    held.timing_signals.clear();
  });
  if (reclaimed != 0) publications_level_.set(timeline_.pending());
}

Pressure QueueState::pressure() noexcept {
  const uint64_t read = writer_->read_index();  // first: it does not pass the write index
  const uint64_t written = aql::view(handle()).load_write_index();
  note_ring(written - read);
  return {.ring = ring_level_.level(),
          .publications = publications_level_.level(),
          .signals = signals_.level(SignalKind::interrupt),
          .timing_signals = signals_.interrupts() != 0 ? signals_.level(SignalKind::event_less) : Level{},
          .kernarg_slabs = kernargs_.level()};
}

bool QueueState::wait_for_oldest(Deadline deadline) {
  check_failed();
  if (timeline_.pending() == 0 || deadline.is_now()) return false;
  switch (timeline_.wait(timeline_.oldest_pending(), {}, deadline)) {
    case WaitResult::done:
      break;
    case WaitResult::timed_out:
      return false;
    case WaitResult::failed:
      check_failed();
      return false;
  }
  const uint32_t before = timeline_.pending();
  reclaim(all);
  // A waiter of another thread that has just been woken may still hold the signal for a moment.
  if (timeline_.pending() == before) std::this_thread::yield();
  return true;
}

std::byte* QueueState::try_take_kernargs(KernargPool::Cursor& cursor, uint32_t size_bytes) noexcept {
  if (std::byte* const block = kernargs_.take(cursor, size_bytes)) return block;
  reclaim(all);
  return kernargs_.take(cursor, size_bytes);
}

std::byte* QueueState::take_kernargs(KernargPool::Cursor& cursor, uint32_t size_bytes, Deadline deadline) {
  if (size_bytes > kernargs_.slab_bytes()) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "BatchSubmitter::dispatch",
                 .asked = fmt::format("a kernarg block of {} bytes", size_bytes),
                 .found = fmt::format("slabs of {}", kernargs_.slab_bytes()),
                 .remedy = "make the queue with a larger QueueOptions::kernarg_slab_bytes"});
  }
  for (;;) {
    if (std::byte* const block = try_take_kernargs(cursor, size_bytes)) return block;
    if (!wait_for_oldest(deadline)) {
      throw_exhausted("kernarg slab",
                      fmt::format("{} slabs of {} bytes", kernargs_.slabs(), kernargs_.slab_bytes()),
                      fmt::format("all are in use by {} unfinished publications and by unsubmitted batches",
                                  timeline_.pending()));
    }
  }
}

// Most batches: nothing is wanted that is not at hand.
bool QueueState::admit_at_once(Publication& publication) noexcept {
  if (publication.timing != Timing::none || publication.own_signal.handle != 0 || !timeline_.has_room() ||
      !signals_.has(SignalKind::interrupt) || !writer_->admits_now(publication.packets.size()))
    return false;
  begin(publication, signals_.take(SignalKind::interrupt));
  return true;
}

void QueueState::begin(Publication& publication, hsa_signal_t completion) noexcept {
  publication.completion = completion;
  publication.value = timeline_.begin(completion);
  publications_level_.set(timeline_.pending());
}

bool QueueState::admit(Publication& publication, Deadline deadline) {
  const uint32_t timing = timing_signals_for(publication);
  // Without interrupt signals the completion signal is an event-less one too.
  const uint32_t event_less =
      timing + (signals_.interrupts() == 0 && publication.own_signal.handle == 0 ? 1 : 0);
  if (timing != 0 && event_less > signals_.event_less()) {
    throw_exhausted(fmt::format("set of {} event-less signals for timing and completion", event_less),
                    fmt::format("{} event-less signals", signals_.event_less()),
                    "a batch cannot have more, whatever is free");
  }
  for (;;) {
    refusal_ = !timeline_.has_room() ? Refusal::publications
               : publication.own_signal.handle == 0 && !signals_.has(SignalKind::interrupt) ? Refusal::signals
               : timing != 0 && signals_.free(SignalKind::event_less) < event_less ? Refusal::timing_signals
                                                                                   : Refusal::none;
    if (refusal_ == Refusal::none) break;
    const uint32_t before = timeline_.pending();
    reclaim(all);
    if (timeline_.pending() == before && !wait_for_oldest(deadline)) return false;
  }
  if (const uint64_t packets = publication.packets.size(); !writer_->admits_now(packets)) {
    ring_refusal_ = writer_->admit(packets, deadline);
    if (!ring_refusal_) {
      refusal_ = Refusal::ring;
      note_ring(ring_refusal_.occupancy);
      if (ring_refusal_.status == aql::PublishStatus::queue_failed) check_failed();
      return false;
    }
  }

  if (publication.timing != Timing::none) enable_profiling();
  publication.timing_signals.reserve(timing);
  // From here on nothing can fail but a ring that has other producers.
  if (timing != 0) {
    for (uint32_t i = 0; i < timing; ++i)
      publication.timing_signals.push_back(signals_.take(SignalKind::event_less));
    // A finished packet's completion signal is the caller's.
    for (const Publication::Said& what : publication.said) {
      if (!what.intent.as_it_is || what.packet >= timing) continue;
      signals_.give_back(std::exchange(publication.timing_signals[what.packet], {0}));
    }
  }
  if (publication.own_signal.handle != 0) aql::rearm(publication.own_signal, 1);
  begin(publication,
        publication.own_signal.handle != 0 ? publication.own_signal : signals_.take(SignalKind::interrupt));
  if (publication.timing != Timing::none) note_timing(publication);
  return true;
}

void QueueState::enable_profiling() {
  if (profiling_ || !agent_) return;
  if (common_) {
    common_->enable_profiling();
  } else {
    check(hsa_amd_profiling_set_profiler_enabled(handle(), 1), "hsa_amd_profiling_set_profiler_enabled",
          "timestamps of packets");
  }
  profiling_ = true;
}

void QueueState::note_timing(const Publication& publication) {
  timeline_.time([this, value = publication.value](std::vector<PacketTime>& times) {
    const Retained& held = retained_[timeline_.place(value)];
    const auto read = [&](hsa_signal_t signal) {
      if (signal.handle == 0) return;
      hsa_amd_profiling_dispatch_time_t time{};
      if (agent_) {
        hsa_amd_profiling_get_dispatch_time(agent_->handle(), signal, &time);
      } else {
        const aql::SignalTimes ticks = aql::signal_times(signal);
        time = {.start = ticks.start_ticks, .end = ticks.end_ticks};
      }
      times.push_back({time.start, time.end});
    };
    for (const hsa_signal_t signal : held.timing_signals) read(signal);
    read(held.completion);
  });
}

bool QueueState::append_closing_packet(Publication& publication) {
  if (publication.said.back().packet + 1 != publication.packets.size() ||
      !publication.said.back().intent.as_it_is)
    return false;
  if (publication.packets.full()) make_room(publication);
  publication.put_barrier();
  return true;
}

// All packets lie where they will be executed, or are to be brought there by a copy of one: publishing them is a few stores.
bool QueueState::is_in_place(const Publication& publication) const noexcept {
  return publication.packets.in_ring() || (publication.packets.size() == 1 && !publication.kept &&
                                           writer_->producers() == aql::Producers::exclusive);
}

void QueueState::publish_in_place(Publication& publication) noexcept {
  const uint64_t count = publication.packets.size();
  publication.finish_in_place();
  // Before they are published: what is taken out of the ring reads INVALID.
  const aql::HeaderCosts costs = publication.costs(0, count);
  count_packets(publication, 0, count,
                writer_->publish_in_place(publication.packets[0], count, publication.chunking), costs);
}

aql::PublishResult QueueState::write(Publication& publication, uint64_t from, Deadline deadline) {
  struct Packets {
    uint32_t operator()(uint64_t i, void* slot) const noexcept { return publication.emit(from + i, slot); }
    void operator()(uint64_t i, std::span<aql::Packet64> slots) const noexcept {
      publication.emit(from + i, slots);
    }
    Publication& publication;
    uint64_t from;
  };
  const uint64_t count = publication.packets.size() - from;
  const aql::PublishResult result =
      writer_->publish(count, deadline, Packets{publication, from}, publication.chunking);
  count_packets(publication, from, result.published, result.doorbells,
                publication.costs(from, result.published));
  return result;
}

void QueueState::make_room(Publication& publication) {
  if (publication.published != 0) refuse_more(publication, "one more packet");
  PacketStore& packets = publication.packets;
  const bool opens = packets.size() == 1 && !publication.kept && tenant_ == nullptr &&
                     partly_out_ == nullptr && writer_->producers() == aql::Producers::exclusive;
  if (!opens && !packets.in_ring()) return packets.grow();
  const std::span<aql::Packet64> free = writer_->free_run(packets.size());
  if (free.empty()) return opens ? packets.grow() : evict(publication);
  if (!opens) return packets.extend(free);
  packets.open_ring(writer_->ring(), writer_->ring_size() - 1, writer_->next_index(), free);
  tenant_ = &publication;
}

void QueueState::evict(Publication& tenant) {
  tenant.packets.leave_ring();
  tenant_ = nullptr;
}

std::optional<uint64_t> QueueState::submit(Publication& publication, Deadline deadline) {
  check_failed();
  if (publication.packets.empty()) return timeline_.last_begun();
  if (partly_out_ != nullptr && partly_out_ != &publication) {
    refuse_behind(*partly_out_, publication);
  }

  if (tenant_ != nullptr && tenant_ != &publication) evict(*tenant_);

  const bool fresh = publication.value == 0;
  bool closed = false;
  if (fresh) {
    if constexpr (handle_checks)
      if (publication.own_signal.handle != 0) check_own_signal(publication);
    try {
      closed = !publication.said.empty() && append_closing_packet(publication);
      if (const size_t packets = publication.packets.size();
          deadline.is_now() && packets > writer_->ring_size())
        refuse_longer_than_ring(packets);
      publication.plan();
      reclaim(reclaim_in_passing);
      if (!admit_at_once(publication) && !admit(publication, deadline)) {
        take_back(publication, closed);
        return {};
      }
    } catch (...) {  // nothing has been taken
      take_back(publication, closed);
      throw;
    }
  }

  const uint64_t value = publication.value;
  if (is_in_place(publication)) {
    publish_in_place(publication);
    retain(publication);
    vacate(publication);
    return value;
  }

  const aql::PublishResult result = write(publication, publication.published, deadline);
  publication.published += result.published;
  if (fresh && publication.published != 0) {
    retain(publication);
    if (!result)  // the rest of the packets names them too
      publication.timing_signals = retained_[timeline_.place(value)].timing_signals;
  }
  if (result) {
    vacate(publication);
    return value;
  }

  if (result.status == aql::PublishStatus::queue_failed) {
    forget(publication);
    timeline_.fail(result.queue_error, "the queue's error source showed an error");
    throw_failed();
  }
  refusal_ = Refusal::ring;
  ring_refusal_ = result;
  ring_refusal_.published = publication.published;
  if (publication.published == 0) {  // another producer was faster: as if nothing had been asked
    note_ring(result.occupancy);
    timeline_.cancel();
    publications_level_.set(timeline_.pending());
    if (publication.own_signal.handle == 0) signals_.give_back(publication.completion);
    for (const hsa_signal_t signal : publication.timing_signals) {
      if (signal.handle != 0) signals_.give_back(signal);
    }
    take_back(publication, closed);
    return {};
  }
  publication.packets.close();
  partly_out_ = &publication;
  throw_last_refusal();
}

// What the device may use from now on.
void QueueState::retain(Publication& publication) noexcept {
  Retained& held = retained_[timeline_.place(publication.value)];
  held.slabs = kernargs_.publish(publication.kernargs);
  held.pooled_signal = publication.own_signal.handle == 0;
  held.completion = publication.completion;
  if (!publication.timing_signals.empty()) held.timing_signals.swap(publication.timing_signals);
  lent_.published(&publication, publication.value);
}

// Refused: the batch is as it was.
void QueueState::take_back(Publication& publication, bool closed) noexcept {
  publication.reopen();
  if (closed) publication.drop_barrier();
}

// The queue is dead: nothing of it will be used again, and its timeline keeps what is out.
void QueueState::forget(Publication& publication) noexcept {
  if (publication.published == 0) kernargs_.drop(publication.kernargs);
  vacate(publication);
}

void QueueState::vacate(Publication& publication) noexcept {
  if (partly_out_ == &publication) partly_out_ = nullptr;
  if (tenant_ == &publication) tenant_ = nullptr;
  lent_.dropped(&publication);
  publication.kept ? publication.reopen() : publication.clear();
}

void QueueState::close(Publication& publication) noexcept {
  const aql::Packet64 closing = aql::to_packet(
      aql::BarrierAnd{.flags = {aql::Barrier::on, aql::FenceScope::agent, aql::FenceScope::system},
                      .completion_signal = publication.completion});
  // Ends when there is a slot or the queue has failed.
  if (const aql::PublishResult result = writer_->publish(std::span(&closing, 1), Deadline::never()))
    count_published({.packets = 1, .completion_signals = 1, .doorbells = result.doorbells, .batches = 0},
                    aql::costs_of(closing.header()));
}

void QueueState::drop(Publication& publication) noexcept {
  if (!session_ || session_->alive()) {
    if (publication.published != 0) close(publication);
    if (tenant_ == &publication) publication.packets.discard();
    kernargs_.drop(publication.kernargs);
  }
  vacate(publication);
}

}  // namespace uptempo::detail
