// HostPin: pins a range of pageable host memory for a GPU (hsa_amd_memory_lock) until the
// destructor. Move-only.
//
// Thread safety: thread-compatible.
// Lifetime: after the end of the Runtime, the destructor does nothing.
// Cost: two system calls, plus time per page. For a single copy, pinning pays off from some MiB.
// counters.hpp counts pins and unpins.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "engine/runtime/agent.hpp"
#include "engine/runtime/session.hpp"

namespace uptempo {

class HostPin {
 public:
  HostPin() = default;
  // Throws Error if the memory is not mapped or not writable.
  HostPin(const Agent& gpu, void* host, size_t bytes);
  HostPin(HostPin&& other) noexcept
      : session_(std::move(other.session_)),
        host_(std::exchange(other.host_, nullptr)),
        device_address_(std::exchange(other.device_address_, nullptr)) {}
  HostPin& operator=(HostPin&& other) noexcept {
    unpin();
    session_ = std::move(other.session_);
    host_ = std::exchange(other.host_, nullptr);
    device_address_ = std::exchange(other.device_address_, nullptr);
    return *this;
  }
  ~HostPin() { unpin(); }

  // Null for a pin that was moved from.
  void* device_address() const noexcept { return device_address_; }
  // Keeps the range pinned until the end of the Runtime, because work in flight may still use it.
  void leave_to_session() noexcept { host_ = nullptr; }

 private:
  void unpin() noexcept;

  std::shared_ptr<Session> session_;
  void* host_ = nullptr;
  void* device_address_ = nullptr;
};

}  // namespace uptempo
