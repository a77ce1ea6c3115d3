#include "engine/dispatch/fence_relations.hpp"

#include <algorithm>

namespace uptempo::detail {

void FenceRelations::find(std::span<const PacketIntent> packets, std::span<const AccessRange> accesses,
                          bool overwrites_are_handed_over) {
  segments_.cut(accesses);
  states_.assign(segments_.size(), {});
  written_.clear();
  hand_overs_.clear();
  comes_after_.resize(packets.size());
  last_reader_.assign(packets.size(), 0);
  everything_ = last_ = 0;
  for (uint32_t i = 0; i < packets.size(); ++i) {
    if (packets[i].declared) {
      touch(i, packets[i], accesses, overwrites_are_handed_over);
    } else {
      touch_everything(i);
    }
  }
}

void FenceRelations::touch_everything(uint32_t packet) {
  comes_after_[packet] = last_;
  hand_over(everything_, packet);
  for (const uint32_t segment : written_) hand_over(states_[segment].writer, packet);
  written_.clear();
  everything_ = last_ = packet + 1;
}

void FenceRelations::touch(uint32_t packet, const PacketIntent& intent, std::span<const AccessRange> accesses,
                           bool overwrites_are_handed_over) {
  uint32_t after = 0;
  bool touches = false;
  // First all, then what they leave behind: a dispatch may read and write the same bytes.
  for (uint32_t i = intent.first_access; i < intent.first_access + intent.access_count; ++i) {
    const AccessSegments::Run& run = segments_.of(i);
    const bool writes = accesses[i].writes;
    for (uint32_t segment = run.first; segment < run.last; ++segment) {
      const Segment& state = states_[segment];
      const uint32_t writer = std::max(state.writer, everything_);
      after = std::max(after, writes ? std::max(state.user, everything_) : writer);
      if (!writes || overwrites_are_handed_over) hand_over(writer, packet);
      touches = true;
    }
  }
  for (uint32_t i = intent.first_access; i < intent.first_access + intent.access_count; ++i) {
    const AccessSegments::Run& run = segments_.of(i);
    for (uint32_t segment = run.first; segment < run.last; ++segment) {
      Segment& state = states_[segment];
      state.user = packet + 1;
      if (!accesses[i].writes) continue;
      if (state.writer <= everything_) written_.push_back(segment);
      state.writer = packet + 1;
    }
  }
  comes_after_[packet] = after;
  if (touches) last_ = packet + 1;
}

void FenceRelations::hand_over(uint32_t writer_plus_one, uint32_t reader) {
  if (writer_plus_one == 0 || last_reader_[writer_plus_one - 1] == reader + 1) return;
  last_reader_[writer_plus_one - 1] = reader + 1;
  hand_overs_.push_back({writer_plus_one - 1, reader});
}

}  // namespace uptempo::detail
