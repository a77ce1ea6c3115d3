#include "device/races/far_clock.hpp"

#include <algorithm>
#include <utility>

namespace uptempo::vgpu::races {
namespace {

// Returns whether `one` has everything that `other` has.
bool covers(const FarClock::Leaf& one, const FarClock::Leaf& other) noexcept {
  for (unsigned i = 0; i < FarClock::kWaves; ++i)
    if (one[i] < other[i]) return false;
  return true;
}

FarClock::Leaf larger(const FarClock::Leaf& one, const FarClock::Leaf& other) noexcept {
  FarClock::Leaf result;
  for (unsigned i = 0; i < FarClock::kWaves; ++i) result[i] = std::max(one[i], other[i]);
  return result;
}

}  // namespace

struct FarClock::Inner final : Counted {
  std::array<Node, 1u << kBits> below;
};

struct FarClock::End final : Counted {
  Leaf leaf{};
};

const FarClock::Inner& FarClock::inner(const Node& node) noexcept {
  return static_cast<const Inner&>(*node);
}

const FarClock::Leaf& FarClock::leaf_of(const Node& node) noexcept {
  return static_cast<const End&>(*node).leaf;
}

FarClock::Node FarClock::made(const Leaf& leaf, Meter& meter) {
  const Ref<End> end = make_counted<End>(meter);
  end->leaf = leaf;
  return end;
}

unsigned FarClock::levels_for(uint32_t group) noexcept {
  unsigned levels = 1;
  while (group >> (kBits * levels) != 0) ++levels;
  return levels;
}

FarClock::Node FarClock::grown(Node root, unsigned from, unsigned to, Meter& meter) {
  for (; root && from < to; ++from) {
    const Ref<Inner> above = make_counted<Inner>(meter);
    above->below[0] = std::move(root);
    root = above;
  }
  return root;
}

const FarClock::Leaf* FarClock::leaf(uint32_t group) const noexcept {
  if (!root_ || group >> (kBits * levels_) != 0) return nullptr;
  const Node* node = &root_;
  for (unsigned level = levels_; level-- > 0;) {
    node = &inner(*node).below[group >> (kBits * level) & ((1u << kBits) - 1)];
    if (!*node) return nullptr;
  }
  return &leaf_of(*node);
}

FarClock::Node FarClock::joined(const Node& one, const Node& other, unsigned level, Meter& meter) {
  if (one == other || !other) return one;
  if (!one) return other;
  if (level == 0) {
    if (covers(leaf_of(one), leaf_of(other))) return one;
    if (covers(leaf_of(other), leaf_of(one))) return other;
    return made(larger(leaf_of(one), leaf_of(other)), meter);
  }
  std::array<Node, 1u << kBits> below;
  bool is_one = true, is_other = true;
  for (unsigned i = 0; i < below.size(); ++i) {
    below[i] = joined(inner(one).below[i], inner(other).below[i], level - 1, meter);
    is_one = is_one && below[i] == inner(one).below[i];
    is_other = is_other && below[i] == inner(other).below[i];
  }
  if (is_one) return one;
  if (is_other) return other;
  const Ref<Inner> result = make_counted<Inner>(meter);
  result->below = std::move(below);
  return result;
}

FarClock::Node FarClock::with(const Node& node, uint32_t group, const Leaf& leaf, unsigned level,
                              Meter& meter) {
  if (level == 0) {
    if (!node) return made(leaf, meter);
    return covers(leaf_of(node), leaf) ? node : made(larger(leaf_of(node), leaf), meter);
  }
  const unsigned at = group >> (kBits * (level - 1)) & ((1u << kBits) - 1);
  Node below = with(node ? inner(node).below[at] : Node(), group, leaf, level - 1, meter);
  if (node && below == inner(node).below[at]) return node;
  const Ref<Inner> result = make_counted<Inner>(meter);
  if (node) result->below = inner(node).below;
  result->below[at] = std::move(below);
  return result;
}

bool FarClock::join(const FarClock& other, Meter& meter) {
  if (!other.root_ || other.root_ == root_) return false;
  if (!root_) {
    *this = other;
    return true;
  }
  const unsigned levels = std::max(levels_, other.levels_);
  Node all = joined(grown(root_, levels_, levels, meter),
                    grown(other.root_, other.levels_, levels, meter), levels, meter);
  const bool is_new = all != root_;
  root_ = std::move(all);
  levels_ = levels;
  return is_new;
}

bool FarClock::join(uint32_t group, const Leaf& leaf, Meter& meter) {
  const unsigned levels = std::max(levels_, levels_for(group));
  Node all = with(grown(root_, levels_, levels, meter), group, leaf, levels, meter);
  const bool is_new = all != root_;
  root_ = std::move(all);
  levels_ = levels;
  return is_new;
}

}  // namespace uptempo::vgpu::races
