#include <uptempo/stream/queue/stream_queue.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <uptempo/completion/lent_signal.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {
namespace {

using aql::Barrier;
using aql::FenceScope;

// An open epoch may hold 1/kKernargShare of the kernarg memory before a launch closes it.
constexpr uint64_t kKernargShare = 8;

constexpr aql::HeaderFlags kInBetween{Barrier::off, FenceScope::agent, FenceScope::agent};

StreamQueueOptions checked(StreamQueueOptions options) {
  if (!options.cu_mask.empty() &&
      std::ranges::all_of(options.cu_mask, [](uint32_t word) { return word == 0; })) {
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Stream",
                 .asked = "a compute-unit mask with no bit set",
                 .found = "kernels need at least one compute unit",
                 .remedy = "set one bit per compute unit to use, or pass an empty mask for all"});
  }
  if (options.borrowed.queue != nullptr) options.queue.packets = options.borrowed.queue->size;
  options.epoch_packets = epoch_packets(options.queue, options.epoch_packets);
  return options;
}

QueueResources::Parts with_packets(QueueResources::Parts parts) {
  parts.submits_packets = true;
  return parts;
}

QueueResources::Parts parts_of(const BorrowedQueue& borrowed) {
  return with_packets({.queue = borrowed.queue, .kernargs = {}, .foreign_error = borrowed.error});
}

}  // namespace

StreamQueue::StreamQueue(const Agent& agent, const StreamQueueOptions& options)
    : QueueResources(agent, checked(options).queue, parts_of(options.borrowed)),
      stream_options_(checked(options)),
      acquires_system_always_(options.system_acquires ||
                              kernargs_go_stale_in_l2(memory_model(agent), place().is_on_device())),
      shapes_(facts(), kInBetween),
      closers_(timeline_.places()) {
  if (options.priority != HSA_AMD_QUEUE_PRIORITY_NORMAL)
    check(hsa_amd_queue_set_priority(handle(), options.priority), "hsa_amd_queue_set_priority",
          "a priority other than normal");
  if (!options.cu_mask.empty()) note_cu_mask();
  cu_mask_ = set_cu_mask(handle(), agent, options.cu_mask);
  require_profiling();  // before the streams' first packet: see HardwareQueue
}

StreamQueue::StreamQueue(const Parts& parts, std::span<const hsa_signal_t> signals,
                         const StreamQueueOptions& options)
    : QueueResources(with_packets(parts), signals, options.queue),
      stream_options_(checked(options)),
      acquires_system_always_(options.system_acquires),
      shapes_(facts(), kInBetween),
      closers_(timeline_.places()) {}

LaunchReservation StreamQueue::reserve(const KernelInfo& kernel, const LaunchGrid& on,
                                       bool takes_block, Deadline latest) {
  LaunchReservation reserved{.lock = std::unique_lock(mutex_),
                             .slots = {},
                             .shape = &shapes_.of(kernel, on.grid),
                             .site = on.site};
  if (reserved.shape->block_bytes > kernargs_.slab_bytes()) [[unlikely]]
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = latest.is_now() ? "Stream::try_launch" : "Stream::launch",
                 .asked = fmt::format("kernel '{}', whose arguments take {} bytes", kernel.name,
                                      reserved.shape->block_bytes),
                 .found = fmt::format("kernarg slabs of {} bytes", kernargs_.slab_bytes()),
                 .remedy =
                     "create the Streams with a larger QueueOptions::kernarg_slab_bytes, or pass a "
                     "buffer's address"});
  if (try_reserve(reserved, takes_block)) [[likely]]
    return reserved;
  Waiter waiter = waiter_until(latest);
  do {
    wait_for_room(reserved.lock, waiter);
    reserved.shape = &shapes_.of(kernel, on.grid);  // another stream may have used its place
  } while (!try_reserve(reserved, takes_block));
  return reserved;
}

bool StreamQueue::try_reserve(LaunchReservation& reserved, bool takes_block) {
  check_usable();
  const DispatchShape& shape = *reserved.shape;
  if (shape.reads_packet) [[unlikely]]
    make_holds();
  if (!try_reserve(reserved.slots, shape.reads_packet)) return false;
  return !takes_block || shape.block_bytes == 0 || try_take_block(reserved);
}

bool StreamQueue::has_completion() noexcept {
  reclaim(kReclaimInPassing);
  if (!signals_.has(SignalKind::interrupt)) reclaim_signals(kReclaimInPassing);
  return timeline_.has_room() && signals_.has(SignalKind::interrupt);
}

aql::Slots StreamQueue::reserve_slots(std::unique_lock<std::mutex>& lock, bool closes,
                                      Deadline latest) {
  aql::Slots slots;
  const auto try_it = [&] {
    return closes ? try_reserve_closer(slots) : try_reserve(slots, false);
  };
  for (Waiter waiter = waiter_until(latest); !try_it();) wait_for_room(lock, waiter);
  return slots;
}

void StreamQueue::throw_short() const {
  const std::string pending = fmt::format("{} epochs are unfinished", timeline_.pending());
  if (!timeline_.has_room())
    throw_exhausted(ErrorCode::timeline, "place on the timeline",
                    fmt::format("{} epochs", timeline_.capacity()), pending);
  if (!signals_.has(SignalKind::interrupt))
    throw_exhausted(ErrorCode::signals, "completion signal",
                    fmt::format("{} signals", signals_.size(SignalKind::interrupt)),
                    fmt::format("{}, and other queues still use the rest", pending));
  const aql::Room room = writer_->room();
  if (room.free < (open_holds_ ? 2u : 1u))
    throw_exhausted(ErrorCode::ring, "slot in the ring", fmt::format("{} slots", room.ring_size),
                    "all are in use");
  throw_exhausted(ErrorCode::kernargs, "kernarg slab",
                  fmt::format("{} slabs of {} bytes", kernargs_.slabs(), kernargs_.slab_bytes()),
                  fmt::format("{} are free and {}", kernargs_.free_slabs(), pending));
}

void StreamQueue::wait_for_room(std::unique_lock<std::mutex>& lock, Waiter& waiter) {
  // Close the epoch, because an open epoch returns no resources.
  aql::Slots slots;
  if (open_packets_ != 0 && timeline_.pending() == 0 && try_reserve_closer(slots)) mark(slots);
  const Completion oldest = completion_of(timeline_, timeline_.oldest_pending());
  lock.unlock();
  const bool in_time = waiter.wait(oldest);
  lock.lock();
  check_usable();
  if (!in_time) throw_short();
  reclaim_signals(kAll);
}

bool StreamQueue::needs_barrier(const StreamPosition& position) noexcept {
  if (position.empty() || position.packet < last_barrier_) return false;
  return position.epoch == open_epoch() || !timeline_.is_done(position.epoch);
}

void StreamQueue::publish(const aql::Slots& slots, aql::Packet64& packet, aql::HeaderFlags flags,
                          bool closes, StreamPosition& position, const CallSite& site) noexcept {
  const uint64_t place = slots.first + 1, value = open_epoch();
  if (closes) {
    // Invariant 5: completion means that all earlier packets are complete and visible.
    flags.barrier = Barrier::on;
    flags.release = FenceScope::system;
    const hsa_signal_t completion = signals_.take(SignalKind::interrupt);
    packet.set_completion_signal(completion);
    const uint64_t epoch = begin(completion);
    Retained& held = retained(epoch);
    held.slabs = kernargs_.publish(kernarg_cursor_);
    held.loans.swap(loans_);
    closers_[timeline_.place(epoch)] =
        aql::packet_type(packet.header()) == aql::PacketType::kernel_dispatch ? place : 0;
    open_bytes_ = 0;
    open_holds_ = false;
    open_packets_.store(0, std::memory_order_release);  // after begin(): see TimelineWatch
  } else {
    open_packets_.store(open_packets_.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  }
  const uint16_t header = aql::with_flags(packet.header(), flags);
  packet.word[0] = aql::first_word(header, packet.setup());
  if (flags.barrier == Barrier::on) last_barrier_ = place;
  flight_.begin({.value = value,
                 .first = slots.first,
                 .packets = 1,
                 .headers = {header, header},
                 .kernel = aql::detail::load_eight_bytes(&packet.word[8]),
                 .site = site});
  const uint64_t doorbells = writer_->commit(
      {1, slots.first}, [&](uint64_t, void* slot) noexcept { return aql::fill(slot, packet); });
  count_published(
      {.packets = 1, .completion_signals = closes, .doorbells = doorbells, .batches = closes},
      aql::costs_of(header));
  position.packet = place;
  position.epoch = value;
}

void StreamQueue::mark(const aql::Slots& slots) noexcept {
  aql::Packet64 marker = aql::to_packet(aql::BarrierAnd{});
  StreamPosition position;
  publish(slots, marker, {Barrier::on, FenceScope::none, FenceScope::system}, true, position);
  count(&CounterBlock::markers);
}

void StreamQueue::launch(LaunchReservation&& reserved, StreamPosition& position,
                         aql::Packet64& packet) noexcept {
  const std::unique_lock lock = std::move(reserved.lock);
  const aql::HeaderFlags flags{
      .barrier = needs_barrier(position) ? Barrier::on : Barrier::off,
      .acquire = acquires_system_always_ || position.acquires_system || is_over(position)
                     ? FenceScope::system
                     : FenceScope::agent,
      .release = FenceScope::agent};
  if (reserved.wrote_arguments && reserved.shape->block_bytes != 0) device_writes_.flush();
  if (reserved.block != nullptr) open_bytes_ += reserved.shape->block_bytes;
  const bool is_long =
      open_packets_.load(std::memory_order_relaxed) + 1 >= stream_options_.epoch_packets ||
      open_bytes_ >= options_.kernarg_bytes / kKernargShare;
  const bool closes = is_long && has_completion();
  if (reserved.shape->reads_packet) [[unlikely]] {
    writer_->hold({1, reserved.slots.first}, {.owner = &timeline_, .value = open_epoch()});
    open_holds_ = true;
  }
  publish(reserved.slots, packet, flags, closes, position, reserved.site);
  position.acquires_system = false;
}

Event StreamQueue::event_for(StreamPosition& position, Deadline latest) {
  if (position.empty()) {
    count(&CounterBlock::markers_elided);
    return finished_event(position);
  }
  std::unique_lock lock(mutex_);
  check_usable();
  aql::Slots slots;
  if (position.epoch == open_epoch()) slots = reserve_slots(lock, true, latest);
  if (position.epoch == open_epoch()) {  // no other thread has closed it meanwhile
    mark(slots);
  } else {
    count(&CounterBlock::markers_elided);
  }
  return event_at(position.epoch, position);
}

Event StreamQueue::timed_event_for(StreamPosition& position,
                                   const std::shared_ptr<EventTime>& time) {
  std::unique_lock lock(mutex_);
  check_usable();
  uint64_t epoch = position.epoch;
  const bool is_closed = epoch != open_epoch();
  if (is_closed && timeline_.is_done(epoch)) return finished_event(position);
  if (is_closed && timeline_.has_times(epoch)) {  // its marker was timed for another request
    count(&CounterBlock::markers_elided);
    timeline_.want_time(epoch, time);
  } else {
    const aql::Slots slots = reserve_slots(lock, true);
    epoch = open_epoch();
    timeline_.expect_times(epoch, 1);
    mark(slots);
    timeline_.time([this, epoch](std::vector<PacketTime>& times) {
      times.push_back(time_of(retained(epoch).completion));
    });
    timeline_.want_time(epoch, time);
  }
  return event_at(epoch, position);
}

Event StreamQueue::event_for_all() {
  StreamPosition position;
  {
    const std::lock_guard lock(mutex_);
    const bool is_open = open_packets_.load(std::memory_order_relaxed) != 0;
    if (!is_open && timeline_.is_done(timeline_.last_begun())) return {};
    position.packet = last_barrier_ + 1;
    position.epoch = is_open ? open_epoch() : timeline_.last_begun();
  }
  return event_for(position);
}

bool StreamQueue::is_implied(const Event& event, StreamPosition& position) noexcept {
  const uint64_t value = event.completion_.value();
  if (timeline_of(event.completion_) == &timeline_) {
    // The packet that closed its epoch has its barrier bit set, so later packets follow everything
    // before it. If that packet is a launch or a gate, they follow the packet itself only with a
    // barrier bit of their own. An event of this stream must cover it, too.
    inherit(position,
            {.packet = std::max(closers_[timeline_.place(value)], uint64_t{1}), .epoch = value});
    return true;
  }
  const auto waited = find_waited(event.completion_);
  if (waited == waited_.end() || waited->event.value() < value) return false;
  inherit(position, waited->by);
  return true;
}

struct StreamQueue::WaitSet {
  std::array<LentSignal, std::tuple_size_v<decltype(aql::BarrierAnd::dependencies)>> signals;
  size_t size = 0;
};

std::vector<StreamQueue::Waited>::iterator StreamQueue::find_waited(
    const Completion& event) noexcept {
  return std::ranges::find(waited_, timeline_of(event),
                           [](const Waited& waited) { return timeline_of(waited.event); });
}

void StreamQueue::after(StreamPosition& position, std::span<const Event> events, Deadline latest) {
  WaitSet set;
  leave(position);
  for (const Event& event : events) {
    note_finished(event, position);
    if (event.completion_ == Completion()) continue;
    if (set.size == set.signals.size()) put_wait(position, set, latest);
    bool implied;
    {
      const std::lock_guard lock(mutex_);
      implied = is_implied(event, position);
    }
    std::optional<LentSignal> signal;
    if (!implied)
      signal = LentSignal::borrow_in_time(event.completion_, waiter_until(latest), end_loans_);
    if (signal) {
      set.signals[set.size++] = std::move(*signal);
    } else {
      count(&CounterBlock::waits_elided);
    }
  }
  if (set.size != 0) put_wait(position, set, latest);
}

void StreamQueue::signal(StreamPosition& position, hsa_signal_t signal, SignalLoan loan) {
  aql::Packet64 packet = aql::to_packet(aql::BarrierAnd{.completion_signal = signal});
  std::unique_lock lock(mutex_);
  check_usable();
  const aql::Slots slots = reserve_slots(lock, false);
  if (loan) loans_.push_back(std::move(loan));
  // System scope, also to acquire: other queues' caches must not hold what engines overwrote.
  const aql::HeaderFlags flags{.barrier = needs_barrier(position) ? Barrier::on : Barrier::off,
                               .acquire = FenceScope::system,
                               .release = FenceScope::system};
  publish(slots, packet, flags, false, position);
}

void StreamQueue::put_wait(StreamPosition& position, WaitSet& set, Deadline latest) {
  const auto signals = std::span(set.signals).first(set.size);
  aql::BarrierAnd barrier{};
  std::ranges::transform(signals, barrier.dependencies.begin(), &LentSignal::signal);
  aql::Packet64 packet = aql::to_packet(barrier);
  std::unique_lock lock(mutex_);
  check_usable();
  const aql::Slots slots = reserve_slots(lock, false, latest);
  const Completion own = completion_of(timeline_, open_epoch());
  if (const size_t most = waited_.size() + signals.size(); waited_.capacity() < most)
    waited_.reserve(2 * most);
  for (LentSignal& signal : signals) signal.expect_reader(own);
  // The stream's earlier packets need not be complete: the next packet waits for both.
  publish(slots, packet, {Barrier::off, FenceScope::none, FenceScope::none}, false, position);
  count(&CounterBlock::wait_packets);
  for (LentSignal& signal : signals) {
    auto waited = find_waited(signal.awaited());
    if (waited == waited_.end()) waited = waited_.insert(waited, Waited{});
    if (waited->event.value() <= signal.awaited().value()) *waited = {signal.awaited(), position};
    signal.read_by(own);
  }
  set = {};
}

Event StreamQueue::after(StreamPosition& position, hsa_signal_t signal, SignalLoan loan) {
  aql::BarrierAnd barrier{};
  barrier.dependencies[0] = signal;
  aql::Packet64 packet = aql::to_packet(barrier);
  std::unique_lock lock(mutex_);
  check_usable();
  const aql::Slots slots = reserve_slots(lock, true);
  if (loan) loans_.push_back(std::move(loan));
  publish(slots, packet, {Barrier::on, FenceScope::none, FenceScope::system}, true, position);
  closers_[timeline_.place(position.epoch)] = position.packet;
  position.acquires_system = true;
  count(&CounterBlock::wait_packets);
  return event_at(position.epoch, position);
}

bool StreamQueue::close_open() noexcept {
  const std::lock_guard lock(mutex_);
  if (open_packets_.load(std::memory_order_relaxed) == 0 || timeline_.failed()) return true;
  if (is_borrowed_ && writer_->has_intruder()) return false;
  aql::Slots slots;
  if (!try_reserve_closer(slots)) return false;
  mark(slots);
  return true;
}

void StreamQueue::publish_own(const std::function<void(uint64_t room)>& publish) {
  const std::lock_guard lock(mutex_);
  check_usable();
  // An open epoch frees no slots that it holds, and no stream may come that closes it.
  aql::Slots slots;
  if (open_holds_ && try_reserve_closer(slots)) mark(slots);
  const FollowAtEnd<aql::AqlQueueWriter> follow{*writer_};
  // An epoch that holds slots keeps one for its marker.
  const uint64_t free = writer_->room().free;
  publish(free - std::min<uint64_t>(free, open_holds_));
}

void StreamQueue::finish(Deadline deadline) noexcept {
  ends_by_ = deadline;
  if (!usable()) return;
  drain(deadline);
  const std::lock_guard lock(mutex_);
  reclaim(kAll);  // returns callers' signals
}

}  // namespace uptempo::detail
