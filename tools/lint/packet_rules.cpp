#include "tools/lint/packet_rules.hpp"

#include <algorithm>

namespace uptempo::lint {

void Tally::add(RecordNumber record, uint32_t count) noexcept {
  for (size_t i = size_; i-- > 0;) {
    if (items_[i].record != record) continue;
    items_[i].count += count;
    return;
  }
  if (size_ < items_.size()) items_[size_++] = {record, count};
}

void PacketRules::packet(const PacketFacts& facts, Ledger& ledger) noexcept {
  if (facts.barrier && (facts.all_before_complete || held_))
    ledger.add(facts.record, Count::idle_barriers);
  held_ = facts.holds && facts.barrier;

  if (facts.waits || facts.opaque) {
    acquirer_ = kNone;
  } else if (facts.system_acquire) {
    if (acquirer_ == kNone) {
      if (facts.starts_after_doorbell) acquirer_ = facts.index;
    } else {
      wide_acquires_.add(facts.record);
      first_acquirer_ = std::min(first_acquirer_, acquirer_);
    }
  }

  if (facts.opaque) {
    releases_.clear();
    ordered_.clear();
    return;
  }
  if (facts.barrier) {
    ordered_.add_all(releases_);
    releases_.clear();
  }
  if (facts.signals) {
    if (facts.system_release) ordered_.count_in(ledger, Count::wide_releases);
    ordered_.clear();
  } else if (facts.system_release) {
    releases_.add(facts.record);
  }
}

void PacketRules::end_doorbell(bool alone, uint64_t read_index, Ledger& ledger) noexcept {
  if (!has_wide_acquires()) return;
  if (alone && read_index <= first_acquirer_) wide_acquires_.count_in(ledger, Count::wide_acquires);
  wide_acquires_.clear();
  first_acquirer_ = kNone;
}

void PacketRules::gap() noexcept {
  acquirer_ = first_acquirer_ = kNone;
  wide_acquires_.clear();
  releases_.clear();
  ordered_.clear();
  held_ = false;
}

}  // namespace uptempo::lint
