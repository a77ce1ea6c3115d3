#include "tools/lint/queue_watch.hpp"

#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <cstddef>

namespace uptempo::lint {
namespace {

// For counts that only the reader stores.
void add_one(std::atomic<uint64_t>& count) noexcept {
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void raise(std::atomic<uint64_t>& highest, uint64_t value) noexcept {
  uint64_t there = highest.load(std::memory_order_relaxed);
  while (there < value && !highest.compare_exchange_weak(there, value, std::memory_order_seq_cst)) {
  }
}

bool is_system(uint32_t header, int shift) noexcept {
  return (header >> shift & 3) == HSA_FENCE_SCOPE_SYSTEM;
}

constexpr uint64_t kernel_id(PacketKind kind) { return static_cast<uint64_t>(kind); }

// A doorbell takes an index of 63 bits; anything else is not one.
constexpr uint64_t kHighestIndex = ~uint64_t{0} >> 1;

constexpr size_t kDependencies = packet_word(offsetof(hsa_barrier_and_packet_t, dep_signal));
constexpr size_t kValueSignal = packet_word(offsetof(hsa_amd_barrier_value_packet_t, signal));
constexpr size_t kCompletionSignal =
    packet_word(offsetof(hsa_barrier_and_packet_t, completion_signal));
static_assert(packet_word(offsetof(hsa_kernel_dispatch_packet_t, completion_signal)) ==
              kCompletionSignal);
static_assert(packet_word(offsetof(hsa_agent_dispatch_packet_t, completion_signal)) ==
              kCompletionSignal);
static_assert(packet_word(offsetof(hsa_amd_barrier_value_packet_t, completion_signal)) ==
              kCompletionSignal);
static_assert(packet_word(offsetof(hsa_barrier_or_packet_t, dep_signal)) == kDependencies);

}  // namespace

QueueWatch::QueueWatch(const hsa_queue_t* queue, uint64_t number, std::string agent,
                       const QueueCalls& calls, Ledger& ledger, SignalTable& signals)
    : next_(calls.write_index(queue)),
      ring_(static_cast<uint64_t*>(queue->base_address)),
      mask_(queue->size - 1),
      queue_(queue),
      id_(queue->id),
      number_(number),
      agent_(std::move(agent)),
      calls_(calls),
      ledger_(ledger),
      signals_(signals),
      rung_end_(next_.load()),
      pair_{kernel_id(PacketKind::nothing), kernel_id(PacketKind::nothing), number},
      started_end_(next_.load()) {}

void QueueWatch::complete(uint64_t end) noexcept { raise(complete_end_, end); }

void QueueWatch::waited(uint64_t index, std::optional<uint64_t> nanoseconds) noexcept {
  if (nanoseconds && index + 1 == counts().rung_end) {
    drained_ns_.fetch_add(*nanoseconds, std::memory_order_relaxed);
    drains_.fetch_add(1, std::memory_order_relaxed);
  }
  waits_.fetch_add(1, std::memory_order_release);  // after the others
}

QueueCounts QueueWatch::counts() const noexcept {
  const uint64_t repeats = repeats_.load(std::memory_order_relaxed);
  const uint64_t read_end = next_.load(std::memory_order_relaxed);
  return {.packets = packets_.load(std::memory_order_relaxed) + repeats,
          .missed = missed_.load(std::memory_order_relaxed),
          .doorbells = rings_.load(std::memory_order_relaxed) +
                       announced_.load(std::memory_order_relaxed) + repeats,
          .read_end = read_end,
          .rung_end = std::max({rung_end_.load(std::memory_order_relaxed),
                                announced_end_.load(std::memory_order_relaxed), read_end})};
}

// If another thread overwrites the slot meanwhile, the caller drops the copy.
inline void QueueWatch::copy(const uint64_t* slot, Packet& packet) noexcept {
  const auto load = [slot](size_t position) {
    return std::atomic_ref(const_cast<uint64_t&>(slot[position])).load(std::memory_order_acquire);
  };
  packet.completion_signal = load(kCompletion);
  const auto holds = [&](PacketKind kind) {
    packet.kernel = kernel_id(kind);
    packet.dependency_count = packet.dependencies.size();
    for (size_t i = 0; i < packet.dependencies.size(); ++i)
      packet.dependencies[i] = load(kDependencies + i);
  };
  switch (packet.header & 0xff) {
    case HSA_PACKET_TYPE_KERNEL_DISPATCH:
      packet.kernel = load(kKernelObject);
      packet.kernarg = load(kKernarg);
      return;
    case HSA_PACKET_TYPE_BARRIER_AND:
      return holds(PacketKind::barrier_and);
    case HSA_PACKET_TYPE_BARRIER_OR:
      return holds(PacketKind::barrier_or);
    case HSA_PACKET_TYPE_AGENT_DISPATCH:
      packet.kernel = kernel_id(PacketKind::agent_dispatch);
      return;
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
      if ((packet.header >> 16 & 0xff) == HSA_AMD_PACKET_TYPE_BARRIER_VALUE) {
        packet.kernel = kernel_id(PacketKind::barrier_value);
        packet.dependency_count = 1;
        packet.dependencies[0] = load(kValueSignal);
        return;
      }
      packet.kernel = kernel_id(PacketKind::vendor);
      break;
    default:
      packet.kernel = kernel_id(PacketKind::unknown);
  }
  packet.completion_signal = 0;  // the layout is not known
}

inline RecordNumber QueueWatch::find_record(uint64_t kernel, Seen& seen) noexcept {
  const uint64_t before = pair_.packet;
  // A loop of one kernel repeats its pair.
  if (record_ != kOtherPairs && pair_.before == kernel && before == kernel) return record_;
  pair_ = {before, kernel, number_};
  const Ledger::Found found = ledger_.find(pair_);
  record_ = found.record;
  if (found.is_new && seen.new_count < seen.new_records.size())
    seen.new_records[seen.new_count++] = found.record;
  return record_;
}

inline void QueueWatch::process(const Packet& packet, uint64_t index, Seen& seen) noexcept {
  const uint64_t kernel = packet.kernel;
  const RecordNumber record = find_record(kernel, seen);
  seen.any = true;
  seen.record = record;

  const uint32_t header = packet.header;
  const bool is_dispatch = kernel >= kPacketKinds;
  const bool barrier = (header >> HSA_PACKET_HEADER_BARRIER & 1) != 0;
  const bool system_acquire = is_system(header, HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE);
  const bool system_release = is_system(header, HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
  const bool signals = packet.completion_signal != 0;
  const bool all_before_complete =
      index != 0 && complete_end_.load(std::memory_order_acquire) >= index;

  ledger_.add(record, Count::packets);
  if (barrier) ledger_.add(record, Count::barrier_bits);
  if (packet.kernarg % 64 != 0) ledger_.add(record, Count::unaligned_kernargs);
  if (const uint64_t waits = waits_.load(std::memory_order_acquire); waits != waits_seen_)
      [[unlikely]] {
    waits_seen_ = waits;
    const uint64_t drains = drains_.load(std::memory_order_relaxed);
    const uint64_t drained_ns = drained_ns_.load(std::memory_order_relaxed);
    if (drains != drains_seen_) ledger_.add(record, Count::host_waits);
    ledger_.add(record, Count::waited_ns, drained_ns - drained_ns_seen_);
    drains_seen_ = drains;
    drained_ns_seen_ = drained_ns;
  }
  last_is_plain_ = is_dispatch && !system_acquire && !system_release && !signals;
  if (last_is_plain_) {
    repeat_header_ = header;
    rules_.plain_dispatch(record, barrier, all_before_complete, ledger_);
    return;
  }

  PacketFacts facts{.record = record};
  facts.holds =
      kernel == kernel_id(PacketKind::barrier_and) || kernel == kernel_id(PacketKind::barrier_or);
  facts.opaque = !is_dispatch && !facts.holds;
  facts.barrier = barrier;
  facts.system_acquire = system_acquire;
  facts.system_release = system_release;
  facts.signals = signals;
  facts.all_before_complete = all_before_complete;
  facts.starts_after_doorbell = index >= started_end_;
  facts.index = index;
  for (size_t i = 0; i < packet.dependency_count; ++i) {
    const uint64_t handle = packet.dependencies[i];
    if (handle == 0) continue;
    facts.waits = true;
    if (SignalTable::Entry* const entry = signals_.add(handle)) SignalTable::use(*entry);
  }
  if (system_acquire) ledger_.add(record, Count::system_acquires);
  if (system_release) ledger_.add(record, Count::system_releases);
  if (signals) {
    ledger_.add(record, Count::signals);
    if (SignalTable::Entry* const entry = signals_.add(packet.completion_signal)) {
      const uint32_t life = entry->life.load(std::memory_order_acquire);
      // The signal is still the packet's if the device has not taken the packet. Before the first
      // doorbell for it, its thread does not wait for it.
      if (may_be_taken(index) && calls_.read_index(queue_) > index)
        SignalTable::blur(*entry);
      else
        signals_.attach(*entry, life, {record, this, index, barrier});
    }
  }
  rules_.packet(facts, ledger_);
}

// Whether a doorbell that was rung before may have started the packet.
inline bool QueueWatch::may_be_taken(uint64_t index) const noexcept {
  return index < started_end_ || announced_.load(std::memory_order_acquire) != announced_seen_;
}

inline void QueueWatch::read(uint64_t end, Seen& seen) noexcept {
  rules_.begin_doorbell();
  uint64_t next = next_.load(std::memory_order_relaxed);
  for (; next < end; ++next) {
    const uint64_t* const slot = ring_ + (next & mask_) * 8;
    Packet packet;
    // The producer releases the header.
    packet.header = std::atomic_ref(*reinterpret_cast<uint32_t*>(const_cast<uint64_t*>(slot)))
                        .load(std::memory_order_acquire);
    const bool is_invalid = (packet.header & 0xff) == HSA_PACKET_TYPE_INVALID;
    if (is_invalid && calls_.read_index(queue_) <= next) break;  // not yet published
    if (!is_invalid) copy(slot, packet);
    // acquire, each load: before the write index below. The slot holds packet `next` until the
    // write index is a ring further, which needs that the device has taken it.
    if (is_invalid || (may_be_taken(next) && calls_.write_index(queue_) > next + mask_ + 1)) {
      add_one(missed_);
      rules_.gap();
      pair_.packet = kernel_id(PacketKind::unseen);
      record_ = kOtherPairs;
      last_is_plain_ = false;
      continue;
    }
    process(packet, next, seen);
    add_one(packets_);
  }
  next_.store(next, std::memory_order_relaxed);
  // A doorbell that another thread has announced may have started the first packets.
  const uint64_t read_index = rules_.has_wide_acquires() ? calls_.read_index(queue_) : 0;
  rules_.end_doorbell(announced_.load(std::memory_order_acquire) == announced_seen_, read_index,
                      ledger_);
  started_end_ = std::max(end, announced_end_.load(std::memory_order_acquire));
}

// The index after the last packet that a doorbell announces.
inline uint64_t QueueWatch::end_of(uint64_t value) noexcept {
  const uint64_t next = next_.load(std::memory_order_relaxed);
  // A packet in this slot is then no older than `next`.
  if (value == next && next - taken_end_ <= mask_) return value + 1;
  taken_end_ = calls_.read_index(queue_);
  return std::min(value + 1, calls_.write_index(queue_));
}

// After a doorbell: what the next one repeats. The rules' state does not change by the same plain
// dispatch again.
inline void QueueWatch::learn(const Seen& seen) noexcept {
  repeat_end_ = 0;
  if (!last_is_plain_ || seen.record == kOtherPairs || pair_.before != pair_.packet || is_behind_)
    return;
  repeat_end_ = taken_end_ + mask_ + 1;  // end_of() looks again
  repeat_kernel_ = pair_.packet;
  repeat_waits_ = waits_at_ring_;
  repeat_count_ = &ledger_.repeats(record_, (repeat_header_ >> HSA_PACKET_HEADER_BARRIER & 1) != 0);
}

QueueWatch::Seen QueueWatch::ring(uint64_t value) noexcept {
  Seen seen;
  if (value >= kHighestIndex) return seen;
  const ReaderRole::Taken taken = role_.take();
  if (taken == ReaderRole::Taken::no) {
    raise(announced_end_, std::min(value + 1, calls_.write_index(queue_)));
    signals_.add_unread(1);  // before the doorbell, and before the reader subtracts it
    announced_.fetch_add(1, std::memory_order_seq_cst);
    return seen;
  }
  add_one(rings_);
  seen.number = rings_.load(std::memory_order_relaxed) + repeats_.load(std::memory_order_relaxed);
  const uint64_t waits = waits_.load(std::memory_order_relaxed);
  const bool follows = waits == waits_at_ring_;
  waits_at_ring_ = waits;
  const uint64_t covered =
      std::max(rung_end_.load(std::memory_order_relaxed), next_.load(std::memory_order_relaxed));
  const uint64_t end = end_of(value);
  const bool is_lone = follows && end == covered + 1;
  if (end > covered) rung_end_.store(end, std::memory_order_relaxed);

  // An announcement that comes between the last load and the release is read at the next doorbell.
  // The bound keeps other threads from holding this one.
  for (int attempt = 0; attempt < 4; ++attempt) {
    // acquire: before their ends
    const uint64_t announced = announced_.load(std::memory_order_acquire);
    const uint64_t rung = std::max(rung_end_.load(std::memory_order_relaxed),
                                   announced_end_.load(std::memory_order_acquire));
    read(rung, seen);
    if (const bool is_behind = next_.load(std::memory_order_relaxed) < rung;
        is_behind != is_behind_) {
      is_behind_ = is_behind;
      signals_.add_unread(is_behind ? 1 : ~uint64_t{0});
    }
    if (announced != announced_seen_) signals_.add_unread(announced_seen_ - announced);
    announced_seen_ = announced;
    if (announced_.load(std::memory_order_acquire) == announced) break;
  }
  if (seen.any) {
    ledger_.add(seen.record, Count::doorbells);
    if (is_lone) ledger_.add(seen.record, Count::lone_doorbells);
  }
  learn(seen);
  role_.give_back(taken);
  return seen;
}

}  // namespace uptempo::lint
