#include <uptempo/memory/host_pin.hpp>

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {

HostPin::HostPin(const Agent& gpu, void* host, size_t bytes)
    : host_(nullptr, Unpin{Session::current()}) {
  hsa_agent_t agent = gpu.handle();
  check(
      hsa_amd_memory_lock(host, bytes, &agent, 1, &device_address_), "hsa_amd_memory_lock",
      [&] { return fmt::format("{} bytes of host memory at {}", bytes, fmt::ptr(host)); },
      "pass memory that is mapped and writable, or raise CopyLimits::stage_bytes");
  host_.reset(host);
  detail::count(&detail::CounterBlock::pins);
}

void HostPin::Unpin::operator()(void* host) const noexcept {
  if (!session->alive()) return;
  hsa_amd_memory_unlock(host);
  detail::count(&detail::CounterBlock::unpins);
}

}  // namespace uptempo
