#include <uptempo/runtime/signal.hpp>

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <cstdlib>
#include <cstring>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo {
namespace {

void destroy(uint64_t handle) noexcept { hsa_signal_destroy({handle}); }

void destroy_interrupt(uint64_t handle) noexcept {
  destroy(handle);
  detail::release_interrupt();
}

hsa_signal_t create(hsa_signal_value_t initial, SignalKind kind) {
  hsa_signal_t signal{};
  // ROCr treats a signal that only GPUs wait on as event-less (hsa_ext_amd.cpp:445 at 5.2.3).
  check(hsa_amd_signal_create(initial, 0, nullptr,
                              kind == SignalKind::event_less ? HSA_AMD_SIGNAL_AMD_GPU_ONLY : 0,
                              &signal),
        "hsa_amd_signal_create",
        kind == SignalKind::interrupt ? "an interrupt signal" : "an event-less signal",
        "destroy unused signals, or make pools smaller");
  return signal;
}

[[noreturn]] void refuse(const char* what_ran_out) {
  const SignalUse use = signal_use();
  throw Error({.code = ErrorCode::signals,
               .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
               .call = "Signal",
               .asked = "an interrupt signal",
               .found = fmt::format(
                   "{}: {} interrupt signals of {} are in use, its budget is {}, and the "
                   "driver has 4095 events for the process, ROCr's own included",
                   what_ran_out, use.in_use,
                   use.copies == 1
                       ? std::string("this library")
                       : fmt::format("the {} copies of this library in the process", use.copies),
                   use.budget),
               .remedy =
                   "lower QueueOptions::publications, destroy unused queues and signals, raise "
                   "SignalBudget::interrupts, or allow signals without event "
                   "(SignalBudget::event_less_beyond)"});
}

}  // namespace

bool detail::events_in_use() noexcept {
  const char* const variable = std::getenv("HSA_ENABLE_INTERRUPT");
  return variable == nullptr || std::strcmp(variable, "0") != 0;
}

uint64_t detail::ticks_in(std::chrono::nanoseconds duration) noexcept {
  static const uint64_t hz = [] {
    uint64_t value = 0;
    hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &value);
    return value == 0 ? 1'000'000'000u : value;
  }();
  return static_cast<uint64_t>(static_cast<double>(duration.count()) * 1e-9 *
                               static_cast<double>(hz));
}

Signal::Signal(SignalKind asked, hsa_signal_value_t initial)
    : state_(std::make_shared<detail::SignalState>()) {
  std::shared_ptr<Session> session = Session::current();
  const bool may_replace = signal_budget().event_less_beyond || !detail::events_in_use();
  bool has_place = asked == SignalKind::interrupt && detail::reserve_interrupt();
  if (asked == SignalKind::interrupt && !has_place && !may_replace) refuse("the budget is used up");
  hsa_signal_t signal{};
  try {
    signal = create(initial, has_place ? SignalKind::interrupt : SignalKind::event_less);
  } catch (...) {
    if (has_place) detail::release_interrupt();
    throw;
  }
  interrupt_ = aql::has_interrupt(signal);
  if (has_place && !interrupt_) {
    detail::release_interrupt();
    has_place = false;
    if (!may_replace) {
      destroy(signal.handle);
      refuse("the driver has no event left");
    }
  }
  state_->owned = Owned(std::move(session), Session::Kind::signal, signal.handle,
                        has_place ? &destroy_interrupt : &destroy);
  detail::count(&detail::CounterBlock::signals_created);
}

}  // namespace uptempo
