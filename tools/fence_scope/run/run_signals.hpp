// RunSignals: the signals of a run, and the timestamps that the device writes into them. Private to
// Bench.
//
// A step has a signal only if another step or the host waits for it, or if its time is requested.
//
// Thread safety: one owner.
#pragma once

#include <hsa/hsa.h>

#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/signal.hpp>
#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/run/bench.hpp"
#include "tools/fence_scope/run/run_packets.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

class RunSignals {
 public:
  // Enables the timestamps of all later copies of this process for TimingMode::each. Throws Error.
  RunSignals(const Sequence& sequence, TimingMode timing);

  const SignalHandles& handles() const noexcept { return handles_; }
  // Number of steps that have a signal.
  size_t of_steps() const noexcept { return of_steps_.size(); }

  // Sets all of them to 1. No run may be in flight.
  void arm() noexcept;

  // [step]: times of the last run; no value for steps without time, empty without timing. Throws
  // Error.
  std::vector<std::optional<Bench::Span>> spans(const Agent& gpu) const;
  // From the begin of the first timed dispatch to the end of the last one.
  std::optional<double> device_us(const std::vector<std::optional<Bench::Span>>& spans) const;

  // Keeps the signals, because the device may still use them.
  void leave_to_session() noexcept;

 private:
  void need(size_t step, SignalKind kind);

  const Sequence& sequence_;
  const TimingMode timing_;
  Signal gate_{SignalKind::event_less};
  std::array<Signal, 2> closing_;  // [queue]
  std::deque<Signal> of_steps_;
  SignalHandles handles_;
  std::vector<size_t> timed_;  // dispatches
};

}  // namespace uptempo::fence_scope
