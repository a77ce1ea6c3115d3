// Runs a sequence on a GPU with any headers, and times it.
//
// Before each run, untimed: the host writes the buffers' initial bytes, and all earlier work is
// complete and written back. Kernels then fill and read other bytes of the same buffers into the
// caches, so that a missing acquire shows at the first dispatch as at later ones. Kernargs are
// written at construction.
//
// Packets: each queue receives its dispatches in order. A barrier-AND packet without fences
// precedes a dispatch that waits for others. A closing barrier-AND packet without fences, with
// barrier bit and completion signal, follows the last dispatch, and the host waits for it. A run
// therefore ends when everything is complete, for any headers. The closing packet makes nothing
// visible: the host reads the right results only if dispatches have released them. The caller
// chooses all headers, including the last.
//
// Results: all bytes of all buffers, read when the run has ended, and compared with a reference run
// that is made at construction: one step at a time, with system scopes, and a host wait for each.
//
// Thread safety: one owner.
// Lifetime: within that of the Runtime.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <uptempo/runtime/agent.hpp>
#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

enum class Release : uint8_t {
  // everything is queued after a barrier packet on a host signal; the time begins when that signal
  // is released
  gated,
  ungated  // the time begins before the first packet is written
};

class Bench {
 public:
  // Calls `before_step` before each step of the reference run. An exception of it ends the
  // construction and reaches the caller.
  // Errors: Error; support::UsageError (SequenceError) for a sequence that this device cannot run.
  Bench(const Agent& gpu, Sequence sequence, TimingMode timing = TimingMode::none,
        const std::function<void()>& before_step = {});
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  const Sequence& sequence() const noexcept;
  // The choice of plan() of sequence.hpp for this device.
  const PlannedHeaders& plan() const noexcept;

  // The contents of a buffer after the reference run.
  const std::vector<std::byte>& reference(size_t buffer) const noexcept;

  // A packet of a run, and where it was published.
  struct Packet {
    static constexpr size_t kNoStep = ~size_t{0};
    enum class Role : uint8_t { gate, waits, dispatch, closing } role;
    uint32_t queue;
    // its step, or the step that it waits for; none for gate and closing packets
    size_t step = kNoStep;
    std::span<const size_t>
        after{};         // steps of this bench's sequence that a packet of role `waits` waits for
    uint64_t index = 0;  // index in its queue, since the queue's creation
    // time just before publication; only if spans are known
    std::optional<uint64_t> published_ns{};
  };
  // Nanoseconds of HSA's system clock (HSA_SYSTEM_INFO_TIMESTAMP).
  struct Span {
    uint64_t begin_ns, end_ns;
  };
  struct Run {
    double us = 0;  // until the host sees that everything is complete
    std::optional<double>
        // TimingMode::batch and each: from the first dispatch's begin to the last one's end
        device_us{};
    bool correct = false;
    uint64_t wrong_bytes = 0;
    std::vector<Packet> packets{};  // in the order of each queue
    // [step] by the packets' timestamps, with TimingMode::each also of copies; empty without
    // timing.
    std::vector<std::optional<Span>> spans{};
  };
  // `headers` has an element for each step.
  // Errors: Error if the device fails or is not done within a minute; the bench is unusable
  // afterwards.
  Run run(const Headers& headers, Release release);
  // Sets functions that each run calls before the first packet and after completion, for counters
  // that only the device has.
  void watch(std::function<void()> before, std::function<void()> after);
  // Finds the buffer and offset of an address in device or host memory; no value if it is in no
  // buffer.
  struct Place {
    size_t buffer;
    uint64_t byte;
  };
  std::optional<Place> place_of(uint64_t address) const noexcept;
  // hsa_queue_t::base_address of a queue.
  const void* ring(uint32_t queue) const noexcept;
  // Counts of an ungated run: packets of all kinds, doorbells, completion signals and those that
  // interrupt, barrier bits and scopes of the dispatches. Counts that only a device knows stay
  // empty. The runtime's own packets for copies are not counted.
  DeviceCounts counts(const Headers& headers) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Whether the place is in this range.
inline bool holds(const Access& range, const Bench::Place& place) noexcept {
  return range.buffer == place.buffer && place.byte >= range.begin &&
         place.byte - range.begin < range.bytes;
}
// "'add'", "'add' waits", "gate", "closing packet".
std::string in_words(const Bench::Packet& packet, const Sequence& sequence);
// Flags of the packets that the bench adds.
aql::HeaderFlags flags_of(Bench::Packet::Role role) noexcept;

}  // namespace uptempo::fence_scope
