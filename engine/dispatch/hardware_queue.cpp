#include <uptempo/dispatch/hardware_queue.hpp>

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <list>
#include <new>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/aql/packet.hpp>
#include <uptempo/program/kernel_names.hpp>
#include <uptempo/runtime/amd_extension.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {
namespace {

// Smaller rings are a source of trouble on hardware (ROCm/ROCR-Runtime 348).
constexpr uint32_t kSmallestRing = 256;

// Empty if ROCr does not tell. ROCr 7.0 tells the mask of the queue's creation
// (AqlQueue::SetCUMasking keeps no other).
std::vector<uint32_t> cu_mask_of(const hsa_queue_t* queue, const Agent& agent) {
  std::vector<uint32_t> mask((agent.properties().compute_units + 31) / 32);
  if (hsa_amd_queue_cu_get_mask(queue, static_cast<uint32_t>(32 * mask.size()), mask.data()) !=
      HSA_STATUS_SUCCESS)
    mask.clear();
  return mask;
}

void on_common_queue_error(hsa_status_t status, hsa_queue_t* queue, void* shared) {
  static_cast<SharedHsaQueue*>(shared)->fail(status, stopped_with(status, queue));
}

// The private memory that the packet at the read index needs; empty if it needs none. ROCr leaves a
// packet there for which it finds no memory, and has tried to reserve it for all waves that the GPU
// runs at once, in KiB for each wave (amd_aql_queue.cpp, DynamicScratchHandler).
std::string private_memory_asked(const hsa_queue_t* queue) {
  constexpr uint64_t kLanes = 64, kUnit = 1024;
  const uint64_t index = hsa_queue_load_read_index_scacquire(queue);
  const auto& packet = static_cast<const hsa_kernel_dispatch_packet_t*>(
      queue->base_address)[index & (queue->size - 1)];
  if (aql::packet_type(__atomic_load_n(&packet.header, __ATOMIC_ACQUIRE)) !=
          aql::PacketType::kernel_dispatch ||
      packet.private_segment_size == 0)
    return {};
  const uint64_t per_wave = (packet.private_segment_size * kLanes + kUnit - 1) / kUnit * kUnit;
  const uint64_t waves = aql::wave_slots(queue);
  std::string kernel = KernelNames::of_process().find(packet.kernel_object);
  if (kernel.empty()) kernel = fmt::format("0x{:x}", packet.kernel_object);
  std::string text = fmt::format(
      ": there is not enough private memory (scratch) for packet {}, kernel '{}', which "
      "needs {} bytes per work-item: {} bytes per wave",
      index, kernel, packet.private_segment_size, per_wave);
  if (waves != 0)
    text += fmt::format(", {} bytes for the {} waves that the GPU runs at once", per_wave * waves,
                        waves);
  return text;
}

// A timeline is never freed, so this is safe after the end of its queue.
bool is_complete(const aql::HoldEnd& end) noexcept {
  Timeline& timeline = *static_cast<Timeline*>(end.owner);
  // A stream's packet is published before its epoch begins on the timeline.
  return end.value <= timeline.last_begun() && timeline.has_left_device(end.value);
}

}  // namespace

void enable_profiling(hsa_queue_t* queue) {
  check(hsa_amd_profiling_set_profiler_enabled(queue, 1), "hsa_amd_profiling_set_profiler_enabled",
        "timestamps of packets");
}

struct HardwareQueue::Kept {
  // ROCr's error callback, with a Kept.
  static void on_error_of_queue(hsa_status_t status, hsa_queue_t* queue, void* kept) {
    auto& self = *static_cast<Kept*>(kept);
    const std::lock_guard lock(self.owner_mutex);
    self.has_failed = true;
    if (self.on_error != nullptr) self.on_error(status, queue, self.data);
  }

  // Returns false if ROCr has reported an error.
  bool set_owner(OnError function, void* with) noexcept {
    const std::lock_guard lock(owner_mutex);
    on_error = function;
    data = with;
    return !has_failed;
  }
  bool is_one_of(const Session& of, const Agent& at, uint32_t size) const noexcept {
    return session == &of && agent.handle == at.handle().handle && packets == size;
  }
  // Gives the queue the state of a new one. Returns false if ROCr refuses. The priority comes last,
  // because the driver maps the queue again then: a processor that has mapped it before need not
  // see another value of its properties. A mask that is the new queue's is left alone, because the
  // driver may refuse any mask: for a queue under a debugger, or if HSA_CU_MASK divides a
  // work-group processor.
  bool renew(const Agent& at) {
    if (hsa_amd_profiling_set_profiler_enabled(queue, 1) != HSA_STATUS_SUCCESS) return false;
    if (has_mask || cu_mask_of(queue, at) != cu_mask) {
      // All compute units, of which ROCr takes away what HSA_CU_MASK disables.
      const std::vector<uint32_t> all((at.properties().compute_units + 31) / 32, ~0u);
      const hsa_status_t status =
          hsa_amd_queue_cu_set_mask(queue, static_cast<uint32_t>(32 * all.size()), all.data());
      if (status != HSA_STATUS_SUCCESS && static_cast<int>(status) != HSA_STATUS_CU_MASK_REDUCED)
        return false;
      has_mask = false;
    }
    return hsa_amd_queue_set_priority(queue, HSA_AMD_QUEUE_PRIORITY_NORMAL) == HSA_STATUS_SUCCESS;
  }

  const Session* session = nullptr;
  hsa_agent_t agent{};
  uint32_t packets = 0;
  hsa_queue_t* queue = nullptr;
  RingAccessChoice access;
  std::vector<uint32_t> cu_mask;  // of the new queue
  bool has_mask = false;          // the owner has set another

  // Protected by the mutex of All.
  bool is_listed = false;  // until the session destroys the queue
  bool is_idle = false;
  bool is_stopped = false;

  std::mutex owner_mutex;  // held while the error function runs; protects the members below
  OnError on_error = nullptr;
  void* data = nullptr;
  bool has_failed = false;
};

// Never destroyed, because the session may end after static destructors. The mutex is not held
// during a call of another library, except for stopping a queue, which the session must not destroy
// meanwhile.
struct HardwareQueue::All {
  std::mutex mutex;
  std::list<std::shared_ptr<Kept>> queues;  // the latest to become idle is the first

  static All& of_process() {
    static All* const all = new All;
    return *all;
  }

  void add(std::list<std::shared_ptr<Kept>>& one) noexcept {
    const std::lock_guard lock(mutex);
    one.front()->is_listed = true;
    queues.splice(queues.begin(), one);
  }
  std::shared_ptr<Kept> remove(const Kept* kept) noexcept {
    const std::lock_guard lock(mutex);
    const auto found = std::ranges::find(queues, kept, &std::shared_ptr<Kept>::get);
    if (found == queues.end()) return nullptr;
    std::shared_ptr<Kept> removed = std::move(*found);
    queues.erase(found);
    removed->is_listed = false;
    return removed;
  }
  std::vector<std::shared_ptr<Kept>> idle(const Session& session, const Agent& agent,
                                          uint32_t packets) {
    std::vector<std::shared_ptr<Kept>> found;
    const std::lock_guard lock(mutex);
    for (const std::shared_ptr<Kept>& each : queues)
      if (each->is_idle && each->is_one_of(session, agent, packets)) found.push_back(each);
    return found;
  }
  // Returns false if another thread or the end of the session was faster.
  bool take(Kept& kept) noexcept {
    const std::lock_guard lock(mutex);
    return kept.is_listed && std::exchange(kept.is_idle, false);
  }
  void give_back(Kept& kept) noexcept {
    const std::lock_guard lock(mutex);
    if (!kept.is_listed || kept.is_stopped) return;
    kept.is_idle = true;
    queues.splice(queues.begin(), queues,
                  std::ranges::find(queues, &kept, &std::shared_ptr<Kept>::get));
  }
  void stop(Kept& kept) noexcept {
    const std::lock_guard lock(mutex);
    if (kept.is_listed && !std::exchange(kept.is_stopped, true)) hsa_queue_inactivate(kept.queue);
  }

  static void destroy(uint64_t handle) noexcept {
    // Until ROCr can no longer call its error callback.
    const std::shared_ptr<Kept> kept = of_process().remove(reinterpret_cast<const Kept*>(handle));
    if (kept == nullptr) return;
    has_destroyed_queue.store(true, std::memory_order_relaxed);
    hsa_queue_destroy(kept->queue);
  }
};

HardwareQueue::HardwareQueue(const Agent& agent, uint32_t packets, RingAccessMode wish,
                             OnError on_error, void* data)
    : HardwareQueue() {
  std::shared_ptr<Session> session = Session::current();
  const AgentProperties& limits = agent.properties();
  packets = std::clamp(std::max(packets, kSmallestRing), limits.queue_min_packets,
                       limits.queue_max_packets);
  All& all = All::of_process();
  for (std::shared_ptr<Kept>& each : all.idle(*session, agent, packets)) {
    const RingAccessChoice choice = choose_ring_access(each->queue, limits.pm4_emulation, wish);
    // A tool that counts the packets of a queue itself must have seen all of them.
    if (choice.access != each->access.access || choice.reason != each->access.reason ||
        !all.take(*each))
      continue;
    if (!each->renew(agent) || !each->set_owner(on_error, data)) {
      each->set_owner(nullptr, nullptr);
      all.stop(*each);
      continue;
    }
    session_ = std::move(session);
    kept_ = std::move(each);
    return;
  }

  std::list<std::shared_ptr<Kept>> one;
  const std::shared_ptr<Kept> kept = one.emplace_back(std::make_shared<Kept>());
  kept->session = session.get();
  kept->agent = agent.handle();
  kept->packets = packets;
  kept->set_owner(on_error, data);
  check(hsa_queue_create(agent.handle(), packets, HSA_QUEUE_TYPE_MULTI, &Kept::on_error_of_queue,
                         kept.get(), UINT32_MAX, UINT32_MAX, &kept->queue),
        "hsa_queue_create", fmt::format("a queue of {} packets on agent {}", packets, agent.name()),
        "destroy queues that are no longer used");
  all.add(one);
  try {
    session->adopt(Session::Kind::queue, reinterpret_cast<uint64_t>(kept.get()), &All::destroy);
  } catch (...) {
    (void)all.remove(kept.get());
    throw;
  }
  session_ = std::move(session);
  kept_ = kept;
  kept->cu_mask = cu_mask_of(kept->queue, agent);
  kept->access = choose_ring_access(kept->queue, limits.pm4_emulation, wish);
  // Before the first packet: a processor that has mapped the queue may not see the change. HIP does
  // the same (CLR, rocdevice.cpp). Cost: one more write of the device for a packet with a signal.
  enable_profiling(kept->queue);
}

hsa_queue_t* HardwareQueue::handle() const noexcept { return kept_ ? kept_->queue : nullptr; }

const RingAccessChoice& HardwareQueue::access() const noexcept { return kept_->access; }

void HardwareQueue::note_cu_mask() noexcept {
  if (kept_) kept_->has_mask = true;
}

void HardwareQueue::stop() noexcept {
  if (alive()) All::of_process().stop(*kept_);
}

void HardwareQueue::reset() noexcept {
  if (!kept_) return;
  // The parent's locks may be held for ever.
  if (!Session::is_parents()) {
    if (!kept_->set_owner(nullptr, nullptr)) stop();
    if (alive()) All::of_process().give_back(*kept_);
  }
  kept_.reset();
  session_.reset();
}

void require_several_producers(const hsa_queue_t* queue, const char* call) {
  const auto refuse = [&](const char* found, const char* remedy) {
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_QUEUE,
                 .call = call,
                 .asked = "an HSA queue of the caller's for several threads",
                 .found = found,
                 .remedy = remedy});
  };
  if (queue == nullptr) refuse("a null pointer", "pass a queue that hsa_queue_create has made");
  if (queue->type == HSA_QUEUE_TYPE_SINGLE)
    refuse("one of type HSA_QUEUE_TYPE_SINGLE, which has one producer",
           "create it with HSA_QUEUE_TYPE_MULTI, or use it from one thread with Queue::borrow()");
}

void refuse_beside_others(const char* call, uint64_t next_index, uint64_t visible_write_index) {
  throw Error({.code = ErrorCode::unavailable,
               .status = HSA_STATUS_ERROR_INVALID_QUEUE,
               .call = call,
               .asked = fmt::format("packets at index {}", next_index),
               .found = fmt::format("write index {}: other code publishes to this HSA queue, too",
                                    visible_write_index),
               .remedy = "publish packets of your own with publish_own(), or to another queue"});
}

std::unique_ptr<aql::SlotHolds> make_slot_holds(const hsa_queue_t* queue) {
  const uint64_t read_index = hsa_queue_load_read_index_scacquire(queue);
  return std::make_unique<aql::SlotHolds>(queue->size, read_index, is_complete);
}

std::string stopped_with(hsa_status_t status, const hsa_queue_t* queue) noexcept {
  try {
    std::string text =
        fmt::format("the packet processor stopped the queue with {}", status_name(status));
    return status == HSA_STATUS_ERROR_OUT_OF_RESOURCES ? text + private_memory_asked(queue) : text;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

SharedHsaQueue::SharedHsaQueue(const Agent& agent, uint32_t packets, RingAccessMode access)
    : queue_(agent, packets, access, on_common_queue_error, this) {
  access_reason_ = queue_.access().reason;
  ring_ = std::make_unique<aql::SharedRing>(queue_.handle(), queue_.access().access);
}

SharedHsaQueue::SharedHsaQueue(const Agent& agent, hsa_queue_t* queue,
                               const std::atomic<hsa_status_t>* error, RingAccessMode access)
    : is_borrowed_(true), session_(Session::current()), foreign_error_(error) {
  require_several_producers(queue, "SharedQueue::borrow");
  const RingAccessChoice choice =
      choose_ring_access(queue, agent.properties().pm4_emulation, access);
  access_reason_ = choice.reason;
  ring_ = std::make_unique<aql::SharedRing>(queue, choice.access);
  enable_profiling(queue);  // here, because one thread at a time may do so
}

void SharedHsaQueue::publish_own(const std::function<void(uint64_t room)>& publish) {
  constexpr const char* kCall = "SharedQueue::publish_own";
  if (!is_borrowed_)
    throw Error({.code = ErrorCode::misuse,
                 .status = HSA_STATUS_ERROR_INVALID_QUEUE,
                 .call = kCall,
                 .asked = "packets of the caller's in the HSA queue",
                 .found = "the library created that queue",
                 .remedy = "submit them with BatchSubmitter::raw()"});
  if (foreign_error_ != nullptr) {
    const hsa_status_t status = foreign_error_->load(std::memory_order_acquire);
    if (status != HSA_STATUS_SUCCESS)
      fail(status, "the owner of the borrowed queue reported an error");
  }
  if (const Failure found = failure(); found.status != HSA_STATUS_SUCCESS)
    throw Error({.code = found.code(),
                 .status = found.status,
                 .call = kCall,
                 .asked = "packets of the caller's in the HSA queue",
                 .found = found.text,
                 .remedy = std::string(remedy(found))});
  if (ring_->has_intruder())
    refuse_beside_others(kCall, ring_->claimed(), ring_->visible_write_index());
  const FollowAtEnd<aql::SharedRing> follow{*ring_};
  publish(ring_->free_slots());
}

void SharedHsaQueue::join(Timeline& timeline) {
  const std::lock_guard lock(mutex_);
  timelines_.push_back(&timeline);
  if (failure_.status != HSA_STATUS_SUCCESS) timeline.fail(failure_.status, failure_.text);
}

void SharedHsaQueue::leave(Timeline& timeline) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(timelines_, &timeline);
}

void SharedHsaQueue::fail(hsa_status_t status, std::string text) noexcept {
  const std::lock_guard lock(mutex_);
  for (Timeline* const timeline : timelines_) timeline->fail(status, text);
  if (failure_.status == HSA_STATUS_SUCCESS) failure_ = {status, std::move(text)};
}

Failure SharedHsaQueue::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void SharedHsaQueue::make_holds() {
  const std::lock_guard lock(mutex_);
  if (holds_) return;
  holds_ = make_slot_holds(ring_->queue());
  ring_->use_holds(*holds_);
}

}  // namespace uptempo::detail
