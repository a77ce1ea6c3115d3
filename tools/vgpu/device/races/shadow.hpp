// The accesses of a dispatch's waves to 64 bytes of memory, as far as they can still race.
//
// Bytes with the same history share a segment. A segment keeps at most kEntries accesses. An access
// is dropped when a later one covers it: what races with the dropped one also races with the later
// one.
//
// Thread safety: none; the owner locks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/memory.hpp"

namespace uptempo::vgpu::races {

inline constexpr uint64_t kLineBytes = 64;

// How far an access is atomic.
enum class Reach : uint8_t { plain, workgroup, agent };

// One access of a wave.
struct Stamp {
  static constexpr unsigned kKindBits = 5, kWaveBits = 4;
  static constexpr uint32_t kMostGroups = 1u << (32 - kKindBits - kWaveBits);

  // `released`: a store before which all accesses of the wave had completed.
  static Stamp of(uint32_t group, uint32_t wave, uint32_t clock, GpuAddress instruction,
                  Access access, Reach reach, bool released) noexcept {
    const uint32_t kind = static_cast<uint32_t>(reach) | (access != Access::read ? 4u : 0u) |
                          (access == Access::atomic ? 8u : 0u) | (released ? 16u : 0u);
    return {(group << kWaveBits | wave) << kKindBits | kind, clock,
            static_cast<uint32_t>(instruction / 4)};
  }

  uint32_t who = 0;
  uint32_t clock = 0;  // of its wave, from 1 on; 0: no access
  uint32_t place = 0;  // low bits of the instruction's address / 4

  uint32_t number() const noexcept { return who >> kKindBits; }  // of the wave, in the dispatch
  uint32_t group() const noexcept { return who >> (kKindBits + kWaveBits); }
  uint32_t wave() const noexcept { return who >> kKindBits & ((1u << kWaveBits) - 1); }
  Reach reach() const noexcept { return static_cast<Reach>(who & 3); }
  bool writes() const noexcept { return (who & 4) != 0; }
  bool is_atomic_update() const noexcept { return (who & 8) != 0; }
  bool released() const noexcept { return (who & 16) != 0; }
  bool operator==(const Stamp&) const = default;

  Access access() const noexcept {
    return is_atomic_update() ? Access::atomic : writes() ? Access::write : Access::read;
  }
  // Whether every access that races with `earlier` also races with this one, provided that it is
  // ordered after both or neither.
  bool covers(const Stamp& earlier) const noexcept {
    return (writes() || !earlier.writes()) && reach() <= earlier.reach() &&
           (!released() || earlier.released() || !earlier.writes());
  }
};
static_assert(sizeof(Stamp) == 12);

struct Segment {
  static constexpr size_t kEntries = 5;

  uint64_t mask = 0;  // bit i: byte i of the line
  uint32_t count = 0;
  std::array<Stamp, kEntries> entries{};

  // The last write of these bytes; clock 0: none is kept.
  Stamp last_write() const noexcept {
    for (uint32_t i = count; i-- > 0;)
      if (entries[i].writes()) return entries[i];
    return {};
  }
  bool same_history(const Segment& other) const noexcept {
    if (count != other.count) return false;
    for (uint32_t i = count; i-- > 0;)  // mostly, the last ones differ
      if (entries[i] != other.entries[i]) return false;
    return true;
  }
  // The last atomic update by this workgroup after entry `i`; clock 0: there is none.
  Stamp update_after(uint32_t i, uint32_t group) const noexcept {
    for (uint32_t j = count; j-- > i + 1;)
      if (entries[j].group() == group && entries[j].is_atomic_update()) return entries[j];
    return {};
  }
  // Appends the access, and drops the entries of `dropped`. If there are too many, it also drops
  // the last read, else a write. The last write is kept, for which an acquire asks, and before it
  // an update by the access's workgroup, for which the other waves' stores ask.
  void record(const Stamp& stamp, uint32_t dropped) noexcept {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; ++i)
      if ((dropped >> i & 1) == 0) entries[kept++] = entries[i];
    if (kept == kEntries) {
      uint32_t victim = kEntries;
      while (victim-- > 0 && entries[victim].writes()) continue;
      if (victim >= kEntries) victim = stamp.writes() ? kEntries - 1 : kEntries - 2;
      if (entries[victim].is_atomic_update() && entries[victim].group() == stamp.group()) --victim;
      for (--kept; victim < kept; ++victim) entries[victim] = entries[victim + 1];
    }
    entries[kept++] = stamp;
    count = kept;
  }
};

class Line {
 public:
  // An access to the bytes of `mask`. `ordered(earlier)`: whether an earlier access happened before
  // it. `race(earlier, update, bytes)` is called for accesses of other waves that are not ordered,
  // one of the two writing. `update` is the last atomic update of the bytes by its workgroup, if
  // that followed `earlier`, else its clock is 0. Returns whether both race, and reports it, or
  // whether the update orders them.
  template <class Ordered, class Race>
  void access(uint64_t mask, const Stamp& stamp, Ordered&& ordered, Race&& race) {
    if (mask == first_.mask && more_.empty()) {  // most accesses
      update(first_, mask, stamp, ordered, race);
      return;
    }
    access_parts(mask, stamp, ordered, race);
  }

  size_t allocated_bytes() const noexcept { return more_.capacity() * sizeof(Segment); }

  // The last write of the byte at `offset`.
  Stamp last_write(unsigned offset) const noexcept {
    for (size_t i = 0; i < size(); ++i)
      if ((at(i).mask >> offset & 1) != 0) return at(i).last_write();
    return {};
  }

 private:
  size_t size() const noexcept { return first_.mask == 0 ? 0 : 1 + more_.size(); }
  Segment& at(size_t i) noexcept { return i == 0 ? first_ : more_[i - 1]; }
  const Segment& at(size_t i) const noexcept { return i == 0 ? first_ : more_[i - 1]; }

  template <class Ordered, class Race>
  static void update(Segment& segment, uint64_t bytes, const Stamp& stamp, Ordered&& ordered,
                     Race&& race) {
    uint32_t dropped = 0;  // bit i: entry i
    for (uint32_t i = 0; i < segment.count; ++i) {
      const Stamp& earlier = segment.entries[i];
      if (earlier == stamp) return;
      // A repetition of a race that has been reported would not help.
      const bool is_past = earlier.number() == stamp.number() || ordered(earlier) ||
                           ((earlier.writes() || stamp.writes()) &&
                            race(earlier, segment.update_after(i, stamp.group()), bytes));
      if (is_past && stamp.covers(earlier)) dropped |= 1u << i;
    }
    segment.record(stamp, dropped);
  }

  template <class Ordered, class Race>
  void access_parts(uint64_t mask, const Stamp& stamp, Ordered&& ordered, Race&& race) {
    const size_t before = size();
    uint64_t changed = 0;  // bit i: segment i. There are at most 64.
    for (size_t i = 0; i < before && mask != 0; ++i) {
      const uint64_t common = at(i).mask & mask;
      if (common == 0) continue;
      mask &= ~common;
      if (common == at(i).mask) {
        update(at(i), common, stamp, ordered, race);
        changed |= uint64_t{1} << i;
        continue;
      }
      Segment part = at(i);
      part.mask = common;
      update(part, common, stamp, ordered, race);
      if (part.same_history(at(i))) continue;
      at(i).mask &= ~common;
      changed |= append(part);
    }
    if (mask != 0) {
      Segment rest;
      rest.mask = mask;
      rest.count = 1;
      rest.entries[0] = stamp;
      changed |= append(rest);
    }
    if (size() > 1) merge(changed);
  }

  // Returns the bit of its number.
  uint64_t append(const Segment& segment) {
    if (first_.mask == 0)
      first_ = segment;
    else
      more_.push_back(segment);
    return uint64_t{1} << (size() - 1);
  }
  // Joins the changed segments with others of the same history.
  void merge(uint64_t changed);

  Segment first_;
  std::vector<Segment> more_;  // empty, or first_ is not
};

}  // namespace uptempo::vgpu::races
