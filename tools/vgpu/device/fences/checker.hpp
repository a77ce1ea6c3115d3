// The fence checker: watches packets, copies and memory accesses, and says which pairs of accesses lack order or a fence.
//
// What the device and the driver tell it becomes events (event.hpp), with a time and the kinds of the pages concerned, and is judged at once
// (judge.hpp has the rules of the game).
//
// Thread safety: any thread; one lock, which is not held while kernels run. AccessSets are filled without it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "device/fences/access_set.hpp"
#include "device/fences/journal.hpp"
#include "device/fences/judge.hpp"
#include "device/host_events.hpp"

namespace uptempo::vgpu::fences {

// A dispatch between its launch and its end.
struct Running {
  TaskId id;
  std::unique_ptr<AccessSet> accesses;
};

class Checker {
 public:
  // Receives each finding once, under the lock.
  using Sink = Judge::Sink;
  using QueueKind = fences::QueueKind;
  using SignalValue = fences::SignalValue;
  using Packet = fences::Packet;

  // The same finding between kernels of the same names goes to the sink this often; later ones are only counted.
  static constexpr uint32_t kRepetitions = 64;

  // `journal`: keeps the run, too; null: it is not kept. `repetitions`: for programs that read all of them, where kRepetitions is for people.
  Checker(JudgeOptions options, Sink sink, Journal* journal = nullptr,
          uint32_t repetitions = kRepetitions);
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  // `ordinal`: as in traces. Each queue is an actor of its own, from the first to the last packet.
  ActorId add_queue(QueueKind kind, uint32_t ordinal);

  // The producer rang: everything up to `value` (index of the last packet; of SDMA, the bytes written) had been published by then.
  void doorbell(ActorId queue, uint64_t value, uint64_t host_ns);

  // A dispatch starts. Its acquire is carried out now.
  Running launch(ActorId queue, const Packet& packet, std::string kernel,
                 AccessSet::Listener* listener = nullptr, uint64_t waves = 0);
  // All its workgroups have ended; its release is carried out now, ahead of its completion signal. `kind_of(page)`: nothing where
  // it is not mapped any more.
  using KindOf = std::function<std::optional<MemoryKind>(GpuAddress page)>;
  void end(Running& running, const Packet& packet, const KindOf& kind_of);

  // A packet other than a dispatch completes: its acquire and release are carried out now, in this order. `satisfied`: the
  // signals that it waited for, as they were found satisfied.
  void complete(ActorId queue, const Packet& packet, std::span<const SignalValue> satisfied);

  // SDMA. Operations of a queue come in order.
  void wait(ActorId queue, uint64_t offset, const SignalValue& satisfied);
  struct Range {
    GpuAddress address = 0;
    uint64_t bytes = 0;
  };
  // Done at once; a fill has no source.
  void copy(ActorId queue, uint64_t offset, std::string_view engine, std::optional<Range> source,
            Range destination, const KindOf& kind_of);
  // `signal` as it is ahead of the decrement.
  void signal(ActorId queue, uint64_t offset, const SignalValue& signal);

  // The host, where it is observed (page protection).
  void host_read(GpuAddress address, uint64_t host_ns, const KindOf& kind_of);
  // It began to store to the page of `address` ...
  void host_opened(GpuAddress page, uint64_t host_ns);
  // ... and when the page was closed these bytes had changed.
  void host_wrote(GpuAddress page, const PageMask& bytes, uint64_t closed_ns, const KindOf& kind_of);

  // Somebody, perhaps the host, may have changed these bytes.
  void unknown(GpuAddress page, const PageMask& bytes);

  // The range is about to be unmapped: what was announced and never released is found, then all of it is forgotten.
  void forget(GpuAddress begin, GpuAddress end);
  // The program ends: the same for all memory. Threads may go on; what they do is judged, but the journal is left to the caller from now on.
  void finish();

  struct Counts {
    uint64_t unordered = 0, stale = 0, unreleased = 0;
    uint64_t unrecorded = 0;  // dispatches, some of whose accesses found no memory to be recorded in
    uint64_t total() const noexcept { return unordered + stale + unreleased; }
  };
  // Findings so far, all of them: the sink is spared repetitions.
  Counts counts() const;
  // So far.
  Judge::Presumed presumed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu::fences
