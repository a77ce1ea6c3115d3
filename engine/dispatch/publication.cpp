#include "engine/dispatch/publication.hpp"

#include <array>

namespace uptempo::detail {
namespace {

using aql::PacketType;

uint16_t dispatch_header(aql::HeaderFlags flags) noexcept {
  return aql::make_header(PacketType::kernel_dispatch, flags);
}

}  // namespace

Publication::PlainHeaders Publication::plan_plain(FencePolicy policy) noexcept {
  static constexpr std::array<PacketIntent, 3> nothing_said{};
  std::array<PacketPlan, 3> plans;
  plan_fences(std::span(nothing_said).first(1), {}, policy, std::span(plans).first(1));
  const uint16_t alone = dispatch_header(plans[0].flags);
  plan_fences(nothing_said, {}, policy, plans);
  return {alone, dispatch_header(plans[0].flags), dispatch_header(plans[1].flags),
          dispatch_header(plans[2].flags)};
}

Publication::Publication(FencePolicy the_policy) : policy(the_policy), plain_(plan_plain(the_policy)) {}

PacketIntent& Publication::intent_of_last() {
  const auto last = static_cast<uint32_t>(packets.size() - 1);
  if (said.empty() || said.back().packet != last)
    said.push_back({.packet = last, .intent = {}, .header = dispatch_header({})});
  return said.back().intent;
}

void Publication::put(aql::Packet64& place, const aql::Packet64& finished) {
  place = finished;
  place.word[0] = aql::first_word(aql::invalid_header, finished.setup());
  const aql::HeaderFlags flags = aql::header_flags(finished.header());
  intent_of_last() = {.as_it_is = true,
                      .without_barrier = flags.barrier == aql::Barrier::off,
                      .acquire = flags.acquire,
                      .release = flags.release};
  said.back().header = finished.header();
}

void Publication::put_barrier(aql::Packet64& place) {
  put(place, aql::to_packet(aql::BarrierAnd{}));
  said.back().intent = {};
}

void Publication::plan() {
  planned_ = packets.size();
  plans_.clear();
  if (is_plain()) {
    plain_interior_ = planned_ > 2 ? planned_ - 2 : 0;
    return;
  }
  plain_interior_ = 0;
  intents_.assign(planned_, {});
  headers_.assign(planned_, dispatch_header({}));
  for (const Said& what : said) {
    intents_[what.packet] = what.intent;
    headers_[what.packet] = what.header;
  }
  plans_.resize(planned_);
  plan_fences(intents_, accesses, policy, plans_);
  for (size_t i = 0; i < planned_; ++i)
    if (!intents_[i].as_it_is) headers_[i] = aql::with_flags(headers_[i], plans_[i].flags);
}

uint16_t Publication::header_of_other(uint64_t packet) const noexcept {
  if (!is_plain()) return headers_[packet];
  if (packet != 0) return plain_.last;
  return planned_ == 1 ? plain_.alone : plain_.first;
}

void Publication::put_signal(uint64_t packet, aql::Packet64& slot) const noexcept {
  const hsa_signal_t signal = packet + 1 == planned_           ? completion
                              : packet < timing_signals.size() ? timing_signals[packet]
                                                               : hsa_signal_t{0};
  if (signal.handle != 0) slot.set_completion_signal(signal);
}

std::span<const PacketPlan> Publication::last_plan() {
  if (plans_.empty() && planned_ != 0) {
    intents_.assign(planned_, {});
    plans_.resize(planned_);
    plan_fences(intents_, {}, policy, plans_);
  }
  return plans_;
}

void Publication::reopen() noexcept {
  value = 0;
  completion = {0};
}

void Publication::clear() noexcept {
  packets.clear();
  said.clear();
  accesses.clear();
  timing_signals.clear();
  own_signal = {0};
  value = 0;
  published = 0;
  completion = {0};
}

}  // namespace uptempo::detail
