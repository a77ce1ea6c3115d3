#include "engine/dispatch/publication.hpp"

#include <algorithm>
#include <array>

namespace uptempo::detail {
namespace {

// The flags of a plain batch's packets. A plan does not tell apart packets of which nothing is said, but for the first and the last one, so that three
// stand for any number.
struct PlainFlags {
  aql::HeaderFlags first, interior, last;
};

PlainFlags plan_plain(FencePolicy policy, size_t packets) noexcept {
  static constexpr std::array<PacketIntent, 3> nothing_said{};
  std::array<PacketPlan, 3> plans;
  const size_t count = std::min(packets, plans.size());
  plan_fences(std::span(nothing_said).first(count), {}, policy, std::span(plans).first(count));
  return {plans[0].flags, plans[1].flags, plans[count - 1].flags};
}

void put_flags(aql::Packet64& packet, aql::HeaderFlags flags) noexcept {
  packet.word[0] =
      aql::first_word(aql::with_flags(packet.header(), flags), static_cast<uint16_t>(packet.word[0] >> 16));
}

}  // namespace

Publication::Publication(FencePolicy the_policy)
    : policy(the_policy), interior(plan_plain(the_policy, 3).interior) {}

PacketIntent& Publication::intent_of_last() {
  const auto last = static_cast<uint32_t>(packets.size() - 1);
  if (said.empty() || said.back().packet != last) said.push_back({last, {}});
  return said.back().intent;
}

void Publication::append(const aql::Packet64& packet, const PacketIntent& intent) {
  packets.push_back(packet);
  intent_of_last() = intent;
}

void Publication::plan() {
  planned_ = packets.size();
  plans_.clear();
  if (!is_plain()) {
    intents_.assign(planned_, {});
    for (const Said& what : said) intents_[what.packet] = what.intent;
    plans_.resize(planned_);
    plan_fences(intents_, accesses, policy, plans_);
    for (size_t i = 0; i < planned_; ++i)
      if (!intents_[i].as_it_is) put_flags(packets[i], plans_[i].flags);
  } else {
    const PlainFlags plain = plan_plain(policy, planned_);
    put_flags(packets.front(), plain.first);
    put_flags(packets.back(), plain.last);
  }
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
  put_flags(packets.back(), interior);
  packets.back().set_completion_signal({0});
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
