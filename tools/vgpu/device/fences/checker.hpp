// The fence checker: watches packets, copies and memory accesses, and reports pairs of accesses
// that lack order or a fence.
//
// Calls of the device and the driver become events (event.hpp) with a time and the kinds of the
// pages concerned. The judge evaluates each event at once (judge.hpp has the rules).
//
// Thread safety: any thread. One lock guards the checker; it is not held while kernels run.
// AccessSets are filled without it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/fences/access_set.hpp"
#include "device/fences/journal.hpp"
#include "device/fences/judge.hpp"
#include "device/host/host_events.hpp"

namespace uptempo::vgpu::fences {

// A dispatch between its launch and its end.
struct Running {
  TaskId id;
  std::shared_ptr<AccessSet> accesses;
  InstructionList instructions = {};  // set it before end(); null: not known
};

class Checker {
 public:
  // Receives each finding once, with the lock held.
  using Sink = Judge::Sink;
  using QueueKind = fences::QueueKind;
  using SignalValue = fences::SignalValue;
  using Packet = fences::Packet;

  // Whether a finding is wanted. Called with the lock held.
  using Filter = std::function<bool(const Finding&)>;

  // A number of the place where the program has allocated the memory at this address. Called with
  // the lock held.
  using PlaceOf = std::function<uint64_t(GpuAddress)>;

  // `journal`: also records the run; may be null. `place_of`: only the first finding of those in
  // Repeated reaches the sink; null: each one does. `filter`: null wants every finding.
  Checker(JudgeOptions options, Sink sink, Journal* journal = nullptr, PlaceOf place_of = nullptr,
          Filter filter = nullptr);
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  // `ordinal`: as in traces. Each queue is its own actor, from the first to the last packet.
  // `agent`: that of JudgeOptions, from 0.
  ActorId add_queue(QueueKind kind, uint32_t ordinal, uint32_t agent = 0);

  // With several agents, each processor holds a section from the time that it takes for an event of
  // the host, or for a completion, until the host can see what it reports. So no completion that
  // another processor reports has a later time and is nevertheless known to the host, and two
  // processors that complete one signal do so one after the other. A thread may hold several. With
  // one agent, a section locks nothing.
  using Section = std::unique_lock<std::recursive_mutex>;
  [[nodiscard]] Section section();

  // The producer rang: everything up to `value` (index of the last packet; for SDMA, the bytes
  // written) was published by then.
  void doorbell(ActorId queue, uint64_t value, uint64_t host_ns);

  // A dispatch starts. Its acquire executes now.
  Running launch(ActorId queue, const Packet& packet, std::string kernel,
                 AccessSet::Listener* listener = nullptr, uint64_t waves = 0, L2Deal l2s = {},
                 Origin origin = {});
  // All workgroups of the dispatch have ended. Its release executes now, before its completion
  // signal. `kind_of(page)` returns nothing when the page is no longer mapped.
  using KindOf = std::function<std::optional<MemoryKind>(GpuAddress page)>;
  // `tells_host`: the host may have learned of the end in a way that is not observed.
  // `may_meet_any_thread`: as in events::End.
  void end(Running& running, const Packet& packet, const KindOf& kind_of, bool tells_host = false,
           bool may_meet_any_thread = false);

  // A packet other than a dispatch completes. Its acquire and then its release execute now.
  // `satisfied`: the signals that it waited for, with the values found. `caches`: what a vendor's
  // packet does to them.
  void complete(ActorId queue, const Packet& packet, std::span<const SignalValue> satisfied,
                const CacheActions& caches = {});

  // SDMA. Operations of a queue arrive in order.
  void wait(ActorId queue, uint64_t offset, const SignalValue& satisfied);
  struct Range {
    GpuAddress address = 0;
    uint64_t bytes = 0;
  };
  // Executes at once. A fill has no source.
  void copy(ActorId queue, uint64_t offset, std::string_view engine, std::optional<Range> source,
            Range destination, const KindOf& kind_of, Origin origin = {});
  // `signal`: its value before the decrement.
  void signal(ActorId queue, uint64_t offset, const SignalValue& signal);

  // The host, where it is observed (page protection).
  // `site`: of the event (host/host_events.hpp); 0: not known. `thread`: another number for each
  // thread.
  void host_read(GpuAddress address, uint64_t host_ns, const KindOf& kind_of, uint64_t site = 0,
                 uint64_t thread = 0);
  // The host began to store to the page ...
  void host_opened(GpuAddress page, uint64_t host_ns, uint64_t thread = 0);
  // The same, for its first store, which is at `address`; with JudgeOptions::waits.
  void host_stored(GpuAddress address, uint64_t host_ns, const KindOf& kind_of, uint64_t site,
                   uint64_t thread = 0);
  // ... and when the page was closed these bytes had changed.
  void host_wrote(GpuAddress page, const PageMask& bytes, uint64_t closed_ns,
                  const KindOf& kind_of);

  // The host loaded the signal (0: perhaps each of them at any time); with JudgeOptions::waits.
  void host_looked(uint64_t signal, uint64_t host_ns);

  // The host is about to destroy the queue; with JudgeOptions::waits.
  void destroy_queue(ActorId queue);

  // These bytes may have changed; the writer, perhaps the host, is not known.
  void unknown(GpuAddress page, const PageMask& bytes);

  // The range is about to be unmapped. Reports writes that were announced and never released, then
  // forgets the range.
  void forget(GpuAddress begin, GpuAddress end);
  // The program ends: the same for all memory. Other threads may continue. Their calls are judged,
  // but from now on the journal belongs to the caller.
  void finish();

  struct Counts {
    uint64_t unordered = 0, stale = 0, unreleased = 0;
    // findings that JudgeOptions::specification would add
    uint64_t specification_only = 0;
    uint64_t repeated = 0;    // findings that the sink did not receive; not counted elsewhere
    uint64_t suppressed = 0;  // by the filter; not counted elsewhere
    // The accesses checked. Bytes count once for each dispatch or copy that accesses them.
    uint64_t dispatches = 0, copies = 0, bytes = 0;
    // dispatches with accesses that could not be recorded for lack of memory
    uint64_t unrecorded = 0;
    uint64_t total() const noexcept { return unordered + stale + unreleased; }
  };
  Counts counts() const;
  // The findings that have occurred several times so far. Empty if each reaches the sink.
  std::vector<Repeated> repeated() const;
  // The count so far.
  Judge::Presumed presumed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu::fences
