// What a wave knows of the waves of other workgroups: a sparse vector clock. For each wave, it has
// the clock up to which that wave's accesses happened before.
//
// Workgroups that know nearly the same share nearly all memory: the clock is a persistent tree of
// 16 branches, whose leaves are workgroups. A copy costs a reference. A join costs the parts in
// which both differ, so a chain of N workgroups costs N log N.
//
// Errors: join() throws std::bad_alloc beyond the budget, and then has no effect.
// Thread safety: thread-compatible; copies may share memory among threads.
#pragma once

#include <array>
#include <cstdint>

#include "device/races/meter.hpp"

namespace uptempo::vgpu::races {

class FarClock {
 public:
  static constexpr unsigned kWaves = 16;  // of a workgroup
  static constexpr unsigned kMostGroupBits = 24;
  using Leaf = std::array<uint32_t, kWaves>;

  bool empty() const noexcept { return !root_; }
  // 0: nothing is known of it.
  uint32_t of(uint32_t group, unsigned wave) const noexcept {
    const Leaf* const found = leaf(group);
    return found == nullptr ? 0 : (*found)[wave];
  }
  const Leaf* leaf(uint32_t group) const noexcept;

  // Return whether they have changed anything.
  bool join(const FarClock& other, Meter& meter);
  bool join(uint32_t group, const Leaf& leaf, Meter& meter);

 private:
  static constexpr unsigned kBits = 4, kLevels = kMostGroupBits / kBits;
  using Node = Ref<const Counted>;  // an Inner, at the last level an End
  struct Inner;
  struct End;

  static const Inner& inner(const Node& node) noexcept;
  static const Leaf& leaf_of(const Node& node) noexcept;
  static Node made(const Leaf& leaf, Meter& meter);
  static Node joined(const Node& one, const Node& other, unsigned level, Meter& meter);
  static Node with(const Node& node, uint32_t group, const Leaf& leaf, unsigned level,
                   Meter& meter);
  static Node grown(Node root, unsigned from, unsigned to, Meter& meter);

  // A tree of few levels suffices for small group numbers: the root is at `levels_`.
  static unsigned levels_for(uint32_t group) noexcept;

  Node root_;
  unsigned levels_ = 0;  // of inner nodes below and with the root
};

}  // namespace uptempo::vgpu::races
