// SignalWaits: a hardware queue's waits for events of other queues. Private to engine/stream.
//
// A wait is a barrier-AND packet on signals of up to five queues. After its publication, this class
// keeps the wait's place: packets after it need not wait for the same events, or for earlier ones
// of the same queues. If one of these queues fails first, the own queue fails with it, because the
// packet would wait forever.
//
// Thread safety: one owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "aql/packet.hpp"
#include "engine/completion/completion.hpp"
#include "engine/completion/lent_signal.hpp"

namespace uptempo::detail {

// The signals that one packet waits for.
class WaitSet {
 public:
  static constexpr size_t kMost = std::tuple_size_v<decltype(aql::BarrierAnd::dependencies)>;

  bool empty() const noexcept { return size_ == 0; }
  bool full() const noexcept { return size_ == kMost; }
  // Requires !full().
  void add(LentSignal&& signal) noexcept { signals_[size_++] = std::move(signal); }
  aql::Packet64 packet() const noexcept;

 private:
  friend class SignalWaits;
  std::array<LentSignal, kMost> signals_;
  size_t size_ = 0;
};

class SignalWaits {
 public:
  // Position of a wait.
  struct Place {
    uint64_t packet = 0;  // packet index plus one
    uint64_t epoch = 0;
  };

  // Returns the place of a wait for that event or a later one of its queue; null if there is none.
  const Place* find(const Completion& awaited) const noexcept;
  // A packet of the queue of `own` is about to wait. Throws std::bad_alloc.
  void expect(WaitSet& waits, const Completion& own);
  // The packet is published in the epoch `own`. Requires expect().
  void note(WaitSet& waits, uint64_t packet, const Completion& own) noexcept;

 private:
  struct Seen {
    Completion awaited;  // the last of its queue
    Place place;
  };
  std::vector<Seen> seen_;  // one entry per queue
};

}  // namespace uptempo::detail
