#include "tools/fence_scope/run/run_signals.hpp"

#include <hsa/hsa_ext_amd.h>

#include <algorithm>

#include <uptempo/runtime/error.hpp>

namespace uptempo::fence_scope {

RunSignals::RunSignals(const Sequence& sequence, TimingMode timing)
    : sequence_(sequence), timing_(timing) {
  handles_.gate = gate_.handle();
  for (const uint32_t queue : kQueues) handles_.closing[queue] = closing_[queue].handle();
  handles_.of_step.resize(sequence.steps.size());
  for (const Step& step : sequence.steps)
    for (const size_t waited : step.after) need(waited, SignalKind::event_less);
  for (size_t i = 0; i < sequence.steps.size(); ++i)
    if (sequence.steps[i].kind == Step::Kind::copy) need(i, SignalKind::interrupt);
  if (timing == TimingMode::none) return;
  for (const uint32_t queue : kQueues) {
    const std::vector<size_t> steps = sequence.dispatches(queue);
    for (const size_t step : steps)
      if (timing == TimingMode::each || step == steps.front() || step == steps.back()) {
        need(step, SignalKind::event_less);
        timed_.push_back(step);
      }
  }
  if (timing == TimingMode::each)
    check(hsa_amd_profiling_async_copy_enable(true), "hsa_amd_profiling_async_copy_enable",
          "time stamps of copies");
}

void RunSignals::need(size_t step, SignalKind kind) {
  // the host also waits for it
  if (sequence_.steps[step].kind == Step::Kind::copy) kind = SignalKind::interrupt;
  hsa_signal_t& handle = handles_.of_step[step];
  if (handle.handle == 0) handle = of_steps_.emplace_back(kind).handle();
}

void RunSignals::arm() noexcept {
  for (const Signal& signal : of_steps_) hsa_signal_store_relaxed(signal.handle(), 1);
  for (const Signal& signal : closing_) hsa_signal_store_relaxed(signal.handle(), 1);
  hsa_signal_store_screlease(gate_.handle(), 1);
}

std::vector<std::optional<Bench::Span>> RunSignals::spans(const Agent& gpu) const {
  std::vector<std::optional<Bench::Span>> all;
  if (timing_ == TimingMode::none) return all;
  all.resize(sequence_.steps.size());
  for (const size_t step : timed_) {
    hsa_amd_profiling_dispatch_time_t time{};
    check(hsa_amd_profiling_get_dispatch_time(gpu.handle(), handles_.of_step[step], &time),
          "hsa_amd_profiling_get_dispatch_time", sequence_.steps[step].name);
    all[step] = {time.start, time.end};
  }
  if (timing_ != TimingMode::each) return all;
  for (size_t step = 0; step < all.size(); ++step) {
    if (sequence_.steps[step].kind != Step::Kind::copy) continue;
    hsa_amd_profiling_async_copy_time_t time{};
    check(hsa_amd_profiling_get_async_copy_time(handles_.of_step[step], &time),
          "hsa_amd_profiling_get_async_copy_time", sequence_.steps[step].name);
    all[step] = {time.start, time.end};
  }
  return all;
}

std::optional<double> RunSignals::device_us(
    const std::vector<std::optional<Bench::Span>>& spans) const {
  if (timed_.empty()) return std::nullopt;
  uint64_t first = UINT64_MAX, last = 0;
  for (const size_t step : timed_) {
    first = std::min(first, spans[step]->begin_ns);
    last = std::max(last, spans[step]->end_ns);
  }
  return static_cast<double>(last - first) / 1e3;
}

void RunSignals::leave_to_session() noexcept {
  gate_.leave_to_session();
  for (Signal& signal : of_steps_) signal.leave_to_session();
  for (Signal& signal : closing_) signal.leave_to_session();
}

}  // namespace uptempo::fence_scope
