// SignalWaits: a hardware queue's waits for other signal sources. Private to engine/stream.
//
// A wait is a barrier-AND packet on signals of up to five sources. After its publication, this
// class keeps two things. The wait's place: packets after it need not wait for the same events, or
// for earlier ones of the same sources. The signal loans: they last until the wait's epoch is
// complete. If one of the sources fails first, the queue fails with it, because the packet would
// wait forever.
//
// Thread safety: one owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "aql/packet.hpp"
#include "engine/completion/timeline.hpp"
#include "engine/dispatch/pools/signal_pool.hpp"
#include "engine/stream/queue/signal_source.hpp"

namespace uptempo::detail {

// The signals that one packet waits for.
class WaitSet {
 public:
  static constexpr size_t kMost = std::tuple_size_v<decltype(aql::BarrierAnd::dependencies)>;

  bool empty() const noexcept { return size_ == 0; }
  bool full() const noexcept { return size_ == kMost; }
  // Requires !full().
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

  std::array<Member, kMost> members_;
  size_t size_ = 0;
};

class SignalWaits {
 public:
  // Position of a wait.
  struct Place {
    uint64_t packet = 0;  // packet index plus one
    uint64_t epoch = 0;
  };

  explicit SignalWaits(Timeline& own);
  // Reserves capacity, so that the vectors of the epochs, which are swapped with it, need not grow.
  static void reserve(std::vector<SignalLoan>& loans);

  // Returns the place of a wait for that value or a later one; null if there is none.
  const Place* find(const Timeline& timeline, uint64_t value) const noexcept;
  // Keeps the loans for the open epoch. Call before publishing the wait packet; call note() after.
  // Throws std::bad_alloc.
  void keep_loans(WaitSet& waits);
  void note(WaitSet& waits, Place place) noexcept;

  // Keeps the loan of a caller's signal for the open epoch.
  void keep(SignalLoan&& loan) { loans_.push_back(std::move(loan)); }

  // True if the open epoch holds loans.
  bool has_loans() const noexcept { return !loans_.empty(); }
  bool has_many_loans() const noexcept { return loans_.size() >= kManyLoans; }
  // Call when the open epoch is closed, or when its packets are lost.
  void pass_loans(std::vector<SignalLoan>& epoch) noexcept { loans_.swap(epoch); }
  void drop_loans() noexcept { loans_.clear(); }

 private:
  static constexpr size_t kManyLoans = 16;
  struct Seen {
    const Timeline* timeline = nullptr;
    uint64_t value = 0;  // highest value waited for
    Place place;
  };

  Timeline& own_;
  std::vector<Seen> seen_;         // one entry per source
  std::vector<SignalLoan> loans_;  // of the open epoch
};

}  // namespace uptempo::detail
