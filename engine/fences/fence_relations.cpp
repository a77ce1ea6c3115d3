#include <uptempo/fences/fence_relations.hpp>

#include <algorithm>
#include <utility>

namespace uptempo::detail {

// Number of ranges kept even if the last plan had fewer.
constexpr size_t kAlwaysRemembered = 1024;

void AccessSegments::cut(std::span<const AccessRange> ranges) {
  if (known_.size() > kAlwaysRemembered + 2 * ranges.size()) {
    ranges_.clear();
    known_.clear();
  }
  if (ranges_.size() < ranges.size()) ranges_.resize(ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range range{ranges[i].begin, ranges[i].end};
    if (ranges_[i] != nullptr && ranges_[i]->first == range) continue;
    const auto [known, is_new] = known_.try_emplace(range);
    if (is_new) are_numbered_ = false;
    ranges_[i] = &*known;
  }
  if (!are_numbered_) number_segments();
}

void AccessSegments::number_segments() {
  cuts_.clear();
  for (const auto& [range, segments] : known_) cuts_.insert(cuts_.end(), {range.begin, range.end});
  std::ranges::sort(cuts_);
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
  const auto segment_at = [this](uintptr_t address) {
    return static_cast<uint32_t>(std::ranges::lower_bound(cuts_, address) - cuts_.begin());
  };
  for (auto& [range, segments] : known_) {
    segments.first = segment_at(range.begin);
    segments.last = std::max(segments.first, segment_at(range.end));
  }
  are_numbered_ = true;
}

void FenceRelations::begin(size_t packets, std::span<const AccessRange> accesses) {
  segments_.cut(accesses);
  states_.assign(segments_.size(), {});
  last_reader_.assign(packets, 0);
  written_.clear();
  unknown_writers_.clear();
  packet_ = everything_ = last_ = 0;
}

FenceRelations::Needs FenceRelations::add(const Declarations& packet,
                                          std::span<const AccessRange> accesses) {
  ++packet_;
  writers_.clear();
  if (!packet.declared) return add_undeclared();
  const uint32_t end = packet.first_access + packet.access_count;
  uint32_t after = 0, dependency = 0;
  bool touches = packet.depends;
  if (packet.depends) {
    after = everything_;
    hand_over(everything_);
    unknown_writers_.push_back(packet_);
  }
  // Read all states before updating any: a dispatch may read and write the same bytes.
  for (uint32_t i = packet.first_access; i < end; ++i) {
    if (accesses[i].is_dependency) {
      const auto on = static_cast<uint32_t>(accesses[i].begin) + 1;
      dependency = std::max(dependency, on);
      hand_over(on);
      continue;
    }
    const bool writes = accesses[i].writes;
    for (const uint32_t segment : segments_.of(i)) {
      const Segment& state = states_[segment];
      const uint32_t writer = std::max(state.writer, everything_);
      after = std::max(after, writes ? std::max(state.user, everything_) : writer);
      if (!writes || overwrites_are_handed_over_) hand_over(writer);
      touches = true;
    }
  }
  for (uint32_t i = packet.first_access; i < end; ++i) {
    for (const uint32_t segment : segments_.of(i)) {
      Segment& state = states_[segment];
      state.user = packet_;
      if (!accesses[i].writes) continue;
      if (state.writer <= everything_) written_.push_back(segment);
      state.writer = packet_;
    }
  }
  if (touches) last_ = packet_;
  return {std::max(after, dependency), dependency > after, writers_};
}

FenceRelations::Needs FenceRelations::add_undeclared() {
  hand_over(everything_);
  for (const uint32_t segment : written_) hand_over(states_[segment].writer);
  for (const uint32_t writer : unknown_writers_) hand_over(writer);
  written_.clear();
  unknown_writers_.clear();
  everything_ = packet_;
  return {std::exchange(last_, packet_), false, writers_};
}

void FenceRelations::hand_over(uint32_t writer) {
  if (writer == 0 || last_reader_[writer - 1] == packet_) return;
  last_reader_[writer - 1] = packet_;
  writers_.push_back(writer - 1);
}

}  // namespace uptempo::detail
