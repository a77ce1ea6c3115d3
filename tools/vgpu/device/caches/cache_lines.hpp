// Lines of a cache, the set-associative array that holds them, and the seeded choices of both. Used
// by incoherent.cpp only.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "device/whole_access.hpp"

namespace uptempo::vgpu {

class Probes;

// Masks cover a sector, one bit per byte.
inline constexpr size_t kSectorBytes = 64;
using ByteMask = uint64_t;

inline ByteMask mask_of(size_t begin, size_t end) noexcept {
  return begin == end ? 0 : ~ByteMask{0} >> (kSectorBytes - (end - begin)) << begin;
}

// Copies the bytes of a sector that `mask` selects, in the largest possible accesses.
template <unsigned Bytes = 16>
void transfer_masked(std::byte* to, const std::byte* from, ByteMask mask) noexcept {
  constexpr ByteMask kAll = Bytes == 64 ? ~ByteMask{0} : (ByteMask{1} << Bytes) - 1;
  while (mask != 0) {
    const unsigned at = static_cast<unsigned>(std::countr_zero(mask)) / Bytes * Bytes;
    const ByteMask piece = mask >> at & kAll;
    if (piece == kAll) {
      copy_whole<Bytes>(to + at, from + at);
    } else if constexpr (Bytes > 1) {
      transfer_masked<Bytes / 2>(to + at, from + at, piece);
    }
    mask &= ~(kAll << at);
  }
}

class Random {
 public:
  explicit Random(uint64_t seed) noexcept : state_(seed) {}

  // SplitMix64 (Steele, Lea and Flood 2014): all seeds, including 0, are equally good.
  uint64_t next() noexcept {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  size_t below(size_t count) noexcept { return static_cast<size_t>(next() % count); }

 private:
  uint64_t state_;
};

// Counts down to the next eviction.
class Evictions {
 public:
  Evictions(uint64_t period, Random& random) noexcept : period_(period) { start(random); }
  bool due(Random& random) noexcept {
    if (--left_ != 0) return false;
    start(random);
    return true;
  }

 private:
  void start(Random& random) noexcept {
    left_ =
        period_ == 0 ? std::numeric_limits<uint64_t>::max() : 1 + random.next() % (2 * period_ - 1);
  }
  const uint64_t period_;  // 0: never
  uint64_t left_ = 0;
};

template <size_t Bytes>
struct Line {
  static constexpr size_t kSectors = Bytes / kSectorBytes;

  std::byte* home = nullptr;  // the line's place in host memory
  uint32_t place = 0;         // in SetAssociative::used_
  bool invalidated = false;   // L2: not accessed since an invalidation that dirty bytes survived
  Probes* probes = nullptr;   // L2: of a peer's memory: hears when dirty bytes are written back
  std::array<ByteMask, kSectors> valid{};
  std::array<ByteMask, kSectors> dirty{};
  alignas(8) std::array<std::byte, Bytes> data;

  bool is_dirty() const noexcept {
    return std::any_of(dirty.begin(), dirty.end(), [](ByteMask mask) { return mask != 0; });
  }
};

// A set-associative cache of lines, found by their home. The owner decides how a line is replaced.
template <size_t Bytes>
class SetAssociative {
 public:
  using Entry = Line<Bytes>;

  SetAssociative(size_t size_bytes, unsigned ways)
      : ways_(ways), sets_(size_bytes / Bytes / ways) {}

  static std::byte* home_of(std::byte* host) noexcept {
    return host - reinterpret_cast<uintptr_t>(host) % Bytes;
  }

  Entry* find(std::byte* home) noexcept {
    if (used_.empty()) return nullptr;
    const size_t set = set_of(home);
    for (size_t index = set; index < set + ways_; ++index)
      if (homes_[index] == home) return &lines_[index];
    return nullptr;
  }

  // Returns a line for `home`, which must have none: a free line, otherwise one of its set after
  // `replace(line)`.
  template <class Replace>
  Entry& add(std::byte* home, Random& random, Replace&& replace) {
    if (lines_.empty()) {
      lines_.resize(sets_ * ways_);
      homes_.resize(sets_ * ways_);
    }
    const auto set = homes_.begin() + static_cast<ptrdiff_t>(set_of(home));
    auto free = std::find(set, set + ways_, nullptr);
    if (free == set + ways_) {
      free = set + static_cast<ptrdiff_t>(random.below(ways_));
      Entry& old = lines_[static_cast<size_t>(free - homes_.begin())];
      replace(old);
      drop(old);
    }
    *free = home;
    const auto index = static_cast<uint32_t>(free - homes_.begin());
    Entry& line = lines_[index];
    line.home = home;
    line.valid = {};
    line.dirty = {};
    line.invalidated = false;
    line.probes = nullptr;
    line.place = static_cast<uint32_t>(used_.size());
    used_.push_back(index);
    return line;
  }

  void drop(Entry& line) noexcept {
    homes_[used_[line.place]] = nullptr;
    const uint32_t last = used_.back();
    used_[line.place] = last;
    lines_[last].place = line.place;
    used_.pop_back();
  }

  // Drops all lines. Returns their number.
  size_t clear() noexcept {
    const size_t lines = used_.size();
    for (const uint32_t index : used_) homes_[index] = nullptr;
    used_.clear();
    return lines;
  }

  Entry* any(Random& random) noexcept {
    return used_.empty() ? nullptr : &lines_[used_[random.below(used_.size())]];
  }

  // `visit` may drop the line that it is given.
  template <class Visit>
  void for_each(Visit&& visit) noexcept {
    for (size_t at = used_.size(); at-- > 0;) visit(lines_[used_[at]]);
  }

 private:
  // Index of the set's first line.
  size_t set_of(std::byte* home) const noexcept {
    return reinterpret_cast<uintptr_t>(home) / Bytes % sets_ * ways_;
  }

  const unsigned ways_;
  const size_t sets_;
  std::vector<Entry> lines_;  // empty until the first line is added
  // Homes of the lines, contiguous because every access searches them; null: the line is free.
  std::vector<std::byte*> homes_;
  std::vector<uint32_t> used_;  // indices of used lines, in any order
};

}  // namespace uptempo::vgpu
