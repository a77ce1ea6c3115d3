// Loads that belong to a compare-and-swap.
//
// An atomic that the target lacks is compiled into a plain load and a loop of compare-and-swaps,
// which fails and loads again unless memory still holds the value (LLVM, AtomicExpandPass,
// insertRMWCmpXchgLoop). The load is no race with other atomics then. It is recognised by what
// follows: each of its lanes compares and swaps at the address that it has loaded from, before the
// wave has loaded kFollowed times otherwise. An instruction of which one load is not followed so
// is a plain load.
//
// Thread safety: a FollowedLoads belongs to a wave; ExpectedLoads is for all workers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "device/races/meter.hpp"

namespace uptempo::vgpu::races {

// The loads of one dispatch by instruction (Stamp::place).
class ExpectedLoads {
 public:
  void expected(uint32_t place) {
    const std::lock_guard lock(mutex_);
    expected_.insert(place);
  }
  void unexpected(uint32_t place) noexcept {
    std::atomic<uint64_t>& word = word_of(place);
    // relaxed: read when all workers have ended; loaded first, because most loads are unexpected
    if ((word.load(std::memory_order_relaxed) & bit_of(place)) == 0)
      word.fetch_or(bit_of(place), std::memory_order_relaxed);
  }
  // Whether a compare-and-swap expected the value of each load.
  bool belong_to_atomics(uint32_t place) const {
    const std::lock_guard lock(mutex_);
    return expected_.contains(place) &&
           (word_of(place).load(std::memory_order_relaxed) & bit_of(place)) == 0;
  }

 private:
  // One bit for several instructions: then all of them are plain loads.
  static constexpr size_t kWords = 1024;
  static uint32_t hash(uint32_t place) noexcept { return place * 0x9e3779b1u >> 16; }
  static uint64_t bit_of(uint32_t place) noexcept { return uint64_t{1} << hash(place) % 64; }
  std::atomic<uint64_t>& word_of(uint32_t place) noexcept {
    return unexpected_[hash(place) / 64 % kWords];
  }
  const std::atomic<uint64_t>& word_of(uint32_t place) const noexcept {
    return unexpected_[hash(place) / 64 % kWords];
  }

  mutable std::mutex mutex_;
  std::unordered_set<uint32_t> expected_;
  std::array<std::atomic<uint64_t>, kWords> unexpected_{};
};

// The last loads of a wave that no compare-and-swap has followed yet.
class FollowedLoads {
 public:
  static constexpr size_t kFollowed = 8;

  explicit FollowedLoads(Meter& meter) : loads_(MeterAllocator<Load>(meter)) {}

  // `Address`: of each lane, in memory or in LDS. A scalar load has one lane. Throws
  // std::bad_alloc.
  template <class Address>
  void load(ExpectedLoads& all, uint32_t place, bool scalar, bool lds, uint32_t size_bytes,
            uint64_t lanes, const Address* address) {
    if (size_bytes != 4 && size_bytes != 8) return all.unexpected(place);
    // A buffer access is one for each lane.
    if (!loads_.empty() && loads_.back().place == place && !loads_.back().scalar &&
        loads_.back().size_bytes == size_bytes && (loads_.back().lanes & lanes) == 0) {
      fill(loads_.back(), lanes, address);
      return;
    }
    if (loads_.size() == kFollowed) {
      all.unexpected(loads_.front().place);
      loads_.erase(loads_.begin());
    }
    Load& load = loads_.emplace_back();
    load.place = place;
    load.scalar = scalar;
    load.lds = lds;
    load.size_bytes = size_bytes;
    fill(load, lanes, address);
  }
  template <class Address>
  void compare_and_swap(ExpectedLoads& all, bool lds, uint32_t size_bytes, uint64_t lanes,
                        const Address* address) {
    for (size_t i = loads_.size(); i-- > 0;) {
      Load& load = loads_[i];
      if (load.lds != lds || load.size_bytes != size_bytes) continue;
      for (unsigned lane = 0; lane < 64; ++lane) {
        if ((lanes >> lane & 1) == 0) continue;
        const unsigned from = load.scalar ? 0 : lane;
        if ((load.lanes >> from & 1) != 0 && load.address[from] == address[lane])
          load.lanes &= ~(uint64_t{1} << from);
      }
      if (load.lanes != 0) continue;
      all.expected(load.place);
      loads_.erase(loads_.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  // The wave has ended.
  void end(ExpectedLoads& all) noexcept {
    for (const Load& load : loads_) all.unexpected(load.place);
    loads_.clear();
  }

 private:
  struct Load {
    uint32_t place = 0;
    bool scalar = false, lds = false;
    uint32_t size_bytes = 0;
    uint64_t lanes = 0;  // that have not compared
    std::array<uint64_t, 64> address;
  };
  template <class Address>
  static void fill(Load& load, uint64_t lanes, const Address* address) noexcept {
    load.lanes |= lanes;
    for (unsigned lane = 0; lane < 64; ++lane)
      if ((lanes >> lane & 1) != 0) load.address[lane] = address[lane];
  }
  std::vector<Load, MeterAllocator<Load>> loads_;  // the oldest first
};

}  // namespace uptempo::vgpu::races
