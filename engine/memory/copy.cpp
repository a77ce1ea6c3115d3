#include "engine/memory/copy.hpp"

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <cstring>

#include "aql/amd_abi.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {

using detail::count;
using detail::CounterBlock;

// A host range made known to the GPU for one copy.
class Copier::Pin {
 public:
  Pin(const Agent& gpu, void* host, size_t bytes) : host_(host) {
    hsa_agent_t agent = gpu.handle();
    check(hsa_amd_memory_lock(host, bytes, &agent, 1, &device_address_), "hsa_amd_memory_lock",
          fmt::format("{} bytes of host memory at {}", bytes, fmt::ptr(host)),
          "pass memory that is mapped and writable, or take PageablePath::staged");
    count(&CounterBlock::pins);
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() {
    hsa_amd_memory_unlock(host_);
    count(&CounterBlock::unpins);
  }
  void* device_address() const noexcept { return device_address_; }

 private:
  void* host_;
  void* device_address_ = nullptr;
};

Copier::Copier(const Agent& gpu)
    : gpu_(gpu),
      host_(find_pool(gpu, MemoryKind::pinned).owner),
      done_(SignalKind::interrupt, 0),
      staging_(gpu, staging_bytes) {}

void Copier::require_equal(size_t destination_bytes, size_t source_bytes) {
  if (destination_bytes == source_bytes) return;
  throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "Copier",
               .asked = fmt::format("a copy of {} bytes", source_bytes),
               .found = fmt::format("a destination of {} bytes", destination_bytes),
               .remedy = "make both the same size, or copy by address and length"});
}

void Copier::start(Direction direction, void* destination, const void* source, size_t bytes,
                   hsa_signal_t done, std::span<const hsa_signal_t> after) {
  const hsa_agent_t destination_agent = direction == Direction::to_host ? host_ : gpu_.handle();
  const hsa_agent_t source_agent = direction == Direction::to_device ? host_ : gpu_.handle();
  check(hsa_amd_memory_async_copy(destination, destination_agent, source, source_agent, bytes,
                                  static_cast<uint32_t>(after.size()), after.empty() ? nullptr : after.data(),
                                  done),
        "hsa_amd_memory_async_copy", fmt::format("{} bytes from {} to {}", bytes, source, destination),
        "pass addresses inside buffers that this GPU may access");
  if (direction == Direction::to_device) count(&CounterBlock::bytes_to_device, bytes);
  if (direction == Direction::to_host) count(&CounterBlock::bytes_to_host, bytes);
}

void Copier::run(Direction direction, void* destination, const void* source, size_t bytes) {
  if (bytes == 0) return;
  hsa_signal_store_relaxed(done_.handle(), 1);
  start(direction, destination, source, bytes, done_.handle(), {});
  hsa_signal_value_t left = 1;
  while (left > 0) {
    hsa_signal_wait_scacquire(done_.handle(), HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
    // An acquire of our own: one inside ROCr, which is not instrumented, is invisible to a thread sanitizer.
    left = aql::load_acquire(done_.handle());
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

void Copier::to_device_pageable(void* destination, const void* source, size_t bytes, PageablePath path) {
  if (bytes == 0) return;
  if (path == PageablePath::pinned_for_once ||
      (path == PageablePath::automatic && bytes > stage_limit_bytes)) {
    // hsa_amd_memory_lock takes no pointer to const; the copy only reads.
    const Pin pin(gpu_, const_cast<void*>(source), bytes);
    run(Direction::to_device, destination, pin.device_address(), bytes);
    count(&CounterBlock::copies_pinned_for_once);
    return;
  }
  for (size_t offset = 0; offset < bytes; offset += staging_bytes) {
    const size_t part = std::min(staging_bytes, bytes - offset);
    std::memcpy(staging_.data(), static_cast<const std::byte*>(source) + offset, part);
    run(Direction::to_device, static_cast<std::byte*>(destination) + offset, staging_.data(), part);
  }
  count(&CounterBlock::bytes_staged, bytes);
  count(&CounterBlock::copies_staged);
}

void Copier::to_host_pageable(void* destination, const void* source, size_t bytes, PageablePath path) {
  if (bytes == 0) return;
  if (path == PageablePath::pinned_for_once ||
      (path == PageablePath::automatic && bytes > stage_limit_bytes)) {
    const Pin pin(gpu_, destination, bytes);
    run(Direction::to_host, pin.device_address(), source, bytes);
    count(&CounterBlock::copies_pinned_for_once);
    return;
  }
  for (size_t offset = 0; offset < bytes; offset += staging_bytes) {
    const size_t part = std::min(staging_bytes, bytes - offset);
    run(Direction::to_host, staging_.data(), static_cast<const std::byte*>(source) + offset, part);
    std::memcpy(static_cast<std::byte*>(destination) + offset, staging_.data(), part);
  }
  count(&CounterBlock::bytes_staged, bytes);
  count(&CounterBlock::copies_staged);
}

void Copier::fill(void* destination, uint32_t value, size_t words) {
  if (words == 0) return;
  check(hsa_amd_memory_fill(destination, value, words), "hsa_amd_memory_fill",
        fmt::format("{} words at {}", words, destination), "pass an address inside a device buffer");
  count(&CounterBlock::fills);
}

void Copier::start_to_device(void* destination, const void* pinned_source, size_t bytes, hsa_signal_t done,
                             std::span<const hsa_signal_t> after) {
  start(Direction::to_device, destination, pinned_source, bytes, done, after);
  count(&CounterBlock::copies_pinned);
}

void Copier::start_to_host(void* pinned_destination, const void* source, size_t bytes, hsa_signal_t done,
                           std::span<const hsa_signal_t> after) {
  start(Direction::to_host, pinned_destination, source, bytes, done, after);
  count(&CounterBlock::copies_pinned);
}

}  // namespace uptempo
