#include <uptempo/dispatch/queue_resources.hpp>

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <bit>
#include <utility>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/completion/waiter.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/say.hpp>

namespace uptempo::detail {
namespace {

// The line for read-backs follows the arguments.
uint64_t memory_for(const KernargPlace& place, uint64_t kernarg_bytes) noexcept {
  return kernarg_bytes + (place.is_on_device() ? DeviceWrites::kLineBytes : 0);
}

DeviceWrites writes_to(const KernargPlace& place, const KernargMemory& memory) noexcept {
  if (!place.is_on_device()) return {};
  return {place.hdp_flush, memory.span().last(DeviceWrites::kLineBytes).data(),
          place.coherent_link};
}

void on_queue_error(hsa_status_t status, hsa_queue_t* queue, void* timeline) {
  static_cast<Timeline*>(timeline)->fail(status, stopped_with(status, queue));
}

}  // namespace

QueueOptions checked(QueueOptions options) {
  const auto refuse = [](std::string asked, std::string found) {
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Queue",
                 .asked = std::move(asked),
                 .found = std::move(found),
                 .remedy = "correct the QueueOptions"});
  };
  if (!std::has_single_bit(options.packets))
    refuse(fmt::format("a ring of {} packets", options.packets), "not a power of two");
  if (options.publications == 0) refuse("no publication at a time", "at least one is needed");
  if (options.kernarg_slab_bytes == 0 ||
      options.kernarg_slab_bytes % KernargPool::kBlockAlignment != 0) {
    refuse(fmt::format("kernarg slabs of {} bytes", options.kernarg_slab_bytes),
           "not a multiple of 64");
  }
  if (options.kernarg_bytes < options.kernarg_slab_bytes) {
    refuse(fmt::format("{} bytes of kernargs", options.kernarg_bytes),
           fmt::format("less than one slab of {}", options.kernarg_slab_bytes));
  }
  return options;
}

QueueResources::QueueResources(const Agent& agent, const QueueOptions& options, Parts parts)
    : agent_(agent),
      options_(checked(options)),
      place_(choose_kernarg_place(agent, options.kernargs)),
      kernarg_memory_(&agent, memory_for(place_, options.kernarg_bytes), place_.is_on_device()),
      device_writes_(writes_to(place_, kernarg_memory_)),
      signals_(options.publications, options.timing_signals),
      kernargs_(kernarg_memory_.span().first(options.kernarg_bytes), options.kernarg_slab_bytes),
      timeline_(Timeline::acquire(options.publications)),
      watch_(Session::current()) {
  try {
    if (parts.queue == nullptr) {
      queue_ = HardwareQueue(agent, options_.packets, options_.access, on_queue_error, &timeline_);
      parts.queue = queue_.handle();
    }
    connect(parts);
    watch_.start(timeline_, agent, &open_packets_);
  } catch (...) {
    watch_.stop();
    if (common_) common_->leave(timeline_);
    // before the timeline is reused: its error callback must not reach the next use
    queue_.reset();
    timeline_.release();
    throw;
  }
}

QueueResources::QueueResources(const Parts& parts, std::span<const hsa_signal_t> signals,
                               const QueueOptions& options)
    : options_(checked(options)),
      device_writes_(parts.writes),
      signals_(signals),
      kernargs_(parts.kernargs, options.kernarg_slab_bytes),
      timeline_(Timeline::acquire(options.publications)) {
  try {
    connect(parts);
  } catch (...) {
    timeline_.release();
    throw;
  }
}

void QueueResources::connect(const Parts& parts) {
  retained_.resize(timeline_.places());
  timeline_.allow_loans(signals_.size(SignalKind::interrupt));
  timeline_.watch(parts.foreign_error);
  common_ = parts.common;
  access_ = choose_access(parts);
  writer_ = common_ ? aql::AqlQueueWriter::share(common_->ring(), &timeline_.error())
                    : aql::AqlQueueWriter::borrow(parts.queue, &timeline_.error(), access_.access);
  // Both sources: the owner of a borrowed queue does not report memory faults or the end of the
  // Runtime; these fail the timeline.
  writer_->also_watch(parts.foreign_error);
  ring_size_ = writer_->ring_size();
  // Launches may be unfinished in the ring, and in an epoch whose packets have left it, of at most
  // a quarter of the ring.
  flight_.make_records(parts.submits_packets ? ring_size_ + ring_size_ / 4 : options_.publications);
  ring_level_.start(ring_size_);
  publications_level_.start(options_.publications);
  const aql::QueueApertures apertures = aql::apertures(parts.queue);
  facts_ = {.queue_address = reinterpret_cast<uint64_t>(parts.queue),
            .private_aperture_high = apertures.private_segment_high,
            .group_aperture_high = apertures.group_segment_high,
            .agent = agent_ ? agent_->handle() : hsa_agent_t{0}};
  timeline_.describe_with([this] {
    // Not for an idle queue: the owner of a borrowed one may have destroyed it.
    const bool is_idle = open_packets_.load(std::memory_order_acquire) == 0 &&
                         timeline_.is_known(timeline_.last_begun());
    return is_idle ? std::string() : flight_log(FlightScope::unfinished).first_unfinished();
  });
  if (common_) common_->join(timeline_);
}

RingAccessChoice QueueResources::choose_access(const Parts& parts) const {
  if (common_) return {common_->ring().access(), common_->access_reason()};
  if (queue_.handle() != nullptr) return queue_.access();
  const RingAccessMode wish = options_.access;
  // Without an agent there is no ROCr, and no tool.
  if (!agent_ && wish == RingAccessMode::automatic)
    return {aql::RingAccess::direct, "the queue is not ROCr's"};
  return choose_ring_access(parts.queue, agent_ && agent_->properties().pm4_emulation, wish);
}

QueueResources::~QueueResources() {
  const Deadline deadline = end_deadline();
  if (usable()) drain(deadline);
  timeline_.close();
  watch_.stop();
  if (common_) common_->leave(timeline_);
  const bool is_done = !usable() || timeline_.is_done(timeline_.last_begun());
  if (queue_.handle() != nullptr) {
    if (usable() &&
        (!is_done || timeline_.failed() || open_packets_ != 0 || writer_->has_intruder()))
      queue_.stop();
    queue_.reset();  // before the signals that its packets may still use
    timeline_.end_reads();
  } else if (!is_done || open_packets_ != 0) {
    // Borrowed and shared queues cannot be stopped here: their packets may still read and write
    // these.
    kernarg_memory_.leave_to_session();
    signals_.leave_to_session();
    for (Retained& held : retained_)
      for (SignalLoan& loan : held.loans) loan.leave_to_session();
    // The other producers need the slots that these packets hold once they are complete. The
    // session destroys queues before signals, so no producer asks when the signals are gone.
    if (common_) {
      timeline_.keep_signals();
      common_->lose_work();
    }
  }
  if (usable()) {
    timeline_.await_loans(deadline);
    timeline_.for_each_loan([this](hsa_signal_t signal) { signals_.leave_to_session(signal); });
  }
  timeline_.release();
}

void QueueResources::drain(Deadline deadline) noexcept {
  const uint64_t last = timeline_.last_begun();
  if (timeline_.is_done(last)) return;
  const WaitResult result =
      wait_for_end(timeline_, last, deadline, [this] { return flight_name(); });
  if (result == WaitResult::done) return;
  give_up("its Queue was destroyed before the work was complete",
          "is destroyed with unfinished work, which is lost");
}

void QueueResources::give_up(const char* why, const char* what) noexcept {
  // With an error of its own, it has said what is lost.
  const bool had_failed = timeline_.failed();
  queue_.stop();
  // False if it finished at the last moment.
  if (!timeline_.fail(HSA_STATUS_ERROR_INVALID_QUEUE, why) || had_failed) return;
  count(&CounterBlock::queues_given_up);
  say([&] { return fmt::format("{} {}: {}", flight_name(), what, timeline_.failure().text); });
}

void QueueResources::reclaim_finished(uint32_t limit) noexcept {
  const uint32_t reclaimed =
      timeline_.reclaim(limit, [this](uint64_t value, hsa_signal_t signal) noexcept {
        Retained& held = retained(value);
        kernargs_.retire(held.slabs);
        held.slabs = {};
        if (signal.handle != 0 && timeline_.owner_of(value) == SignalOwner::queue)
          signals_.give_back(signal);
        for (const hsa_signal_t timing : held.timing_signals) {
          if (timing.handle != 0) signals_.give_back(timing);
        }
        held.timing_signals.clear();
        held.loans.clear();
      });
  if (reclaimed != 0) publications_level_.set(timeline_.pending());
}

FlightLog QueueResources::flight_log(FlightScope scope) const {
  return read_flight_log({.records = flight_,
                          .writer = *writer_,
                          .timeline = timeline_,
                          .agent = agent_ ? agent_->handle() : hsa_agent_t{},
                          .agent_name = agent_ ? agent_->name() : std::string()},
                         scope);
}

std::string QueueResources::first_unfinished() const {
  const std::string text = timeline_.describe_unfinished();
  return text.empty() ? text : "; first unfinished: " + text;
}

std::string QueueResources::flight_name() const {
  const uint64_t number = handle()->id;
  return agent_ ? fmt::format("queue {} of {}", number, agent_->name())
                : fmt::format("queue {}", number);
}

Pressure QueueResources::pressure() noexcept {
  // First, so that it is not greater than the write index, unless the processor takes packets
  // before the index covers them.
  const uint64_t read = writer_->free_below();
  const uint64_t written = writer_->visible_write_index();
  note_ring(written > read ? written - read : 0);
  return {.ring = ring_level_.level(),
          .publications = publications_level_.level(),
          .signals = signals_.level(SignalKind::interrupt),
          .timing_signals =
              signals_.interrupts() != 0 ? signals_.level(SignalKind::event_less) : Level{},
          .kernarg_slabs = kernargs_.level(),
          .access = access_.access};
}

bool QueueResources::wait_for_oldest(Waiter& waiter) {
  check_failed();
  if (timeline_.pending() == 0) return false;
  const bool in_time = waiter.wait(completion_of(timeline_, timeline_.oldest_pending()));
  check_failed();
  if (in_time) reclaim_signals(kAll);
  return in_time;
}

std::byte* QueueResources::try_take_kernargs(KernargPool::Cursor& cursor,
                                             uint32_t size_bytes) noexcept {
  if (std::byte* const block = kernargs_.take(cursor, size_bytes)) return block;
  reclaim(kAll);
  return kernargs_.take(cursor, size_bytes);
}

void QueueResources::require_block_size(uint32_t size_bytes, const char* call) const {
  if (size_bytes <= kernargs_.slab_bytes()) return;
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = call,
               .asked = fmt::format("a kernarg block of {} bytes", size_bytes),
               .found = fmt::format("slabs of {}", kernargs_.slab_bytes()),
               .remedy = "make the queue with a larger QueueOptions::kernarg_slab_bytes"});
}

std::byte* QueueResources::take_kernargs(KernargPool::Cursor& cursor, uint32_t size_bytes,
                                         Deadline deadline) {
  require_block_size(size_bytes, "BatchSubmitter::dispatch");
  for (Waiter waiter(deadline);;) {
    if (std::byte* const block = try_take_kernargs(cursor, size_bytes)) return block;
    if (!wait_for_oldest(waiter)) {
      throw_exhausted(
          ErrorCode::kernargs, "kernarg slab",
          fmt::format("{} slabs of {} bytes", kernargs_.slabs(), kernargs_.slab_bytes()),
          fmt::format("all are in use by {} unfinished publications and by unsubmitted batches",
                      timeline_.pending()));
    }
  }
}

void QueueResources::make_holds() {
  if (writer_->holds() != nullptr) return;
  if (ring_size_ < 2)
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_QUEUE,
                 .call = "Queue",
                 .asked = "a dispatch of a kernel that may read its packet",
                 .found = fmt::format("a ring of {} packets", ring_size_),
                 .remedy = "make the queue with at least two packets"});
  if (common_) return common_->make_holds();
  holds_ = make_slot_holds(handle());
  writer_->use_holds(*holds_);
}

void QueueResources::require_profiling() {
  if (profiling_ || !agent_ || common_ || queue_.handle() != nullptr) return;
  enable_profiling(handle());
  profiling_ = true;
}

PacketTime QueueResources::time_of(hsa_signal_t signal) const {
  const aql::SignalTimes ticks = aql::signal_times(signal);
  if (ticks.end_ticks == 0) return {};
  if (!agent_) return {ticks.start_ticks, ticks.end_ticks};
  hsa_amd_profiling_dispatch_time_t time{};
  hsa_amd_profiling_get_dispatch_time(agent_->handle(), signal, &time);
  return {time.start, time.end};
}

void QueueResources::note_timing(uint64_t value) {
  timeline_.time([this, value](std::vector<PacketTime>& times) {
    const Retained& held = retained(value);
    for (const hsa_signal_t signal : held.timing_signals)
      if (signal.handle != 0) times.push_back(time_of(signal));
    times.push_back(time_of(held.completion));
  });
}

}  // namespace uptempo::detail
