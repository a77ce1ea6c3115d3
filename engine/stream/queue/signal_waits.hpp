// Waits of a hardware queue for other tracks. Private to engine/stream.
//
// A wait is a barrier-AND packet that looks at signals of up to five tracks. Two things are left of it: its place, behind which no later packet need wait for the same events, nor for earlier
// ones of their tracks; and the loans of the signals, which last until its epoch is complete. And where one of the tracks fails before, the queue fails with it,
// because the packet would wait for ever.
//
// Thread safety: one owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "aql/packet.hpp"
#include "engine/dispatch/pools/signal_pool.hpp"
#include "engine/completion/timeline.hpp"
#include "engine/stream/queue/signal_source.hpp"

namespace uptempo::detail {

// What one packet waits for.
class WaitSet {
 public:
  static constexpr size_t most = std::tuple_size_v<decltype(aql::BarrierAnd::dependencies)>;

  bool empty() const noexcept { return size_ == 0; }
  bool full() const noexcept { return size_ == most; }
  // There is room.
  void add(Timeline& timeline, uint64_t value, SignalSource::Borrowed&& signal) noexcept;
  aql::Packet64 packet() const noexcept;

 private:
  friend class SignalWaits;
  struct Member {
    Timeline* timeline = nullptr;
    uint64_t value = 0;
    SignalSource::Borrowed signal;
  };
  std::span<Member> members() noexcept { return std::span(members_).first(size_); }

  std::array<Member, most> members_;
  size_t size_ = 0;
};

class SignalWaits {
 public:
  // Where a wait lies.
  struct Place {
    uint64_t packet = 0;  // index plus one
    uint64_t epoch = 0;
  };

  explicit SignalWaits(Timeline& own);
  // So that those of the epochs, with which they change places, need not grow.
  static void reserve(std::vector<SignalLoan>& loans);

  // Of a wait for that value, or a later one. Null: there is none.
  const Place* find(const Timeline& timeline, uint64_t value) const noexcept;
  // Keeps the loans for the open epoch: before the packet that waits is published, as note() is called behind it.
  void keep_loans(WaitSet& waits);
  void note(WaitSet& waits, Place place);

  // Of the open epoch.
  bool has_loans() const noexcept { return !loans_.empty(); }
  bool has_many_loans() const noexcept { return loans_.size() >= many_loans; }
  // The open epoch is closed, or its packets are lost.
  void pass_loans(std::vector<SignalLoan>& epoch) noexcept { loans_.swap(epoch); }
  void drop_loans() noexcept { loans_.clear(); }

 private:
  static constexpr size_t many_loans = 16;
  struct Seen {
    const Timeline* timeline = nullptr;
    uint64_t value = 0;  // the highest one
    Place place;
  };

  Timeline& own_;
  std::vector<Seen> seen_;         // one for each track
  std::vector<SignalLoan> loans_;  // of the open epoch
};

}  // namespace uptempo::detail
