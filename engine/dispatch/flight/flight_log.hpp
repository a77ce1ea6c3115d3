// FlightLog: what a queue's flight recorder and ring say at one moment, as text.
// Private to engine/dispatch, engine/stream and their tests.
//
// A snapshot: other threads and the packet processor go on meanwhile, so two lines may be of
// different moments, some microseconds apart. Each line alone is true, and what is not known is
// said to be so. A slot holds the packet of its index if, after a look at it, no later packet has
// been claimed for the slot: a producer begins a record, or moves a shared index, before it writes.
//
// States come from the timeline: a submission is complete when its value is. Packets below the read
// index were taken by the packet processor and may run or be complete. Only packets that wait for
// one another (barrier bit) run one at a time; the last one taken is then the one that runs. A
// processor that frees a slot only when its packet is complete runs the one at the read index.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/aql/writer.hpp>
#include <uptempo/completion/timeline.hpp>
#include <uptempo/dispatch/flight/flight_recorder.hpp>

namespace uptempo::detail {

// Consecutive packets that differ at most in their kernel arguments.
struct FlightPackets {
  enum class Content : uint8_t {
    whole,        // everything is known
    headless,     // the packet processor has taken it, and no record holds its header
    overwritten,  // by later packets
    unpublished,  // not in the ring yet
    unread,       // in device memory, which a lost GPU may not have any more
  };
  uint64_t first = 0, count = 1;
  Content content = Content::overwritten;
  aql::Packet64 packet{};
  std::string kernel{};  // of a dispatch: its name, or its address in hexadecimal
};

enum class FlightState : uint8_t { complete, running, waiting, failed };

struct FlightSubmission {
  FlightRecorder::Entry entry;
  FlightState state = FlightState::waiting;
  std::optional<hsa_signal_value_t> signal{};  // value of its completion signal
  std::vector<FlightPackets> packets{};        // of those that were asked for
};

struct FlightLog {
  static constexpr size_t kLast = 63;

  uint64_t queue = 0;
  std::string agent;  // name; empty: none
  uint32_t ring_size = 0;
  uint64_t read_index = 0, write_index = 0;
  uint64_t submissions = 0;  // in the life of the queue
  uint64_t last_value = 0;   // of the timeline
  std::optional<Failure> failure{};
  // Oldest first: those that may run, and the last kLast; of `unfinished`, those that may run.
  std::vector<FlightSubmission> last{};
  std::vector<FlightPackets> unrecorded{};  // packets in the ring of which no record is left

  // Lines for a person, as of a describe() function.
  std::string text() const;
  // The first unfinished submission in one sentence part; empty if none is known. Names several if
  // each of them may be the one that runs or has failed. Requires a log of `unfinished`.
  std::string first_unfinished() const;
};

// The sources of a log. The timeline, the writer's queue and the recorder must stay alive.
struct FlightSource {
  const FlightRecorder& records;
  const aql::AqlQueueWriter& writer;
  Timeline& timeline;
  hsa_agent_t agent{};
  std::string agent_name{};

  // One past the last packet that may be written to the ring already.
  uint64_t claimed() const noexcept;
};

enum class FlightScope : uint8_t {
  all,
  // The first unfinished submission, with an epoch's others that may run, and of them the packets
  // around the read index. Calls nothing of HSA that waits and takes no lock of the timeline, so a
  // failing timeline may ask.
  unfinished,
};
FlightLog read_flight_log(const FlightSource& source, FlightScope scope);

}  // namespace uptempo::detail
