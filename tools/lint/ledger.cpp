#include "tools/lint/ledger.hpp"

namespace uptempo::lint {
namespace {

uint64_t mix(uint64_t a, uint64_t b) noexcept {
  uint64_t value = a * 0x9e3779b97f4a7c15u ^ (b + 0x7f4a7c15u) * 0xc2b2ae3d27d4eb4fu;
  value ^= value >> 32;
  return value * 0x9e3779b97f4a7c15u >> 20;
}

}  // namespace

Ledger::Found Ledger::find(const Pair& pair) noexcept {
  const uint64_t hash = mix(pair.before + pair.queue, pair.packet);
  for (size_t probe = 0; probe < kProbes; ++probe) {
    const auto number = static_cast<RecordNumber>(1 + (hash + probe) % (kRecords - 1));
    Record& record = records_[number];
    uint32_t state = record.state.load(std::memory_order_acquire);
    if (state == kFilled) {
      if (record.pair == pair) return {number, false};
      continue;
    }
    if (state == kFree &&
        record.state.compare_exchange_strong(state, kBeingFilled, std::memory_order_relaxed)) {
      record.pair = pair;
      record.state.store(kFilled, std::memory_order_release);  // publishes the pair
      return {number, true};
    }
  }
  return {kOtherPairs, false};
}

void Ledger::add_site(RecordNumber record, uint64_t place) noexcept {
  const uint64_t hash = mix(record, place);
  for (size_t probe = 0; probe < kProbes; ++probe) {
    Site& site = sites_[(hash + probe) % kSites];
    uint32_t state = site.state.load(std::memory_order_acquire);
    if (state == kFree &&
        site.state.compare_exchange_strong(state, kBeingFilled, std::memory_order_relaxed)) {
      site.record = record;
      site.place = place;
      site.samples.store(1, std::memory_order_relaxed);
      site.state.store(kFilled, std::memory_order_release);
      return;
    }
    if (state == kFilled && site.record == record && site.place == place) {
      site.samples.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
}

}  // namespace uptempo::lint
