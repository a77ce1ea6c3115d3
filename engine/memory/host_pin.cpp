#include "engine/memory/host_pin.hpp"

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {

HostPin::HostPin(const Agent& gpu, void* host, size_t bytes) : session_(Session::current()) {
  hsa_agent_t agent = gpu.handle();
  check(
      hsa_amd_memory_lock(host, bytes, &agent, 1, &device_address_), "hsa_amd_memory_lock",
      [&] { return fmt::format("{} bytes of host memory at {}", bytes, fmt::ptr(host)); },
      "pass memory that is mapped and writable, or use PageablePath::staged");
  host_ = host;
  detail::count(&detail::CounterBlock::pins);
}

void HostPin::unpin() noexcept {
  void* const host = std::exchange(host_, nullptr);
  if (host == nullptr || !session_->alive()) return;
  hsa_amd_memory_unlock(host);
  detail::count(&detail::CounterBlock::unpins);
}

}  // namespace uptempo
