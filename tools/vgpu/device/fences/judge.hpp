// Judges a sequence of events: reports pairs of accesses that lack order or a fence.
//
// A function of its events alone: the same events bring the same findings, whenever they are
// judged.
//
// Method: every packet begins with a view of what it may rely on (view.hpp). The view joins four
// parts: the view with which the queue's previous packets began, the queue's earlier packets if it
// has the barrier bit, the signals that a barrier packet waited for, and the host's knowledge when
// it rang the doorbell. When a dispatch has ended, its reads and writes are checked against the
// last accesses to the same bytes (shadow.hpp, rules.hpp). Copies and observed host accesses are
// checked at once.
//
// Several agents: a packet's fences act on the caches of its agent. A write is visible to a
// dispatch of another agent after a release of system scope by a packet of the writer's agent and
// then an acquire of system scope by a packet of the reader's.
//
// The host: unless JudgeOptions::waits is set, its waits are not observed. At any time, the judge
// assumes that the host knows of every completion that a signal has announced, and that a doorbell
// carries all of that. It assumes no knowledge of anything that no signal has announced, so such a
// finding is certain. A signal to which the host itself has stored passes on what the host knew.
// With JudgeOptions::waits, the host knows of a completion once it has loaded the signal afterwards
// (HostLooked), and of a dispatch once it has read what the dispatch wrote with atomic accesses or
// with stores of agent scope. A dispatch is known at its end if it has written to a signal, if it
// writes with such accesses what the host has read before, or where the caller says so. The first
// store of the host to a page is judged with what the host knew at that time.
//
// In-kernel synchronisation: some dispatches meet, without being ordered by packets, at an atomic
// access, at a load that bypasses L1, or at a store that gfx942 writes through its L2. They are
// assumed to have synchronised there, since the order inside a dispatch is not observed. Nothing is
// reported about such a pair, nor about the one that ended later and the tasks before the other
// one. Two dispatches meet where one finds the other as the last writer of a byte, or writes a byte
// that the other has read since the last write. Tasks that packets order after them do not inherit
// this order. The same holds for the host and a dispatch, only as a pair; it does not hold for copy
// engines. A thread of the host also meets dispatches by pages (host_meetings.hpp).
// Signals in kernels and on the host: accesses to the value of a signal are atomic operations on
// it, not accesses to data. A dispatch that reads the value passes on what completed the signal,
// and what the host knows, which may have stored the value. A dispatch that writes it completes the
// signal with what the dispatch could rely on; a packet that finds the value before that dispatch
// has ended may rely on the same. Signals are those that packets use, and what looks like one in
// fine-grained or uncached memory of the host: a dispatch polls eight bytes at the place of the
// value and reads nothing else in that line, or it writes them and nothing else.
// Between accesses that packets do order, fences count. But no L1 holds what synchronising accesses
// read, and no L2 holds the results of atomics on fine-grained memory.
//
// Thread safety: none.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/fences/event.hpp"
#include "device/fences/finding.hpp"

namespace uptempo::vgpu::fences {

struct JudgeOptions {
  std::string target = "gfx90a";  // of the first agent, as in DeviceDescription
  // Also report what the specification forbids and the caches of this target tolerate.
  bool specification = false;
  std::vector<std::string> other_targets = {};  // of further agents
  // The host's looks at signals are observed.
  bool waits = false;
  // Coherent links join all agents, so a write to a peer's memory probes the owner's L2.
  bool peer_writes_probe = false;
};

class Judge {
 public:
  using Sink = std::function<void(const Finding&)>;

  Judge(JudgeOptions options, Sink sink);
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  void process(const Event& event);

  // Pairs and bytes that the judge has excused so far. Pairs without order by packets that it
  // assumed to have synchronised inside kernels, counted as dispatches and as bytes. Bytes that
  // atomics left for the host without a release.
  struct Presumed {
    uint64_t meetings = 0, bytes = 0;
    bool operator==(const Presumed&) const = default;
  };
  Presumed presumed() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu::fences
