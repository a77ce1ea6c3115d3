#include "engine/runtime/signal.hpp"

#include <hsa/hsa_ext_amd.h>

#include "aql/amd_abi.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {

uint64_t detail::ticks_in(std::chrono::nanoseconds duration) noexcept {
  static const uint64_t hz = [] {
    uint64_t value = 0;
    hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &value);
    return value == 0 ? 1'000'000'000u : value;
  }();
  return static_cast<uint64_t>(static_cast<double>(duration.count()) * 1e-9 * static_cast<double>(hz));
}

Signal::Signal(SignalKind asked, hsa_signal_value_t initial) {
  std::shared_ptr<Session> session = Session::current();
  hsa_signal_t signal{};
  // An event-less signal is one that only GPUs wait on, as ROCr sees it (hsa_ext_amd.cpp:445 at 5.2.3).
  check(hsa_amd_signal_create(initial, 0, nullptr,
                              asked == SignalKind::event_less ? HSA_AMD_SIGNAL_AMD_GPU_ONLY : 0, &signal),
        "hsa_amd_signal_create",
        asked == SignalKind::interrupt ? "an interrupt signal" : "an event-less signal",
        "destroy signals that are no longer used, or make pools smaller");
  owned_ = Owned(std::move(session), Session::Kind::signal, signal.handle,
                 [](uint64_t handle) noexcept { hsa_signal_destroy({handle}); });
  interrupt_ = aql::has_interrupt(signal);
  detail::count(&detail::CounterBlock::signals_created);
}

}  // namespace uptempo
