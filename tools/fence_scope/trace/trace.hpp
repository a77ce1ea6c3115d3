// What one run did on the device, over time, as a file for https://ui.perfetto.dev and chrome://tracing: `--trace FILE`.
//
// The JSON is that of the Trace Event Format ("JSON Object Format"). A process for each queue and one for copies. Of a dispatch there are two: a slice (X) of its execution in a lane,
// a thread, and an asynchronous slice (b, e) from submission to end, in a thread behind the lanes; executions that overlap are in lanes of their own, for slices of one thread must nest.
// A dependency is a flow (s, f) between two executions; it ends where the reader begins, and in a barrier-AND or -OR packet, which waits while it executes, where the
// writer ends. One whose reader began before its writer had ended is no flow, which cannot go back in time, but an instant (i) at the reader. Ring occupancy is a counter (C): packets between read and write index. Times are microseconds from the earliest event on, to the nanosecond.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aql/packet.hpp"

namespace uptempo::fence_scope {

// All of one clock, in nanoseconds.
struct TraceRun {
  struct Packet {
    uint32_t queue = 0;
    uint64_t index = 0;  // in its queue
    std::string name{};  // of the step
    std::string type = "kernel_dispatch";
    std::optional<aql::HeaderFlags> flags{};
    std::optional<uint64_t> submit_ns{};  // where it is known
    uint64_t begin_ns = 0, end_ns = 0;
    // Packets and copies that must be complete before this one begins; before it ends, if it is a barrier-AND or -OR packet.
    std::vector<size_t> after_packets{}, after_copies{};
  };
  struct Copy {
    uint32_t engine = 0;
    std::string name{};
    uint64_t bytes = 0;
    std::optional<uint64_t> from{}, to{};  // addresses, where they are known; not part of the file
    uint64_t begin_ns = 0, end_ns = 0;
    std::vector<size_t> after_packets{}, after_copies{};
  };
  // A queue's indices at one moment.
  struct RingSample {
    uint32_t queue = 0;
    uint64_t ns = 0, write_index = 0, read_index = 0;
  };

  std::string device{};     // as reports have it
  bool is_virtual = false;  // "virtual GPU" is then part of every process's name
  std::vector<Packet> packets{};
  std::vector<Copy> copies{};
  std::vector<RingSample> ring{};
};

// Throws std::invalid_argument naming the packet, copy or sample that ends before it begins, is submitted after it begins, depends on what there is not, or has a read
// index beyond its write index.
nlohmann::ordered_json trace_json(const TraceRun& run);
// As a file holds it: what is no UTF-8 in a name is replaced.
std::string trace_text(const nlohmann::ordered_json& trace);

// Adds what packets depend on within their queue: one with the barrier bit on all ahead of it, of which those up to the one before it with a barrier bit follow from that one; one behind a
// barrier-AND or -OR packet on that. HSA System Architecture 1.2, 2.9.1 and 2.9.8.
void add_queue_order(TraceRun& run);

// From the virtual GPU's own trace (`uptempo-vgpu --trace FILE`, JSON lines; tools/vgpu/device/trace.hpp). Doorbells give the moments of submission and ring occupancy; what packets depend on
// is known within queues alone. Lines of other types are left out. Throws support::UsageError naming `file`, the line and what is wrong with it.
TraceRun trace_of_vgpu(std::string_view lines, const std::string& file);

}  // namespace uptempo::fence_scope
