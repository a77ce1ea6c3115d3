#include "engine/memory/copy.hpp"

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "aql/amd_abi.hpp"
#include "engine/memory/access.hpp"
#include "engine/memory/host_pin.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"
#include "engine/runtime/session.hpp"
#include "engine/runtime/signal.hpp"

namespace uptempo {

using detail::count;
using detail::CounterBlock;

namespace {

// ROCr 5.2.3 fills whatever it is told to: its kernel then faults, which ends the process.
void require_words(const void* memory, size_t words) {
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  check(hsa_amd_pointer_info(const_cast<void*>(memory), &info, nullptr, nullptr, nullptr),
        "hsa_amd_pointer_info", [&] { return fmt::format("the allocation at {}", memory); });
  const size_t offset =
      reinterpret_cast<uintptr_t>(memory) - reinterpret_cast<uintptr_t>(info.agentBaseAddress);
  // Not an address of the agent in memory that ROCr knows: hsa_amd_memory_fill refuses it.
  if (info.type == HSA_EXT_POINTER_TYPE_UNKNOWN || offset >= info.sizeInBytes) return;
  const size_t room = info.sizeInBytes - offset;
  if (words <= room / sizeof(uint32_t)) return;
  throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "Copier::fill",
               .asked = fmt::format("{} words at {}", words, memory),
               .found = fmt::format("the allocation ends {} bytes after that address", room),
               .remedy = "fill within one allocation"});
}

}  // namespace

// Resources of a copy in flight, and the memory faults of its agent.
struct Copier::Work {
  explicit Work(const Agent& gpu) : done(SignalKind::interrupt, 0), staging(gpu, kStagingBytes) {
    listener = session->listen([this, agent = gpu.handle()](const Session::MemoryFault& fault) {
      if (fault.agent.handle != agent.handle) return false;
      const std::lock_guard lock(mutex);
      if (!has_faulted) {
        has_faulted = true;
        fault_status = fault.status;
        try {
          fault_text = fault.text;
        } catch (const std::bad_alloc&) {  // the fault matters more than its description
        }
      }
      return running || fault.status == fault.kLost;
    });
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() {
    session->stop_listening(listener);
    if (!lost) return;
    done.leave_to_session();
    staging.leave_to_session();
  }

  // While an object exists, memory faults of the agent are claimed.
  class Running {
   public:
    explicit Running(Work& work) : work_(work) { set(true); }
    ~Running() { set(false); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    void set(bool value) {
      const std::lock_guard lock(work_.mutex);
      work_.running = value;
    }
    Work& work_;
  };

  bool faulted() {
    const std::lock_guard lock(mutex);
    return has_faulted;
  }
  [[noreturn]] void throw_fault(const void* destination, const void* source, size_t bytes) {
    const std::lock_guard lock(mutex);
    throw Error({.status = fault_status,
                 .call = "Copier",
                 .asked = fmt::format("{} bytes from {} to {}", bytes, source, destination),
                 .found = fault_text,
                 .remedy = std::string(Session::MemoryFault::remedy(fault_status))});
  }

  const std::shared_ptr<Session> session = Session::current();
  Signal done;
  PinnedBuffer<std::byte> staging;
  uint64_t listener = 0;
  bool lost = false;  // an unfinished copy may still use signal and staging buffer

  std::mutex mutex;
  bool running = false;
  bool has_faulted = false;  // a memory fault of the agent
  std::string fault_text;
  hsa_status_t fault_status = Session::MemoryFault::kStatus;
};

Copier::Copier(const Agent& gpu)
    : gpu_(gpu),
      host_(find_pool(gpu, MemoryKind::pinned).owner),
      work_(std::make_unique<Work>(gpu)) {}

Copier::Copier(Copier&&) noexcept = default;
Copier& Copier::operator=(Copier&&) noexcept = default;
Copier::~Copier() = default;

Copier::Work& Copier::work() const {
  if (work_ && work_->session->alive()) return *work_;
  if (work_)
    Session::refuse_ended("Copier", "a copy or fill", "the memory and signal of the Copier",
                          "make a new Runtime and a new Copier");
  throw Error({.status = HSA_STATUS_ERROR_NOT_INITIALIZED,
               .call = "Copier",
               .asked = "a copy or fill",
               .found = "this Copier was moved from",
               .remedy = "use the Copier that it was moved to, or assign another one to it first"});
}

void Copier::require_equal(size_t destination_bytes, size_t source_bytes) {
  if (destination_bytes == source_bytes) return;
  throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "Copier",
               .asked = fmt::format("a copy of {} bytes", source_bytes),
               .found = fmt::format("a destination of {} bytes", destination_bytes),
               .remedy = "make both the same size, or copy by address and length"});
}

void Copier::require_reach(const void* memory, hsa_agent_t owner, size_t bytes) const {
  if (!has_access(gpu_, memory))
    detail::refuse_access(gpu_, memory, owner, "Copier",
                          fmt::format("a copy of {} bytes by {}", bytes, name_and_node(gpu_)));
}

void Copier::start(Direction direction, void* destination, const void* source, size_t bytes,
                   hsa_signal_t done, std::span<const hsa_signal_t> after) {
  Work& mine = work();
  if (mine.faulted()) mine.throw_fault(destination, source, bytes);
  const hsa_agent_t destination_agent = direction == Direction::to_host ? host_ : gpu_.handle();
  const hsa_agent_t source_agent = direction == Direction::to_device ? host_ : gpu_.handle();
  check(
      hsa_amd_memory_async_copy(destination, destination_agent, source, source_agent, bytes,
                                static_cast<uint32_t>(after.size()),
                                after.empty() ? nullptr : after.data(), done),
      "hsa_amd_memory_async_copy",
      [&] { return fmt::format("{} bytes from {} to {}", bytes, source, destination); },
      "pass addresses inside buffers that this GPU may access");
  if (direction == Direction::to_device) count(&CounterBlock::bytes_to_device, bytes);
  if (direction == Direction::to_host) count(&CounterBlock::bytes_to_host, bytes);
}

void Copier::run(Direction direction, void* destination, const void* source, size_t bytes) {
  if (bytes == 0) return;
  Work& mine = work();
  const hsa_signal_t done = mine.done.handle();
  const Work::Running running(mine);
  hsa_signal_store_relaxed(done, 1);
  start(direction, destination, source, bytes, done, {});
  hsa_signal_value_t left = 1;
  for (bool faulted = false; left > 0;) {
    if (faulted) {
      mine.lost = true;
      mine.throw_fault(destination, source, bytes);
    }
    // In slices, because a copy that has faulted never touches its signal.
    hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1,
                              detail::ticks_in(detail::kLongestSleep), HSA_WAIT_STATE_BLOCKED);
    // Before the last check: a copy that completed despite the fault is complete.
    faulted = mine.faulted();
    // Our own acquire: ROCr is not instrumented, so ThreadSanitizer cannot see an acquire inside
    // it.
    left = aql::load_acquire(done);
  }
  if (left < 0) {  // hsa_ext_amd.h, hsa_amd_memory_async_copy: a negative value means failure
    throw Error({.status = HSA_STATUS_ERROR,
                 .call = "hsa_amd_memory_async_copy",
                 .asked = fmt::format("{} bytes from {} to {}", bytes, source, destination),
                 .found = "the copy engine reported a failure",
                 .remedy = "check that both ranges are mapped for this GPU"});
  }
}

void Copier::to_device(void* destination, const void* pinned_source, size_t bytes) {
  run(Direction::to_device, destination, pinned_source, bytes);
  count(&CounterBlock::copies_pinned);
}

void Copier::to_host(void* pinned_destination, const void* source, size_t bytes) {
  run(Direction::to_host, pinned_destination, source, bytes);
  count(&CounterBlock::copies_pinned);
}

void Copier::on_device(void* destination, const void* source, size_t bytes) {
  run(Direction::on_device, destination, source, bytes);
  count(&CounterBlock::copies_on_device);
}

void Copier::to_device_pageable(void* destination, const void* source, size_t bytes,
                                PageablePath path) {
  if (bytes == 0) return;
  std::byte* const staging = work().staging.data();
  if (path == PageablePath::pinned_for_once ||
      (path == PageablePath::automatic && bytes > kStageLimitBytes)) {
    // hsa_amd_memory_lock takes no pointer to const; the copy only reads.
    const HostPin pin(gpu_, const_cast<void*>(source), bytes);
    run(Direction::to_device, destination, pin.device_address(), bytes);
    count(&CounterBlock::copies_pinned_for_once);
    return;
  }
  for (size_t offset = 0; offset < bytes; offset += kStagingBytes) {
    const size_t part = std::min(kStagingBytes, bytes - offset);
    std::memcpy(staging, static_cast<const std::byte*>(source) + offset, part);
    run(Direction::to_device, static_cast<std::byte*>(destination) + offset, staging, part);
  }
  count(&CounterBlock::bytes_staged, bytes);
  count(&CounterBlock::copies_staged);
}

void Copier::to_host_pageable(void* destination, const void* source, size_t bytes,
                              PageablePath path) {
  if (bytes == 0) return;
  std::byte* const staging = work().staging.data();
  if (path == PageablePath::pinned_for_once ||
      (path == PageablePath::automatic && bytes > kStageLimitBytes)) {
    const HostPin pin(gpu_, destination, bytes);
    run(Direction::to_host, pin.device_address(), source, bytes);
    count(&CounterBlock::copies_pinned_for_once);
    return;
  }
  for (size_t offset = 0; offset < bytes; offset += kStagingBytes) {
    const size_t part = std::min(kStagingBytes, bytes - offset);
    run(Direction::to_host, staging, static_cast<const std::byte*>(source) + offset, part);
    std::memcpy(static_cast<std::byte*>(destination) + offset, staging, part);
  }
  count(&CounterBlock::bytes_staged, bytes);
  count(&CounterBlock::copies_staged);
}

void Copier::fill(void* destination, uint32_t value, size_t words) {
  if (words == 0) return;
  if (Work& mine = work(); mine.faulted())
    mine.throw_fault(destination, &value, words * sizeof(value));
  require_words(destination, words);
  check(
      hsa_amd_memory_fill(destination, value, words), "hsa_amd_memory_fill",
      [&] { return fmt::format("{} words at {}", words, destination); },
      "pass an address inside a device buffer");
  count(&CounterBlock::fills);
}

void Copier::start_to_device(void* destination, const void* pinned_source, size_t bytes,
                             hsa_signal_t done, std::span<const hsa_signal_t> after) {
  start(Direction::to_device, destination, pinned_source, bytes, done, after);
  count(&CounterBlock::copies_pinned);
}

void Copier::start_to_host(void* pinned_destination, const void* source, size_t bytes,
                           hsa_signal_t done, std::span<const hsa_signal_t> after) {
  start(Direction::to_host, pinned_destination, source, bytes, done, after);
  count(&CounterBlock::copies_pinned);
}

}  // namespace uptempo
