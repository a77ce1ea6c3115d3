// What a wave knows of the waves of other workgroups: a sparse vector clock. For each wave, it has
// the clock up to which that wave's accesses happened before.
//
// Workgroups that know nearly the same share nearly all memory: the clock is a persistent tree of
// 16 branches, whose leaves are workgroups. A copy costs a reference. A join costs the parts in
// which both differ, so a chain of N workgroups costs N log N.
//
// Thread safety: thread-compatible; copies may share memory among threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

namespace uptempo::vgpu::races {

class FarClock {
 public:
  static constexpr unsigned kWaves = 16;  // of a workgroup
  static constexpr unsigned kMostGroupBits = 24;
  using Leaf = std::array<uint32_t, kWaves>;

  bool empty() const noexcept { return root_ == nullptr; }
  // 0: nothing is known of it.
  uint32_t of(uint32_t group, unsigned wave) const noexcept {
    const Leaf* const found = leaf(group);
    return found == nullptr ? 0 : (*found)[wave];
  }
  const Leaf* leaf(uint32_t group) const noexcept;

  void join(const FarClock& other);
  void join(uint32_t group, const Leaf& leaf);

 private:
  static constexpr unsigned kBits = 4, kLevels = kMostGroupBits / kBits;
  using Ref = std::shared_ptr<const void>;  // an Inner, at the last level a Leaf
  using Inner = std::array<Ref, 1u << kBits>;

  static const Inner& inner(const Ref& node) noexcept {
    return *static_cast<const Inner*>(node.get());
  }
  static const Leaf& leaf_of(const Ref& node) noexcept {
    return *static_cast<const Leaf*>(node.get());
  }
  static Ref joined(const Ref& one, const Ref& other, unsigned level);
  static Ref with(const Ref& node, uint32_t group, const Leaf& leaf, unsigned level);

  // A tree of few levels suffices for small group numbers: the root is at `level_`.
  static unsigned level_for(uint32_t group) noexcept;
  void grow(unsigned levels);

  Ref root_;
  unsigned levels_ = 0;  // of inner nodes below and with the root
};

}  // namespace uptempo::vgpu::races
