#include "engine/stream/queue/stream_queue.hpp"

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <utility>

#include "engine/runtime/agent.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo::detail {
namespace {

using aql::Barrier;
using aql::FenceScope;

// Number of old epochs that closing an epoch reclaims: see batch_queue.cpp.
constexpr uint32_t kReclaimInPassing = 2;
// An open epoch may hold 1/kKernargShare of the kernarg memory before a launch closes it.
constexpr uint64_t kKernargShare = 8;

constexpr aql::HeaderFlags kInBetween{Barrier::off, FenceScope::agent, FenceScope::agent};

hsa_amd_queue_priority_t driver_priority(StreamPriority priority) noexcept {
  switch (priority) {
    case StreamPriority::low:
      return HSA_AMD_QUEUE_PRIORITY_LOW;
    case StreamPriority::high:
      return HSA_AMD_QUEUE_PRIORITY_HIGH;
    case StreamPriority::normal:
      break;
  }
  return HSA_AMD_QUEUE_PRIORITY_NORMAL;
}

StreamQueueOptions checked(StreamQueueOptions options) {
  if (!options.cu_mask.empty() &&
      std::ranges::all_of(options.cu_mask, [](uint32_t word) { return word == 0; })) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Stream",
                 .asked = "a compute-unit mask with no bit set",
                 .found = "kernels need at least one compute unit",
                 .remedy = "set one bit per compute unit to use, or pass an empty mask for all"});
  }
  options.epoch_packets = epoch_packets(options.queue, options.epoch_packets);
  return options;
}

QueueResources::Parts with_packets(QueueResources::Parts parts) {
  parts.submits_packets = true;
  return parts;
}

}  // namespace

StreamQueue::StreamQueue(const Agent& agent, const StreamQueueOptions& options)
    : StreamSpills(options.spill_bytes),
      QueueResources(agent, checked(options).queue, with_packets({})),
      stream_options_(checked(options)),
      acquires_system_always_(options.system_acquires ||
                              kernargs_go_stale_in_l2(memory_model(agent), place().is_on_device())),
      shapes_(facts(), kInBetween),
      closers_(timeline_.places()) {
  if (options.priority != StreamPriority::normal)
    check(hsa_amd_queue_set_priority(handle(), driver_priority(options.priority)),
          "hsa_amd_queue_set_priority", "a priority other than normal");
  cu_mask_ = set_cu_mask(handle(), agent, options.cu_mask);
}

StreamQueue::StreamQueue(const Parts& parts, std::span<const hsa_signal_t> signals,
                         const StreamQueueOptions& options)
    : StreamSpills(options.spill_bytes),
      QueueResources(with_packets(parts), signals, options.queue),
      stream_options_(checked(options)),
      acquires_system_always_(options.system_acquires),
      shapes_(facts(), kInBetween),
      closers_(timeline_.places()) {}

StreamQueue::Reservation StreamQueue::reserve_launch(const KernelInfo& kernel, const Grid& grid,
                                                     bool with_block) {
  Reservation reserved{
      .lock = std::unique_lock(mutex_), .shape = &shapes_.of(kernel, grid), .block = nullptr};
  const auto takes_block = [&] { return with_block && reserved.shape->block_bytes != 0; };
  if (try_reserve_launch(*reserved.shape, takes_block(), reserved.block)) [[likely]]
    return reserved;
  Waiter waiter(stream_options_.patience);
  do {
    wait_for_launch(reserved.lock, kernel, takes_block() ? reserved.shape->block_bytes : 0, waiter);
    reserved.shape = &shapes_.of(kernel, grid);  // another stream may have used its place
  } while (!try_reserve_launch(*reserved.shape, takes_block(), reserved.block));
  return reserved;
}

LaunchReservation reserve_launch(StreamQueue& queue, const KernelInfo& kernel, const Grid& grid) {
  return queue.reserve_launch(kernel, grid);
}
LaunchReservation reserve_launch_at(StreamQueue& queue, const KernelInfo& kernel,
                                    const Grid& grid) {
  return queue.reserve_launch_at(kernel, grid);
}
bool try_take_block(StreamQueue& queue, LaunchReservation& reserved) noexcept {
  return queue.try_take_block(reserved);
}
void launch(StreamQueue& queue, LaunchReservation&& reserved, StreamPosition& position,
            aql::Packet64& packet) noexcept {
  queue.launch(std::move(reserved), position, packet);
}

bool StreamQueue::try_reserve_launch(const DispatchShape& shape, bool takes_block,
                                     std::byte*& block) {
  check_failed();
  if (shape.reads_packet) [[unlikely]]
    make_holds();
  if (!has_slots(slots_for_open(shape.reads_packet))) return false;
  return !takes_block || try_take(shape.block_bytes, block);
}

std::byte* StreamQueue::take_elsewhere(uint32_t block_bytes) noexcept {
  // The open epoch holds the block. The dispatch joins that epoch, because its packet is written
  // before the lock is released.
  if (is_large(block_bytes))
    return spills_.take(block_bytes, completion_of(timeline_, open_epoch()));
  return try_take_kernargs(kernarg_cursor_, block_bytes);
}

bool StreamQueue::add_spill(std::unique_lock<std::mutex>& lock, const KernelInfo& kernel,
                            uint32_t block_bytes) {
  const uint64_t capacity = SpillPool::capacity_for(block_bytes);
  const auto refuse = [&](std::string found, const char* remedy) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Stream::launch",
                 .asked = fmt::format("kernel '{}', whose arguments take {} bytes", kernel.name,
                                      block_bytes),
                 .found = std::move(found),
                 .remedy = remedy});
  };
  if (capacity > spills_.limit_bytes())
    refuse(
        fmt::format(
            "{} bytes at most for blocks larger than a slab, each rounded up to a power of two",
            spills_.limit_bytes()),
        "create the Streams with a larger StreamsOptions::spill_bytes, or pass a buffer's address");
  // Freeing and allocating memory may take long, so both happen without the lock.
  std::vector<KernargMemory> dropped;
  const bool has_room = spills_.reserve(block_bytes, dropped);
  lock.unlock();
  dropped.clear();
  if (!has_room) {
    lock.lock();
    return false;
  }
  KernargMemory memory;
  try {
    if (agent_)
      if (const size_t most =
              find_pool(*agent_, place().is_on_device() ? MemoryKind::device : MemoryKind::kernarg)
                  .max_allocation_bytes;
          capacity > most)
        refuse(fmt::format("kernarg memory of {} bytes at most", most), "pass a buffer's address");
    memory = KernargMemory(agent(), capacity, place().is_on_device());
  } catch (...) {
    lock.lock();
    spills_.unreserve(block_bytes);
    throw;
  }
  lock.lock();
  spills_.add(std::move(memory));
  return true;
}

void StreamQueue::wait_for_launch(std::unique_lock<std::mutex>& lock, const KernelInfo& kernel,
                                  uint32_t block_bytes, Waiter& waiter) {
  const bool lacks_spill = is_large(block_bytes) && !spills_.has_free(block_bytes);
  if (lacks_spill && add_spill(lock, kernel, block_bytes)) return;
  if (try_wait_for_room(lock, waiter)) return;
  if (!lacks_spill) throw_short();
  throw_exhausted(
      fmt::format("block of {} bytes for the arguments of kernel '{}'", block_bytes, kernel.name),
      fmt::format("{} bytes of blocks larger than a slab", spills_.limit_bytes()),
      fmt::format("{} are in use by {} unfinished epochs", spills_.size_bytes(),
                  timeline_.pending()));
}

bool StreamQueue::can_close() noexcept {
  reclaim(kReclaimInPassing);
  if (!signals_.has(SignalKind::interrupt)) reclaim_signals(kReclaimInPassing);
  return timeline_.has_room() && signals_.has(SignalKind::interrupt) && has_slots(1);
}

void StreamQueue::throw_short() const {
  const std::string pending = fmt::format("{} epochs are unfinished", timeline_.pending());
  if (!timeline_.has_room())
    throw_exhausted("place on the timeline", fmt::format("{} epochs", timeline_.capacity()),
                    pending);
  if (!signals_.has(SignalKind::interrupt))
    throw_exhausted("completion signal",
                    fmt::format("{} signals", signals_.size(SignalKind::interrupt)),
                    fmt::format("{}, and other queues still use the rest", pending));
  const aql::Room room = writer_->room();
  if (room.free < slots_for_open(false))
    throw_exhausted("slot in the ring", fmt::format("{} slots", room.ring_size), "all are in use");
  throw_exhausted("kernarg slab",
                  fmt::format("{} slabs of {} bytes", kernargs_.slabs(), kernargs_.slab_bytes()),
                  fmt::format("{} are free and {}", kernargs_.free_slabs(), pending));
}

bool StreamQueue::try_wait_for_room(std::unique_lock<std::mutex>& lock, Waiter& waiter) {
  // Close the epoch, because an open epoch returns no resources.
  if (open_packets_ != 0 && timeline_.pending() == 0 && can_close()) mark();
  const Completion oldest = completion_of(timeline_, timeline_.oldest_pending());
  lock.unlock();
  const bool in_time = waiter.wait(oldest);
  lock.lock();
  check_failed();
  if (in_time) reclaim_signals(kAll);
  return in_time;
}

void StreamQueue::wait_for_room(std::unique_lock<std::mutex>& lock, Waiter& waiter) {
  if (!try_wait_for_room(lock, waiter)) throw_short();
}

bool StreamQueue::needs_barrier(const StreamPosition& position) noexcept {
  if (position.empty() || position.packet < last_barrier_) return false;
  return position.epoch == open_epoch() || !timeline_.is_done(position.epoch);
}

void StreamQueue::follow(StreamPosition& position, uint64_t packet, uint64_t epoch) noexcept {
  position.packet = packet;
  position.epoch = epoch;
}

void StreamQueue::inherit(StreamPosition& position, uint64_t packet, uint64_t epoch) noexcept {
  follow(position, std::max(position.packet, packet), std::max(position.epoch, epoch));
}

uint64_t StreamQueue::publish(aql::Packet64& packet, aql::HeaderFlags flags, bool closes,
                              const CallSite& site) noexcept {
  const uint64_t place = writer_->next_index() + 1, value = open_epoch();
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
                 .first = place - 1,
                 .packets = 1,
                 .headers = {header, header},
                 .kernel = aql::detail::load_eight_bytes(&packet.word[8]),
                 .site = site});
  const uint64_t doorbells = writer_->commit(
      {1, place - 1}, [&](uint64_t, void* slot) noexcept { return aql::fill(slot, packet); });
  count_published(
      {.packets = 1, .completion_signals = closes, .doorbells = doorbells, .batches = closes},
      aql::costs_of(header));
  return place;
}

void StreamQueue::mark() noexcept {
  aql::Packet64 marker = aql::to_packet(aql::BarrierAnd{});
  publish(marker,
          {.barrier = Barrier::on, .acquire = FenceScope::none, .release = FenceScope::system},
          true);
  count(&CounterBlock::markers);
}

void StreamQueue::launch(Reservation&& reserved, StreamPosition& position,
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
  const bool closes = is_long && can_close();
  const uint64_t epoch = open_epoch();
  if (reserved.shape->reads_packet) [[unlikely]] {
    writer_->hold({1, writer_->next_index()}, {.owner = &timeline_, .value = epoch});
    open_holds_ = true;
  }
  follow(position, publish(packet, flags, closes, reserved.site), epoch);
  position.acquires_system = false;
}

// May release and retake the lock.
void StreamQueue::await_closable(std::unique_lock<std::mutex>& lock) {
  for (Waiter waiter(stream_options_.patience); !can_close();) wait_for_room(lock, waiter);
}

Event StreamQueue::event_for(StreamPosition& position) {
  if (position.empty()) {
    count(&CounterBlock::markers_elided);
    return finished_event(position);
  }
  std::unique_lock lock(mutex_);
  check_failed();
  if (position.epoch == open_epoch()) await_closable(lock);
  if (position.epoch == open_epoch()) {
    mark();
  } else {
    count(&CounterBlock::markers_elided);
  }
  return event_at(position.epoch, position);
}

Event StreamQueue::timed_event_for(StreamPosition& position,
                                   const std::shared_ptr<EventTime>& time) {
  std::unique_lock lock(mutex_);
  check_failed();
  uint64_t epoch = position.epoch;
  const bool is_closed = epoch != open_epoch();
  if (is_closed && timeline_.is_done(epoch)) return finished_event(position);
  if (is_closed && timeline_.has_times(epoch)) {  // its marker was timed for another request
    count(&CounterBlock::markers_elided);
    timeline_.want_time(epoch, time);
  } else {
    await_closable(lock);
    epoch = open_epoch();
    timeline_.expect_times(epoch, 1);
    mark();
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
    follow(position, last_barrier_ + 1, is_open ? open_epoch() : timeline_.last_begun());
  }
  return event_for(position);
}

bool StreamQueue::is_implied(const Event& event, StreamPosition& position) noexcept {
  const uint64_t value = event.completion_.value();
  if (timeline_of(event.completion_) == &timeline_) {
    // The packet that closed its epoch has its barrier bit set, so later packets follow everything
    // before it. If that packet is a launch or a gate, they follow the packet itself only with a
    // barrier bit of their own. An event of this stream must cover it, too.
    inherit(position, std::max(closers_[timeline_.place(value)], uint64_t{1}), value);
    return true;
  }
  const SignalWaits::Place* const wait = waits_.find(event.completion_);
  if (wait == nullptr) return false;
  inherit(position, wait->packet, wait->epoch);
  return true;
}

void StreamQueue::after(StreamPosition& position, std::span<const Event> events) {
  WaitSet waits;
  leave(position);
  for (const Event& event : events) {
    note_finished(event, position);
    if (event.completion_ == Completion()) continue;
    if (waits.full()) put_wait(position, waits);
    bool implied;
    {
      const std::lock_guard lock(mutex_);
      implied = is_implied(event, position);
    }
    std::optional<LentSignal> signal;
    if (!implied)
      signal = LentSignal::borrow_in_time(event.completion_, stream_options_.patience, end_loans_);
    if (signal) {
      waits.add(std::move(*signal));
    } else {
      count(&CounterBlock::waits_elided);
    }
  }
  if (!waits.empty()) put_wait(position, waits);
}

// For a packet of the open epoch. May release and retake the lock.
void StreamQueue::await_slot(std::unique_lock<std::mutex>& lock) {
  for (Waiter waiter(stream_options_.patience); !has_slots(slots_for_open(false));)
    wait_for_room(lock, waiter);
}

void StreamQueue::signal(StreamPosition& position, hsa_signal_t signal, SignalLoan loan) {
  aql::Packet64 packet = aql::to_packet(aql::BarrierAnd{.completion_signal = signal});
  std::unique_lock lock(mutex_);
  check_failed();
  await_slot(lock);
  if (loan) loans_.push_back(std::move(loan));
  // System scope, also to acquire: other queues' caches must not hold what engines overwrote.
  const aql::HeaderFlags flags{.barrier = needs_barrier(position) ? Barrier::on : Barrier::off,
                               .acquire = FenceScope::system,
                               .release = FenceScope::system};
  const uint64_t epoch = open_epoch();
  follow(position, publish(packet, flags, false), epoch);
}

void StreamQueue::put_wait(StreamPosition& position, WaitSet& waits) {
  aql::Packet64 packet = waits.packet();
  std::unique_lock lock(mutex_);
  check_failed();
  await_slot(lock);
  const uint64_t epoch = open_epoch();
  waits_.expect(waits, completion_of(timeline_, epoch));
  // The stream's earlier packets need not be complete: the next packet waits for both.
  follow(position, publish(packet, {Barrier::off, FenceScope::none, FenceScope::none}, false),
         epoch);
  count(&CounterBlock::wait_packets);
  waits_.note(waits, position.packet, completion_of(timeline_, epoch));
  waits = {};
}

Event StreamQueue::after(StreamPosition& position, hsa_signal_t signal, SignalLoan loan) {
  aql::BarrierAnd barrier{};
  barrier.dependencies[0] = signal;
  aql::Packet64 packet = aql::to_packet(barrier);
  std::unique_lock lock(mutex_);
  check_failed();
  await_closable(lock);
  if (loan) loans_.push_back(std::move(loan));
  const uint64_t epoch = open_epoch();
  follow(position, publish(packet, {Barrier::on, FenceScope::none, FenceScope::system}, true),
         epoch);
  closers_[timeline_.place(epoch)] = position.packet;
  position.acquires_system = true;
  count(&CounterBlock::wait_packets);
  return event_at(epoch, position);
}

bool StreamQueue::close_open() noexcept {
  const std::lock_guard lock(mutex_);
  if (open_packets_.load(std::memory_order_relaxed) == 0 || timeline_.failed()) return true;
  if (!can_close()) return false;
  mark();
  return true;
}

void StreamQueue::finish(Deadline deadline) noexcept {
  ends_by_ = deadline;
  if (!usable()) return;
  drain(deadline);
  const std::lock_guard lock(mutex_);
  reclaim(kAll);  // returns callers' signals
}

}  // namespace uptempo::detail
