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

#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo {

class HostPin {
 public:
  HostPin() = default;
  // Throws Error if the memory is not mapped or not writable.
  HostPin(const Agent& gpu, void* host, size_t bytes);

  // Null for a pin that was moved from.
  void* device_address() const noexcept { return host_ ? device_address_ : nullptr; }
  // Keeps the range pinned until the end of the Runtime, because work in flight may still use it.
  void leave_to_session() noexcept { (void)host_.release(); }

 private:
  struct Unpin {
    std::shared_ptr<Session> session;
    void operator()(void* host) const noexcept;
  };
  std::unique_ptr<void, Unpin> host_;
  void* device_address_ = nullptr;
};

}  // namespace uptempo
