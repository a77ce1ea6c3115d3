#include "engine/fences/fence_relations.hpp"

#include <algorithm>

namespace uptempo::detail {

void FenceRelations::find(std::span<const Declarations> packets,
                          std::span<const AccessRange> accesses, bool overwrites_are_handed_over) {
  segments_.cut(accesses);
  begin(packets.size());
  for (uint32_t i = 0; i < packets.size(); ++i) {
    if (packets[i].declared) {
      touch(i, packets[i], accesses, overwrites_are_handed_over);
    } else {
      touch_everything(i);
    }
  }
}

void FenceRelations::begin(size_t packets) {
  before_ = everything_ = last_ = end_;
  end_ += packets;
  if (states_.size() < segments_.size()) states_.resize(segments_.size());
  if (last_reader_.size() < packets) last_reader_.resize(packets);
  written_.clear();
  unknown_writers_.clear();
  hand_overs_.clear();
  comes_after_.resize(packets);
}

void FenceRelations::touch_everything(uint32_t packet) {
  comes_after_[packet] = {packet_of(last_)};
  hand_over(everything_, packet);
  for (const uint32_t segment : written_) hand_over(states_[segment].writer, packet);
  for (const uint32_t writer : unknown_writers_) hand_over(count_of(writer), packet);
  written_.clear();
  unknown_writers_.clear();
  everything_ = last_ = count_of(packet);
}

void FenceRelations::touch(uint32_t packet, const Declarations& declarations,
                           std::span<const AccessRange> accesses, bool overwrites_are_handed_over) {
  Count after = before_, dependency = before_;
  bool touches = declarations.depends;
  if (declarations.depends) {
    after = std::max(after, everything_);
    hand_over(everything_, packet);
    unknown_writers_.push_back(packet);
  }
  // Read all states before updating any: a dispatch may read and write the same bytes.
  for (uint32_t i = declarations.first_access;
       i < declarations.first_access + declarations.access_count; ++i) {
    if (accesses[i].is_dependency) {
      const Count on = count_of(static_cast<uint32_t>(accesses[i].begin));
      dependency = std::max(dependency, on);
      hand_over(on, packet);
      continue;
    }
    const AccessSegments::Run& run = segments_.of(i);
    const bool writes = accesses[i].writes;
    for (uint32_t segment = run.first; segment < run.last; ++segment) {
      const Segment& state = states_[segment];
      const Count writer = std::max(state.writer, everything_);
      after = std::max(after, writes ? std::max(state.user, everything_) : writer);
      if (!writes || overwrites_are_handed_over) hand_over(writer, packet);
      touches = true;
    }
  }
  for (uint32_t i = declarations.first_access;
       i < declarations.first_access + declarations.access_count; ++i) {
    const AccessSegments::Run& run = segments_.of(i);
    for (uint32_t segment = run.first; segment < run.last; ++segment) {
      Segment& state = states_[segment];
      state.user = count_of(packet);
      if (!accesses[i].writes) continue;
      if (state.writer <= everything_) written_.push_back(segment);
      state.writer = count_of(packet);
    }
  }
  comes_after_[packet] = {packet_of(std::max(after, dependency)), dependency > after};
  if (touches) last_ = count_of(packet);
}

void FenceRelations::hand_over(Count writer, uint32_t reader) {
  const uint32_t written = packet_of(writer);
  if (written == 0 || last_reader_[written - 1] == count_of(reader)) return;
  last_reader_[written - 1] = count_of(reader);
  hand_overs_.push_back({written - 1, reader});
}

}  // namespace uptempo::detail
