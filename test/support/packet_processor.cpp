#include "test/support/packet_processor.hpp"

#include <algorithm>
#include <chrono>

#include "test/support/eventually.hpp"

namespace uptempo::test {
namespace {

std::atomic_ref<int64_t> value(hsa_signal_t signal) {
  return std::atomic_ref(
      const_cast<int64_t&>(reinterpret_cast<amd_signal_t*>(signal.handle)->value));
}

bool holds(hsa_signal_condition32_t condition, hsa_signal_value_t left, hsa_signal_value_t right) {
  switch (condition) {
    case HSA_SIGNAL_CONDITION_EQ:
      return left == right;
    case HSA_SIGNAL_CONDITION_NE:
      return left != right;
    case HSA_SIGNAL_CONDITION_LT:
      return left < right;
    default:
      return left >= right;
  }
}

}  // namespace

PacketProcessor::PacketProcessor(PacketProcessorOptions options, Kernel kernel)
    : options_(std::move(options)),
      kernel_(std::move(kernel)),
      double_({.ring_size = options_.ring_size,
               .type = options_.type,
               .doorbell_kind = options_.doorbell_kind}),
      random_(options_.seed),
      doorbell_seen_(double_.doorbell().load()),
      paused_(options_.paused),
      thread_([this] { run(); }) {}

PacketProcessor::~PacketProcessor() {
  stop_.store(true);
  thread_.join();
}

void PacketProcessor::publish(const aql::Packet64& packet) noexcept {
  const uint64_t index = double_.write_index().load();
  aql::Packet64& slot = double_.slot(index);
  std::copy(packet.word.begin() + 1, packet.word.end(), slot.word.begin() + 1);
  std::atomic_ref(slot.word[0]).store(packet.word[0], std::memory_order_release);
  double_.write_index().store(index + 1);
  double_.doorbell().store(index);
}

void PacketProcessor::pause() noexcept {
  paused_.store(true);
  if (std::this_thread::get_id() == thread_.get_id()) return;
  // The present turn may not have seen the pause.
  for (const uint64_t turn = turns_.load(); turns_.load() == turn;) std::this_thread::yield();
}

void PacketProcessor::fail(hsa_status_t status) noexcept {
  error_.store(status, std::memory_order_release);
}

std::vector<Completed> PacketProcessor::completed() const {
  const std::lock_guard lock(mutex_);
  return completed_;
}

std::vector<uint64_t> PacketProcessor::doorbells() const {
  const std::lock_guard lock(mutex_);
  return doorbells_;
}

bool PacketProcessor::wait_completed(uint64_t count) const {
  return eventually([&] { return completed_count() >= count || error() != HSA_STATUS_SUCCESS; }) &&
         completed_count() >= count;
}

void PacketProcessor::run() {
  while (!stop_.load()) {
    ++turns_;
    watch_doorbell();
    bool worked = false;
    if (!paused_.load() && error_.load() == HSA_STATUS_SUCCESS) {
      worked = launch_next();
      worked = !active_.empty() || worked;
      advance_active();
    }
    if (!worked) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void PacketProcessor::watch_doorbell() {
  const uint64_t rung = double_.doorbell().load(std::memory_order_acquire);
  if (rung == doorbell_seen_) return;
  doorbell_seen_ = rung;
  const std::lock_guard lock(mutex_);
  doorbells_.push_back(rung);
}

bool PacketProcessor::launch_next() {
  // Takes only packets that the doorbell covers, so a producer that does not ring it fails its
  // tests.
  if (static_cast<int64_t>(doorbell_seen_ - next_) < 0) return false;
  const uint32_t first = double_.first_word(next_);
  const auto header = static_cast<uint16_t>(first);
  const aql::PacketType type = aql::packet_type(header);
  if (type == aql::PacketType::invalid) return false;
  if (aql::header_flags(header).barrier == aql::Barrier::on && !active_.empty()) return false;

  aql::Packet64 packet = double_.slot(next_);
  switch (type) {
    case aql::PacketType::kernel_dispatch:
      break;
    case aql::PacketType::barrier_and:
    case aql::PacketType::barrier_or:
      if (!options_.barriers_step_aside && !dependencies_met(packet)) return false;
      break;
    case aql::PacketType::vendor_specific:
      if ((packet.setup() & 0xff) != HSA_AMD_PACKET_TYPE_BARRIER_VALUE) {
        fail(HSA_STATUS_ERROR_INVALID_PACKET_FORMAT);
        return false;
      }
      if (!dependencies_met(packet)) return false;
      break;
    default:
      fail(HSA_STATUS_ERROR_INVALID_PACKET_FORMAT);
      return false;
  }
  active_.push_back({.index = next_, .packet = packet, .steps_left = 0, .start_ticks = clock_++});
  double_.invalidate(next_);
  ++next_;
  if (options_.early_read_index) give_back_slots();
  // Last: a test may take the call for the begin of the kernel, and look at the slot or the index.
  if (type == aql::PacketType::kernel_dispatch)
    active_.back().steps_left =
        options_.duration ? options_.duration(aql::packet_as<hsa_kernel_dispatch_packet_t>(packet))
                          : 1 + static_cast<unsigned>(random_() % 16);
  return true;
}

bool PacketProcessor::dependencies_met(const aql::Packet64& packet) {
  const aql::PacketType type = aql::packet_type(packet.header());
  if (type == aql::PacketType::vendor_specific) {
    const auto p = aql::packet_as<hsa_amd_barrier_value_packet_t>(packet);
    return p.signal.handle == 0 ||
           holds(p.cond, value(p.signal).load(std::memory_order_acquire) & p.mask, p.value);
  }
  const auto p = aql::packet_as<hsa_barrier_and_packet_t>(packet);
  // Acquire: writes of the packet that decremented the signal are visible to the packets after this
  // one.
  const auto done = [](hsa_signal_t s) { return value(s).load(std::memory_order_acquire) == 0; };
  if (type == aql::PacketType::barrier_and) {
    return std::all_of(std::begin(p.dep_signal), std::end(p.dep_signal),
                       [&](hsa_signal_t s) { return s.handle == 0 || done(s); });
  }
  return std::any_of(std::begin(p.dep_signal), std::end(p.dep_signal),
                     [&](hsa_signal_t s) { return s.handle != 0 && done(s); });
}

bool PacketProcessor::may_complete(const aql::Packet64& packet) {
  const aql::PacketType type = aql::packet_type(packet.header());
  return (type != aql::PacketType::barrier_and && type != aql::PacketType::barrier_or) ||
         dependencies_met(packet);
}

void PacketProcessor::advance_active() {
  if (active_.empty()) return;
  for (Active& active : active_) {
    if (active.steps_left > 0) --active.steps_left;
  }
  // Completes one finished packet, chosen at random.
  const size_t start = random_() % active_.size();
  for (size_t i = 0; i < active_.size(); ++i) {
    const size_t at = (start + i) % active_.size();
    if (active_[at].steps_left > 0 || !may_complete(active_[at].packet)) continue;
    const Active through = active_[at];
    active_.erase(active_.begin() + static_cast<ptrdiff_t>(at));
    complete(through);
    if (!options_.early_read_index) give_back_slots();
    return;
  }
}

void PacketProcessor::complete(const Active& active) {
  const bool is_kernel =
      aql::packet_type(active.packet.header()) == aql::PacketType::kernel_dispatch;
  if (is_kernel && kernel_) kernel_(packet_at_end(active), active.index);
  {
    const std::lock_guard lock(mutex_);
    completed_.push_back({.index = active.index, .packet = active.packet});
  }
  // before the signal store, since a waiter may read the count
  completed_count_.fetch_add(1, std::memory_order_release);
  // The completion signal is the last field of every packet format.
  const hsa_signal_t signal =
      aql::packet_as<hsa_kernel_dispatch_packet_t>(active.packet).completion_signal;
  if (signal.handle != 0) {
    auto* const abi = reinterpret_cast<amd_signal_t*>(signal.handle);
    if (options_.times) {
      abi->start_ts = active.start_ticks;
      abi->end_ts = clock_++;
    }
    value(signal).fetch_sub(1,
                            // release: after the kernel's writes and the times
                            std::memory_order_release);
  }
}

hsa_kernel_dispatch_packet_t PacketProcessor::packet_at_end(const Active& active) {
  const auto launched = aql::packet_as<hsa_kernel_dispatch_packet_t>(active.packet);
  if (options_.reads_packet == 0 || launched.kernel_object != options_.reads_packet)
    return launched;
  auto found = aql::packet_as<hsa_kernel_dispatch_packet_t>(double_.slot(active.index));
  // Arguments that no dispatch has, if the slot holds another packet: its kernarg address may be
  // none.
  static uint32_t nothing[16] = {~0u, ~0u};
  if (found.kernel_object != launched.kernel_object) found.kernarg_address = nothing;
  return found;
}

void PacketProcessor::give_back_slots() {
  uint64_t oldest = next_;
  if (!options_.early_read_index) {
    for (const Active& active : active_) oldest = std::min(oldest, active.index);
  }
  oldest -= oldest % options_.read_index_step;
  double_.read_index().store(oldest, std::memory_order_release);
}

}  // namespace uptempo::test
