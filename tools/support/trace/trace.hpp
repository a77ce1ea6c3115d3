// The timeline of packets and copies on a device, as a file for https://ui.perfetto.dev and
// chrome://tracing.
//
// Format: the Trace Event Format ("JSON Object Format").
// - A process for each queue, and one for copies; of each GPU, if there are several.
// - For each packet a slice (X) of its execution in a lane, which is a thread, and an asynchronous
//   slice (b, e) from submission to end, in a thread after the lanes. Slices of one thread must
//   nest, so overlapping executions are in separate lanes.
// - For each dependency a flow (s, f) between two executions. It ends where the reader begins or,
//   in a barrier-AND or -OR packet, which waits while it executes, where the writer ends. A flow
//   cannot go back in time: if the reader began before the writer ended, it is an instant (i) at
//   the reader.
// - For each doorbell an instant (i). For ring occupancy a counter (C): packets between read and
//   write index.
// - Times are microseconds since the earliest event, exact to the nanosecond.
//
// Thread safety: pure functions.
#pragma once

#include <compare>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <uptempo/aql/packet.hpp>

namespace uptempo::support {

// All times are nanoseconds of one clock.
struct TraceRun {
  struct Queue {
    constexpr Queue(uint32_t queue_number = 0) noexcept : number(queue_number) {}
    uint32_t gpu = 0, number = 0;
    // Processes that share a file number their queues alike.
    uint32_t process = 0;
    friend auto operator<=>(const Queue&, const Queue&) = default;
  };
  struct Packet {
    Queue queue{};
    uint64_t index = 0;  // index in its queue
    std::string name{};  // name of the step
    std::string type = "kernel_dispatch";
    std::optional<aql::HeaderFlags> flags{};
    std::optional<uint64_t> submit_ns{};  // if known
    uint64_t begin_ns = 0, end_ns = 0;
    // Packets and copies that must be complete before this packet begins; before it ends, if it is
    // a barrier-AND or -OR packet.
    std::vector<size_t> after_packets{}, after_copies{};
    nlohmann::ordered_json details{};  // further entries of the file; an object, or null
  };
  struct Copy {
    uint32_t gpu = 0, engine = 0;
    std::string name{};
    uint64_t bytes = 0;
    std::optional<uint64_t> from{}, to{};  // addresses, if known; not part of the file
    uint64_t begin_ns = 0, end_ns = 0;
    std::vector<size_t> after_packets{}, after_copies{};
    nlohmann::ordered_json details{};  // as of a packet
  };
  // A queue's indices at one moment.
  struct RingSample {
    Queue queue{};
    uint64_t ns = 0, write_index = 0, read_index = 0;
  };
  struct Doorbell {
    Queue queue{};
    uint64_t ns = 0;
    int64_t value = 0;
  };

  std::string device{};     // name in reports
  bool is_virtual = false;  // adds "virtual GPU" to every process's name
  std::vector<Packet> packets{};
  std::vector<Copy> copies{};
  std::vector<RingSample> ring{};
  std::vector<Doorbell> doorbells{};
  // Queues in which packets of several processes cannot be told apart. They have no dependencies.
  std::set<Queue> mixed{};
};

// Throws std::invalid_argument naming a packet, copy or sample that ends before it begins, is
// submitted after it begins, has an unknown dependency, or has a read index beyond its write index.
nlohmann::ordered_json trace_json(const TraceRun& run);
// The text of the file. Replaces bytes of names that are not UTF-8.
std::string trace_text(const nlohmann::ordered_json& trace);

// Adds the dependencies within a queue (HSA System Architecture 1.2, 2.9.1 and 2.9.8). A packet
// with the barrier bit depends on all earlier ones; those up to the previous packet with a barrier
// bit follow from that packet. A packet after a barrier-AND or -OR packet depends on it.
void add_queue_order(TraceRun& run);

// Reads the virtual GPU's trace (`uptempo-vgpu --trace FILE`, JSON lines;
// tools/vgpu/device/trace.hpp), of all queues or of those of one number. Doorbells give times of
// submission and ring occupancy. The trace names no signals, so dependencies are known within
// queues only. If an index of a queue occurs again, another process has written it, and its queue
// is another one; if the two ran at the same time, lines of both alternate and nothing tells them
// apart.
// Errors: std::runtime_error naming `file`, the line and the reason.
TraceRun trace_of_vgpu(std::string_view lines, const std::string& file,
                       std::optional<uint64_t> queue = std::nullopt);

}  // namespace uptempo::support
