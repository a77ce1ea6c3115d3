// Releases, and the places in global memory through which waves synchronise.
//
// A release keeps what its wave knew at that moment. Most places are never acquired (histograms),
// and most atomics that return a value are not followed by an invalidation. So a place is cold at
// first: it only keeps its releases, and an acquire only notes how many of them it has seen
// (Pending). They are joined when a wave invalidates its caches. A place with many releases becomes
// hot then: it keeps their sum, which acquires take at once.
//
// Errors: functions throw std::bad_alloc beyond the budget.
// Thread safety: none for Sync and Pending; the owner locks. Known and Release do not change.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/memory.hpp"
#include "device/races/far_clock.hpp"
#include "device/races/meter.hpp"
#include "device/races/shadow.hpp"

namespace uptempo::vgpu::races {

// Clocks of the waves of one workgroup, for accesses to global memory and to LDS.
struct Local {
  FarClock::Leaf global{}, lds{};

  // Returns whether it has changed anything.
  bool join(const Local& other) noexcept {
    const Local before = *this;
    for (unsigned i = 0; i < FarClock::kWaves; ++i) {
      global[i] = std::max(global[i], other.global[i]);
      lds[i] = std::max(lds[i], other.lds[i]);
    }
    return global != before.global || lds != before.lds;
  }
};

// A wave's knowledge of others: of its own workgroup, and of other ones.
struct Known final : Counted {
  Local seen;  // the own entries are not used
  FarClock far;
};

// The content of one release. A wave tells other workgroups less of its own accesses than its own.
struct Release final : Counted {
  uint32_t number = 0;  // of the wave, as in Stamp
  bool to_agent = true;
  uint32_t agent = 0, global = 0, lds = 0;  // clocks up to which its own accesses are known then
  Ref<const Known> known;                   // null: it knew nothing of others

  uint32_t group() const noexcept { return number >> Stamp::kWaveBits; }
  uint32_t wave() const noexcept { return number & ((1u << Stamp::kWaveBits) - 1); }

  void tell_others(FarClock& clock, Meter& meter) const;
  // To a wave of the same workgroup. Returns whether that changes anything.
  bool tell_own(Local& seen, FarClock& far, Meter& meter) const;
};

// Releases of others that waves have read, and have not acquired by an invalidation yet.
struct Pending {
  struct Place {
    GpuAddress address = 0;
    uint32_t releases = 0;  // the first ones of this place
  };
  std::vector<Place, MeterAllocator<Place>> places;  // cold ones
  FarClock far;

  explicit Pending(Meter& meter) : places(MeterAllocator<Place>(meter)) {}
  bool empty() const noexcept { return places.empty() && far.empty(); }
  void clear() noexcept {
    places.clear();
    far = {};
  }
  void add(Place place);
  void join(const Pending& other, Meter& meter);

 private:
  void drop_repetitions();

  size_t most_ = 1024;  // then it looks for repetitions
};

class Sync {
 public:
  // Whether an atomic access has been here.
  bool is_used() const noexcept { return is_used_; }
  size_t allocated_bytes() const noexcept {
    return releases_.capacity() * sizeof(releases_[0]) + (hot_ == nullptr ? 0 : sizeof(Hot)) +
           (hot_ == nullptr ? 0 : hot_->first.capacity() * sizeof(releases_[0]));
  }

  void use() noexcept { is_used_ = true; }
  void release(Ref<const Release> release);
  // A wave, of this number, has read the place, which is at `address`. Adds what others released to
  // `pending`, and to `seen` and `far` what its own workgroup released last, which needs no
  // invalidation. Returns whether the latter has changed anything.
  bool acquire(GpuAddress address, uint32_t number, Pending& pending, Local& seen, FarClock& far,
               Meter& meter);
  // Joins the first releases with `clock`.
  void tell(uint32_t releases, FarClock& clock, Meter& meter);

 private:
  struct Hot {
    FarClock released;
    // The last workgroup that released here has told its own waves this.
    uint32_t group = ~0u;
    Local local;
    FarClock far;
    // The releases of the time when the place was cold.
    std::vector<Ref<const Release>> first;
    FarClock first_sum;
  };

  size_t last_of(uint32_t group) const noexcept;
  void make_hot(Meter& meter);
  void add_releases(Meter& meter);

  std::vector<Ref<const Release>> releases_;  // hot: that are not in its sum yet
  std::unique_ptr<Hot> hot_;
  uint32_t seen_ = 0;  // releases that a Pending::Place has
  bool is_used_ = false;
};

}  // namespace uptempo::vgpu::races
