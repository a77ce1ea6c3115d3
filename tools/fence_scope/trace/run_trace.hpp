// One run of a case, ungated, as a trace: `--trace FILE`.
//
//   hardware     in this process, by the timestamps of dispatches and copies: each dispatch has a completion signal for it, which costs time of its own. Packets that only
//                order others have no times and are left out; who waited for them waited for what they waited for. Nobody knows how full the ring was.
//   virtual GPU  in a process under `uptempo-vgpu --trace`, by what the device records: all packets, copies, doorbells and with them the ring's occupancy.
//
// A copy that the runtime makes with a kernel of its own is no copy engine's, and is left out on the virtual GPU.
//
// Thread safety: as said at each.
#pragma once

#include <array>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "tools/fence_scope/run/bench.hpp"
#include "tools/fence_scope/sequence/case_message.hpp"
#include "tools/fence_scope/trace/trace.hpp"
#include "tools/support/device.hpp"

namespace uptempo::fence_scope {

// Carries the case out once and returns the file's content (trace_json()). Throws Error, and std::runtime_error with the words of a process that failed. One thread at a time.
nlohmann::ordered_json trace_of_case(const support::Device& device, const Case& one);
// Null: this process is none that trace_of_case() has started.
std::optional<int> run_trace_process(int argc, char** argv);

// What follows is pure.

// By a run with TimingMode::each; `run` as Bench::run() returned it for these headers.
TraceRun trace_of_spans(const Sequence& sequence, const Headers& headers, const Bench::Run& run);

// What the virtual GPU has recorded, and how to find a run in it.
struct Recorded {
  TraceRun lines{};                                 // of the whole process (trace_of_vgpu())
  std::array<std::optional<uint32_t>, 2> queues{};  // as it calls the bench's
  uint64_t begin_ns = 0, end_ns = 0;                // of the run, by its clock: CLOCK_MONOTONIC
  std::function<std::optional<Bench::Place>(uint64_t address)> place_of;
};
// Throws std::runtime_error naming a packet of the run that is not there.
TraceRun trace_of_recorded(const Sequence& sequence, const Bench::Run& run, const Recorded& recorded);

}  // namespace uptempo::fence_scope
