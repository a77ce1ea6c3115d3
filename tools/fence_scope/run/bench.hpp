// Carries a sequence out on a GPU with whatever headers, and times it.
//
// Ahead of each run, untimed: buffers get their initial bytes from the host, all earlier work is complete and written back. The caches still hold other bytes of the same buffers,
// from kernels that have filled and read them, so that a missing acquire shows at the first dispatch as it does at later ones. Kernargs were written when the bench was made.
//
// What is sent: to each queue its dispatches in order, ahead of those that wait a barrier-AND packet without fences, and behind the last one a closing barrier-AND packet without
// fences, with barrier bit and completion signal, for which the host waits. So a run ends when everything is complete, whatever the headers say; but the closing packet
// hands nothing over: what the host reads afterwards is right only if dispatches have released it. All headers are the caller's, the last one's too.
//
// Results are all bytes of all buffers, read at once when the run has ended, and compared with those of a reference run: one step at a time, with system scopes, the host waiting
// for each. That one is made when the bench is made.
//
// Thread safety: one owner. Lifetime: within that of the Runtime.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/runtime/agent.hpp"
#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

enum class Release : uint8_t {
  gated,  // everything is queued behind a barrier packet on a host signal, and timed from the moment at which that is released
  ungated  // timed from before the first packet is written
};

class Bench {
 public:
  // Throws Error, and support::UsageError (SequenceError) for a sequence that this device cannot run.
  Bench(const Agent& gpu, Sequence sequence, TimingMode timing = TimingMode::none);
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  const Sequence& sequence() const noexcept;
  // A barrier bit and system scopes on every packet; and what plan() chooses for this device (sequence.hpp).
  Headers everywhere() const;
  Headers planned() const;
  const PlannedHeaders& plan() const noexcept;  // the same, with reasons

  // What a buffer holds after the reference run.
  const std::vector<std::byte>& reference(size_t buffer) const noexcept;

  // A packet of a run, and where it went.
  struct Packet {
    static constexpr size_t no_step = ~size_t{0};
    enum class Role : uint8_t { gate, waits, dispatch, closing } role;
    uint32_t queue;
    size_t step = no_step;  // which it is, or for which it waits; none of gate and closing packets
    std::span<const size_t>
        after{};         // steps for which a packet of role `waits` waits; of this bench's sequence
    uint64_t index = 0;  // in its queue, since that was made
    std::optional<uint64_t> published_ns{};  // just before; where spans are known
  };
  // Of HSA's system clock (HSA_SYSTEM_INFO_TIMESTAMP), in nanoseconds.
  struct Span {
    uint64_t begin_ns, end_ns;
  };
  struct Run {
    double us = 0;  // until the host knows that everything is complete
    std::optional<double>
        device_us{};  // TimingMode::batch and each: from the first dispatch's begin to the last one's end
    bool correct = false;
    uint64_t wrong_bytes = 0;
    std::vector<Packet> packets{};  // each queue's in their order
    // [step] Of the packets' timestamps, and with TimingMode::each of copies too; empty without timing.
    std::vector<std::optional<Span>> spans{};
  };
  // `headers` has a place for each step. Throws Error if the device fails, or is not done within a minute; this bench is then of no more use.
  Run run(const Headers& headers, Release release);
  // Called in each run ahead of the first packet, and when everything is complete: for counters that only the device has.
  void watch(std::function<void()> before, std::function<void()> after);
  // Where in which buffer a byte of the device's or the host's memory is; nothing: in none of them.
  struct Place {
    size_t buffer;
    uint64_t byte;
  };
  std::optional<Place> place_of(uint64_t address) const noexcept;
  // hsa_queue_t::base_address of a queue.
  const void* ring(uint32_t queue) const noexcept;
  // What is written for an ungated run: packets of all kinds, doorbells, completion signals and those of them that interrupt; barrier bits and scopes of the dispatches. What only
  // a device knows stays empty. The runtime's own packets, for copies, are not counted.
  DeviceCounts counts(const Headers& headers) const;

  // The 64-byte packets of an ungated run as they would be sent, as text (aql/text.hpp), a block for each; nothing is sent.
  std::string dry_run(const Headers& headers) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// "'add'", "'add' waits", "gate", "closing packet".
std::string in_words(const Bench::Packet& packet, const Sequence& sequence);
// Of the packets that the bench adds.
aql::HeaderFlags flags_of(Bench::Packet::Role role) noexcept;

}  // namespace uptempo::fence_scope
