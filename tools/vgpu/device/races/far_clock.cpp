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

unsigned FarClock::level_for(uint32_t group) noexcept {
  unsigned levels = 1;
  while (group >> (kBits * levels) != 0) ++levels;
  return levels;
}

void FarClock::grow(unsigned levels) {
  for (; levels_ < levels; ++levels_) {
    if (root_ == nullptr) continue;
    auto above = std::make_shared<Inner>();
    (*above)[0] = std::move(root_);
    root_ = std::move(above);
  }
}

const FarClock::Leaf* FarClock::leaf(uint32_t group) const noexcept {
  if (root_ == nullptr || group >> (kBits * levels_) != 0) return nullptr;
  const Ref* node = &root_;
  for (unsigned level = levels_; level-- > 0;) {
    node = &inner(*node)[group >> (kBits * level) & ((1u << kBits) - 1)];
    if (*node == nullptr) return nullptr;
  }
  return &leaf_of(*node);
}

FarClock::Ref FarClock::joined(const Ref& one, const Ref& other, unsigned level) {
  if (one == other || other == nullptr) return one;
  if (one == nullptr) return other;
  if (level == 0) {
    if (covers(leaf_of(one), leaf_of(other))) return one;
    if (covers(leaf_of(other), leaf_of(one))) return other;
    return std::make_shared<Leaf>(larger(leaf_of(one), leaf_of(other)));
  }
  Inner result;
  bool is_one = true, is_other = true;
  for (unsigned i = 0; i < result.size(); ++i) {
    result[i] = joined(inner(one)[i], inner(other)[i], level - 1);
    is_one = is_one && result[i] == inner(one)[i];
    is_other = is_other && result[i] == inner(other)[i];
  }
  if (is_one) return one;
  if (is_other) return other;
  return std::make_shared<Inner>(std::move(result));
}

FarClock::Ref FarClock::with(const Ref& node, uint32_t group, const Leaf& leaf, unsigned level) {
  if (level == 0) {
    if (node != nullptr && covers(leaf_of(node), leaf)) return node;
    return std::make_shared<Leaf>(node == nullptr ? leaf : larger(leaf_of(node), leaf));
  }
  const unsigned at = group >> (kBits * (level - 1)) & ((1u << kBits) - 1);
  Ref below = with(node == nullptr ? nullptr : inner(node)[at], group, leaf, level - 1);
  if (node != nullptr && below == inner(node)[at]) return node;
  auto result = node == nullptr ? std::make_shared<Inner>() : std::make_shared<Inner>(inner(node));
  (*result)[at] = std::move(below);
  return result;
}

void FarClock::join(const FarClock& other) {
  if (other.root_ == nullptr || other.root_ == root_) return;
  if (root_ == nullptr) {
    *this = other;
    return;
  }
  if (levels_ == other.levels_) {
    root_ = joined(root_, other.root_, levels_);
    return;
  }
  FarClock raised = other;
  raised.grow(levels_);
  grow(raised.levels_);
  root_ = joined(root_, raised.root_, levels_);
}

void FarClock::join(uint32_t group, const Leaf& leaf) {
  grow(level_for(group));
  root_ = with(root_, group, leaf, levels_);
}

}  // namespace uptempo::vgpu::races
