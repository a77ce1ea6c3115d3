#include "engine/fences/access_segments.hpp"

#include <algorithm>
#include <bit>

namespace uptempo::detail {
namespace {

// Number of ranges kept even if the last plan had fewer.
constexpr size_t kAlwaysRemembered = 1024;

}  // namespace

void AccessSegments::cut(std::span<const AccessRange> ranges) {
  if (known_.size() > kAlwaysRemembered + 2 * ranges.size()) forget();
  if (ids_.size() < ranges.size()) ids_.resize(ranges.size(), 0);
  for (size_t i = 0; i < ranges.size(); ++i) {
    const AccessRange& range = ranges[i];
    if (ids_[i] < known_.size() && known_[ids_[i]].is(range)) continue;
    // A dispatch declares a range that it both reads and writes twice.
    ids_[i] = i != 0 && known_[ids_[i - 1]].is(range) ? ids_[i - 1] : find_or_add(range);
  }
  if (known_.size() != numbered_) number_segments();
}

// Fibonacci hashing. Adjacent ranges of equal size get different slots.
size_t AccessSegments::place_of(uintptr_t begin, uintptr_t end) const noexcept {
  const uint64_t mixed = (begin ^ std::rotl(uint64_t{end}, 32)) * 0x9e3779b97f4a7c15;
  return mixed >> (64 - std::countr_zero(table_.size()));
}

uint32_t AccessSegments::find_or_add(const AccessRange& range) {
  if (table_.size() <= 2 * known_.size()) grow_table();
  for (size_t place = place_of(range.begin, range.end);;
       place = (place + 1) & (table_.size() - 1)) {
    const uint32_t found = table_[place];
    if (found != 0 && known_[found - 1].is(range)) return found - 1;
    if (found != 0) continue;
    known_.push_back({.begin = range.begin, .end = range.end});
    return (table_[place] = static_cast<uint32_t>(known_.size())) - 1;
  }
}

void AccessSegments::grow_table() {
  table_.assign(std::max<size_t>(64, 2 * table_.size()), 0);
  for (uint32_t id = 0; id < known_.size(); ++id) {
    size_t place = place_of(known_[id].begin, known_[id].end);
    while (table_[place] != 0) place = (place + 1) & (table_.size() - 1);
    table_[place] = id + 1;
  }
}

void AccessSegments::forget() noexcept {
  known_.clear();
  numbered_ = 0;
  std::ranges::fill(table_, 0);
}

void AccessSegments::number_segments() {
  cuts_.clear();
  for (const Known& range : known_) {
    cuts_.push_back(range.begin);
    cuts_.push_back(range.end);
  }
  std::ranges::sort(cuts_);
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
  const auto segment_at = [this](uintptr_t address) {
    return static_cast<uint32_t>(std::ranges::lower_bound(cuts_, address) - cuts_.begin());
  };
  for (Known& range : known_) {
    range.first = segment_at(range.begin);
    range.last = std::max(range.first, segment_at(range.end));
  }
  numbered_ = known_.size();
}

}  // namespace uptempo::detail
