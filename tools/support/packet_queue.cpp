#include "tools/support/packet_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/aql/text.hpp>
#include <uptempo/aql/writer.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/owned.hpp>
#include <uptempo/runtime/ring_access.hpp>
#include <uptempo/runtime/runtime.hpp>
#include <uptempo/runtime/signal.hpp>

namespace uptempo::support {
namespace {

// Longest sleep before the queue's errors are checked again.
constexpr std::chrono::milliseconds kLongestSleep{250};

using OnError = void (*)(hsa_status_t status, hsa_queue_t* queue, void* data);

Owned make_queue(const Agent& gpu, uint32_t packets, OnError on_error, void* data) {
  packets =
      std::clamp(packets, gpu.properties().queue_min_packets, gpu.properties().queue_max_packets);
  hsa_queue_t* queue = nullptr;
  check(hsa_queue_create(gpu.handle(), packets, HSA_QUEUE_TYPE_MULTI, on_error, data, UINT32_MAX,
                         UINT32_MAX, &queue),
        "hsa_queue_create", "a queue for packets", "destroy queues that are no longer used");
  return Owned(Owned::Kind::queue, reinterpret_cast<uint64_t>(queue), [](uint64_t handle) noexcept {
    hsa_queue_destroy(reinterpret_cast<hsa_queue_t*>(handle));
  });
}

hsa_queue_t* handle_of(const Owned& queue) noexcept {
  return reinterpret_cast<hsa_queue_t*>(queue.handle());
}

}  // namespace

struct PacketQueue::State {
  State(const Agent& gpu, uint32_t packets, std::chrono::seconds wait_limit)
      : patience(wait_limit),
        timestamp_hz(gpu.properties().timestamp_hz),
        queue(make_queue(gpu, packets, on_error, this)),
        writer(aql::AqlQueueWriter::borrow(
            handle_of(queue), &error,
            choose_ring_access(handle_of(queue), gpu.properties().pm4_emulation).access)),
        faults(gpu, [this](hsa_status_t status, const std::string& why) { fail(status, why); }) {
    const aql::QueueApertures apertures = aql::apertures(handle_of(queue));
    facts = {.queue_address = reinterpret_cast<uint64_t>(handle_of(queue)),
             .private_aperture_high = apertures.private_segment_high,
             .group_aperture_high = apertures.group_segment_high};
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static void on_error(hsa_status_t status, hsa_queue_t*, void* state) {
    static_cast<State*>(state)->fail(
        status, "the packet processor stopped the queue with " + status_name(status));
  }
  // The unit of hsa_signal_wait_*.
  uint64_t ticks_in(std::chrono::nanoseconds duration) const noexcept {
    return static_cast<uint64_t>(static_cast<double>(duration.count()) * 1e-9 *
                                 static_cast<double>(timestamp_hz));
  }
  void fail(hsa_status_t status, std::string why) {
    const std::lock_guard lock(mutex);
    if (error.load(std::memory_order_relaxed) != HSA_STATUS_SUCCESS) return;
    text = std::move(why);
    error.store(status, std::memory_order_release);
  }
  void require_alive(std::string_view what) {
    const hsa_status_t status = error.load(std::memory_order_acquire);
    if (status == HSA_STATUS_SUCCESS) return;
    const std::lock_guard lock(mutex);
    throw Error({.code = ErrorCode::failed,
                 .status = status,
                 .call = "PacketQueue",
                 .asked = std::string(what),
                 .found = text,
                 .remedy = "check the packets and the addresses that their kernels access"});
  }
  [[noreturn]] void throw_late(std::string_view what) {
    throw Error(
        {.code = ErrorCode::deadline,
         .status = HSA_STATUS_ERROR,
         .call = "PacketQueue",
         .asked = std::string(what),
         .found = "it is not complete, and the device has read no further packet for " +
                  std::to_string(patience.count()) + " s",
         .remedy = "look for a kernel that does not end, or a packet that waits for a later one"});
  }

  const std::chrono::seconds patience;
  const uint64_t timestamp_hz;
  std::mutex mutex;
  std::string text;
  std::atomic<hsa_status_t> error{HSA_STATUS_SUCCESS};
  Signal flushed{SignalKind::interrupt, 0};
  QueueFacts facts;
  Owned queue;  // its error callback uses the members above
  aql::AqlQueueWriter writer;
  MemoryFaultListener faults;
};

PacketQueue::PacketQueue(const Agent& gpu, uint32_t packets, std::chrono::seconds patience)
    : state_(std::make_unique<State>(gpu, packets, patience)) {}
PacketQueue::PacketQueue(PacketQueue&&) noexcept = default;
PacketQueue::~PacketQueue() = default;

uint32_t PacketQueue::ring_size() const noexcept { return state_->writer.ring_size(); }
const void* PacketQueue::ring() const noexcept { return state_->writer.queue()->base_address; }
uint64_t PacketQueue::next_index() const noexcept { return state_->writer.next_index(); }
const QueueFacts& PacketQueue::facts() const noexcept { return state_->facts; }

void PacketQueue::enable_profiling() {
  check(hsa_amd_profiling_set_profiler_enabled(state_->writer.queue(), 1),
        "hsa_amd_profiling_set_profiler_enabled", "time stamps of packets");
}

uint64_t PacketQueue::publish(std::span<const aql::Packet64> packets, std::string_view what) {
  const Deadline deadline = Deadline::after(state_->patience);
  uint64_t doorbells = 0;
  for (size_t done = 0; done < packets.size();) {
    const auto run = packets.subspan(
        done, std::min<size_t>(packets.size() - done, state_->writer.longest_run()));
    const aql::PublishResult result = state_->writer.publish(run, deadline);
    if (!result) {
      state_->require_alive(what);
      throw Error({.code = ErrorCode::ring,
                   .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
                   .call = "PacketQueue::publish",
                   .asked = fmt::format("{} packets after {} others", run.size(), done),
                   .found = aql::describe(result),
                   .remedy = "look for a packet that waits for a later one"});
    }
    doorbells += result.doorbells;
    done += run.size();
  }
  return doorbells;
}

void PacketQueue::wait(hsa_signal_t signal, std::string_view what, std::chrono::nanoseconds spin) {
  using Clock = std::chrono::steady_clock;
  hsa_signal_value_t value = 1;
  if (spin.count() > 0)
    value = hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, state_->ticks_in(spin),
                                      HSA_WAIT_STATE_ACTIVE);
  // Wait in slices: a stopped queue never changes its signals.
  uint64_t read_index = state_->writer.read_index();
  Clock::time_point limit = Clock::now() + state_->patience;
  while (value >= 1) {
    state_->require_alive(what);
    const Clock::time_point now = Clock::now();  // before the index: this thread may lose its core
    if (const uint64_t index = state_->writer.read_index(); index != read_index) {
      read_index = index;
      limit = now + state_->patience;
    } else if (now > limit) {
      state_->throw_late(what);
    }
    value = hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1,
                                      state_->ticks_in(kLongestSleep), HSA_WAIT_STATE_BLOCKED);
  }
  // An acquire of our own: a thread sanitizer does not see the one inside ROCr, which is not
  // instrumented.
  if (aql::load_acquire(signal) < 0)
    throw Error({.code = ErrorCode::failed,
                 .status = HSA_STATUS_ERROR,
                 .call = "hsa_amd_memory_async_copy",
                 .asked = std::string(what),
                 .found = "the copy engine reported a failure",
                 .remedy = "check that both ranges are mapped for this GPU"});
}

void PacketQueue::flush(std::string_view what) {
  const hsa_signal_t done = state_->flushed.handle();
  hsa_signal_store_relaxed(done, 1);
  const aql::Packet64 packet = aql::to_packet(
      aql::BarrierAnd{.flags = {aql::Barrier::on, aql::FenceScope::system, aql::FenceScope::system},
                      .completion_signal = done});
  publish({&packet, 1}, what);
  wait(done, what);
}

}  // namespace uptempo::support
