// One ungated run of a case as a trace: `--trace FILE`.
//
//   hardware     in this process, by the timestamps of dispatches and copies. Each dispatch gets a
//                completion signal for that, which costs time. Packets that only order others have
//                no times and are left out; their waiters inherit their dependencies. Ring
//                occupancy is unknown.
//   virtual GPU  in a process under `uptempo-vgpu --trace`, by the device's records: all packets,
//                copies, doorbells and thereby the ring's occupancy.
//
// A copy that the runtime makes with a kernel uses no copy engine and is left out on the virtual
// GPU.
//
// Thread safety: pure functions, except where noted.
#pragma once

#include <array>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/fence_scope/run/bench.hpp"
#include "tools/fence_scope/sequence/case_message.hpp"
#include "tools/support/device.hpp"
#include "tools/support/trace/trace.hpp"

namespace uptempo::fence_scope {

// Runs the case once and returns the contents of the file (trace_json()).
// Errors: Error; std::runtime_error with the message of a process that failed; OutOfTime if such a
// process does not end within `seconds`.
// Thread safety: one thread at a time.
nlohmann::ordered_json trace_of_case(const support::Device& device, const Case& one,
                                     std::optional<double> seconds = std::nullopt);
// The task of a process under uptempo-vgpu (run_task()). Argument TRACE: the device's trace.
inline constexpr const char* kTraceTask = "--trace-case";
nlohmann::ordered_json trace_case(const Cases& cases, const std::vector<std::string>& arguments);

// The functions below are pure.

// The trace of a run with TimingMode::each. `run` is Bench::run()'s result for these headers.
support::TraceRun trace_of_spans(const Sequence& sequence, const Headers& headers,
                                 const Bench::Run& run);

// The virtual GPU's records, and how to find a run in them.
struct Recorded {
  support::TraceRun lines{};                        // of the whole process (trace_of_vgpu())
  std::array<std::optional<uint32_t>, 2> queues{};  // the device's numbers of the bench's queues
  uint64_t begin_ns = 0, end_ns = 0;  // interval of the run on the device's clock, CLOCK_MONOTONIC
  std::function<std::optional<Bench::Place>(uint64_t address)> place_of;
};
// Throws std::runtime_error naming a packet of the run that the trace lacks.
support::TraceRun trace_of_recorded(const Sequence& sequence, const Bench::Run& run,
                                    const Recorded& recorded);

}  // namespace uptempo::fence_scope
