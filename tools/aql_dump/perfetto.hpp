// The trace of the virtual GPU as a file for https://ui.perfetto.dev and chrome://tracing.
//
// Format: the Trace Event Format ("JSON Object Format").
// - A process for each GPU, a thread for each queue. Slices of a thread must nest, so packets of a
//   queue that execute at the same time are in further threads, its lanes.
// - A slice (X) for each packet and copy, an instant (i) for each doorbell.
// - A flow (s, f) for each dependency within a queue (HSA System Architecture 1.2, 2.9.1 and
//   2.9.8): a packet with the barrier bit depends on all earlier packets since the last one with
//   it, and a packet after a barrier-AND or -OR packet depends on that. The trace does not name
//   signals, so dependencies between queues are unknown. If the dependent packet began too early,
//   an instant at its begin says so.
// - Processes that share a file number their queues alike. If an index of a queue occurs again, the
//   queue is another one, with threads of its own. If the processes ran at the same time, lines of
//   both alternate and nothing tells them apart; such a queue gets no dependencies, and "otherData"
//   names it.
// - Times are microseconds since the earliest event, exact to the nanosecond.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace uptempo::aql_dump {

// `events`: the lines of the trace. `queue`: only this one, or -1 for all.
// Errors: std::runtime_error naming the event, from 1, and what it lacks.
nlohmann::ordered_json perfetto_trace(const std::vector<nlohmann::ordered_json>& events,
                                      int64_t queue);

}  // namespace uptempo::aql_dump
