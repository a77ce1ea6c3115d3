// A range of pageable host memory made known to a GPU (hsa_amd_memory_lock), until the destructor. Move-only.
//
// Cost: two system calls, and time by the page; for one copy it pays from some MiB on. Pins and unpins are counted (counters.hpp).
// Thread safety: as an int. After the end of the Runtime nothing is done.
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
  // Throws Error where memory is not mapped, or not writable.
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
  // It stays pinned until the end of the Runtime: something in flight may still use it.
  void leave_to_session() noexcept { host_ = nullptr; }

 private:
  void unpin() noexcept;

  std::shared_ptr<Session> session_;
  void* host_ = nullptr;
  void* device_address_ = nullptr;
};

}  // namespace uptempo
