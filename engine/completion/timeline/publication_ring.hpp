// PublicationRing: the values of a timeline's publications. It holds the signal of each unfinished
// publication, knows which values are complete, and decides when a signal may be reused. Private to
// Timeline.
//
// Values count up from 1 and are never reused; places are. A publication has its place from begin()
// until the owner reclaims it. A pin keeps the owner from reclaiming it, so its signal is not
// re-armed while a thread, or a packet of another queue, waits on it.
//
// Completion is monotonic (timeline.hpp): a known value makes all lower ones known.
//
// Thread safety:
//   owner       has_room, pending, oldest_pending, begin, set_timed, is_timed, signal_of,
//               try_reclaim_oldest. It takes no lock.
//   any thread  the other functions. read() and has_fired() require that the signals still exist
//               (signal_readers.hpp).
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <uptempo/aql/amd_abi.hpp>

namespace uptempo::detail {

// The owner of a publication's signal. A caller may re-arm or destroy its signal as soon as the
// publication is complete, so that signal is not lent (timeline.hpp).
enum class SignalOwner : uint8_t { queue, caller };

class PublicationRing {
 public:
  explicit PublicationRing(uint32_t capacity)
      : capacity_(capacity), mask_(std::bit_ceil(size_t{capacity}) - 1), places_(places()) {}

  uint32_t capacity() const noexcept { return capacity_; }
  // `capacity` rounded up to a power of two, and the place of a publication.
  size_t places() const noexcept { return mask_ + 1; }
  size_t place(uint64_t value) const noexcept { return value & mask_; }

  // Publications that have not been reclaimed.
  uint64_t pending() const noexcept { return last_.load(std::memory_order_relaxed) - reclaimed_; }
  bool has_room() const noexcept { return pending() < capacity_; }
  uint64_t oldest_pending() const noexcept { return reclaimed_ + 1; }

  // Gives the signal the next value. Requires has_room().
  uint64_t begin(hsa_signal_t signal, SignalOwner owner = SignalOwner::queue) noexcept;
  // Marks a pending publication, for the owner.
  void set_timed(uint64_t value) noexcept {
    at(value).timed.store(true, std::memory_order_relaxed);
  }
  bool is_timed(uint64_t value) const noexcept {
    return at(value).timed.load(std::memory_order_relaxed);
  }
  // Any thread. Requires a pinned publication.
  SignalOwner owner_of(uint64_t value) const noexcept {
    return at(value).owner.load(std::memory_order_relaxed);
  }
  // Requires a pending publication.
  hsa_signal_t signal_of(uint64_t value) const noexcept {
    return {at(value).signal.load(std::memory_order_relaxed)};
  }
  // Ends the use of the oldest pending publication's place and signal. Returns false while it is
  // pinned.
  bool try_reclaim_oldest() noexcept;
  // The same for all publications at once. Requires that no thread pins one.
  void reclaim_all() noexcept { reclaimed_ = last_.load(std::memory_order_relaxed); }

  uint64_t last_begun() const noexcept { return last_.load(std::memory_order_acquire); }
  // Highest value known to be complete.
  uint64_t last_known() const noexcept { return done_.load(std::memory_order_acquire); }
  bool is_known(uint64_t value) const noexcept { return last_known() >= value; }
  // Records that the value, and so all lower ones, are complete.
  void note(uint64_t value) noexcept;

  // Value of the publication's signal: 1, 0, or negative, with which a failed copy reports its
  // error. A publication that has been reclaimed meanwhile is complete.
  enum class Reading : uint8_t { pending, complete, negative };
  Reading read(uint64_t value) const noexcept;
  // Value of the publication's signal; empty once the publication has been reclaimed.
  std::optional<hsa_signal_value_t> value_of(uint64_t value) const noexcept {
    if (!holds(at(value), value)) return {};
    const hsa_signal_value_t left = aql::load_acquire(signal_of(value));
    return holds(at(value), value) ? std::optional(left) : std::nullopt;
  }
  // True if a packet has decremented the signal of a lost publication. The failure may have set
  // that signal from 1 to -1 (Timeline::fail()). Requires that no publication begins any more.
  bool has_fired(uint64_t value) const noexcept;

  // Keeps the owner from reclaiming the publication, and returns its signal. Returns false if the
  // publication has been reclaimed. At most kMostPins at a time.
  static constexpr uint64_t kMostPins = 255;
  bool pin(uint64_t value, hsa_signal_t& signal) noexcept;
  void unpin(uint64_t value) noexcept;

  // Calls `f` with the signal of each publication that is neither known to be complete nor
  // reclaimed.
  template <class F>
  void for_each_unfinished(F&& f) const;

 private:
  struct Place {
    // value << 8 | pins. Value zero: reclaimed. Compare-and-swap makes a pin and the owner's
    // reclaim exclusive.
    std::atomic<uint64_t> state{0};
    std::atomic<uint64_t> signal{0};
    std::atomic<bool> timed{false};
    std::atomic<SignalOwner> owner{SignalOwner::queue};
  };

  static constexpr uint64_t kPinBits = 8;
  static_assert(kMostPins < uint64_t{1} << kPinBits);
  static constexpr uint64_t state_of(uint64_t value) noexcept { return value << kPinBits; }
  // Acquire: the signal that is loaded next belongs to this value or a later one.
  static bool holds(const Place& p, uint64_t value) noexcept {
    return p.state.load(std::memory_order_acquire) >> kPinBits == value;
  }
  Place& at(uint64_t value) noexcept { return places_[place(value)]; }
  const Place& at(uint64_t value) const noexcept { return places_[place(value)]; }

  const uint32_t capacity_;
  const size_t mask_;
  std::vector<Place> places_;
  std::atomic<uint64_t> last_{0};  // highest value begun
  std::atomic<uint64_t> done_{0};  // highest value known complete
  uint64_t reclaimed_ = 0;         // highest value reclaimed; owner
};

inline uint64_t PublicationRing::begin(hsa_signal_t signal, SignalOwner owner) noexcept {
  const uint64_t value = last_.load(std::memory_order_relaxed) + 1;
  Place& p = at(value);
  p.timed.store(false, std::memory_order_relaxed);
  p.owner.store(owner, std::memory_order_relaxed);
  p.signal.store(signal.handle, std::memory_order_relaxed);
  // Release: a thread that sees the value also sees its signal.
  p.state.store(state_of(value), std::memory_order_release);
  last_.store(value, std::memory_order_release);
  return value;
}

inline bool PublicationRing::try_reclaim_oldest() noexcept {
  const uint64_t value = oldest_pending();
  uint64_t expected = state_of(value);
  if (!at(value).state.compare_exchange_strong(expected, 0, std::memory_order_acq_rel))
    return false;
  reclaimed_ = value;
  return true;
}

inline void PublicationRing::note(uint64_t value) noexcept {
  uint64_t known = done_.load(std::memory_order_relaxed);
  // Release: a thread that sees the value as done also sees the packets' writes, through the
  // acquire load of the signal.
  while (known < value && !done_.compare_exchange_weak(known, value, std::memory_order_acq_rel)) {
  }
}

inline PublicationRing::Reading PublicationRing::read(uint64_t value) const noexcept {
  const std::optional<hsa_signal_value_t> left = value_of(value);
  if (!left) return is_known(value) ? Reading::complete : Reading::pending;
  return *left == 0 ? Reading::complete : *left < 0 ? Reading::negative : Reading::pending;
}

inline bool PublicationRing::has_fired(uint64_t value) const noexcept {
  const hsa_signal_value_t left = aql::load_acquire(signal_of(value));
  return left != 1 && left != -1;
}

inline bool PublicationRing::pin(uint64_t value, hsa_signal_t& signal) noexcept {
  std::atomic<uint64_t>& state = at(value).state;
  uint64_t found = state.load(std::memory_order_relaxed);
  do {
    if (found >> kPinBits != value) return false;
  } while (!state.compare_exchange_weak(found, found + 1, std::memory_order_acq_rel));
  signal = signal_of(value);
  return true;
}

inline void PublicationRing::unpin(uint64_t value) noexcept {
  at(value).state.fetch_sub(1, std::memory_order_acq_rel);
}

template <class F>
void PublicationRing::for_each_unfinished(F&& f) const {
  const uint64_t last = last_begun();
  for (uint64_t value = last_known() + 1; value <= last; ++value)
    if (holds(at(value), value)) f(signal_of(value));
}

}  // namespace uptempo::detail
