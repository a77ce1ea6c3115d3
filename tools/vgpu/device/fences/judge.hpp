// Judges a sequence of events: which pairs of accesses lack order or a fence.
//
// A function of its events alone: the same ones bring the same findings, whenever they are told again.
//
// How. Every packet begins with what it may rely on (view.hpp): what the packets before it in its queue began with, the earlier packets of
// the queue if it has the barrier bit, the signals that a barrier packet waited for, and what the host knew when it rang the doorbell. What a
// dispatch has read and written is, when it has ended, held against the last accesses to the same bytes (shadow.hpp, rules.hpp). Copies and
// observed accesses of the host are held against them at once.
//
// The host. Its waits are not observed, so it is given the benefit of the doubt: at any moment it is taken to know of every completion that a
// signal had announced by then, and a doorbell to carry all that. It is not taken to know what no signal had announced yet: that is a
// certain finding. A signal that the host itself has stored to passes on what the host knew.
//
// In-kernel synchronisation. Dispatches that meet at an atomic access, or at a load that bypasses L1, without being ordered by packets are taken to
// have ordered themselves by it: nothing is said about such a pair, because the order inside a dispatch is not observed, nor about the one that
// ended later and what the other one came after. They meet where one finds the other as the last writer of a byte, or writes what the other has read
// since. What comes after them by packets does not know of it. The same holds for the host and a dispatch, as a pair alone; not for copy engines.
// Between accesses that packets do order, fences count. But no L1 holds what synchronising accesses read, and no L2 what atomics do to fine-grained memory.
//
// Thread safety: none.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device/fences/event.hpp"
#include "device/fences/finding.hpp"

namespace uptempo::vgpu::fences {

struct JudgeOptions {
  std::string target = "gfx90a";  // as in DeviceDescription
  // Also what the specification forbids and the caches of this target forgive.
  bool specification = false;
};

class Judge {
 public:
  using Sink = std::function<void(const Finding&)>;

  Judge(JudgeOptions options, Sink sink);
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  void tell(const Event& event);

  // What the benefit of the doubt has kept quiet so far: pairs without order by packets that were taken to have ordered themselves inside
  // kernels, by dispatches and by bytes, and bytes that atomics left for the host without a release.
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
