#include "engine/dispatch/publication.hpp"

#include <algorithm>
#include <array>

#include "engine/runtime/error.hpp"

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

Publication::Publication(FencePolicy the_policy, bool is_kept)
    : policy(the_policy), kept(is_kept), plain_(plan_plain(the_policy)) {}

PacketIntent& Publication::intent_of(uint32_t packet) {
  if (kept) replan();
  const auto place = said.empty() || said.back().packet < packet
                         ? said.end()
                         : std::lower_bound(said.begin(), said.end(), packet,
                                            [](const Said& what, uint32_t of) { return what.packet < of; });
  if (place != said.end() && place->packet == packet) return place->intent;
  return said.insert(place, {.packet = packet, .intent = {}, .header = dispatch_header({})})->intent;
}

bool Publication::is_declared(uint32_t packet) const noexcept {
  const auto place = std::lower_bound(said.begin(), said.end(), packet,
                                      [](const Said& what, uint32_t of) { return what.packet < of; });
  return place != said.end() && place->packet == packet && place->intent.declared;
}

bool Publication::forget_intent(uint32_t packet) {
  const auto place = std::lower_bound(said.begin(), said.end(), packet,
                                      [](const Said& what, uint32_t of) { return what.packet < of; });
  if (place == said.end() || place->packet != packet) return false;
  const uint32_t first = place->intent.first_access, count = place->intent.access_count;
  said.erase(place);
  if (count == 0) return true;
  accesses.erase(accesses.begin() + first, accesses.begin() + first + count);
  for (Said& what : said)
    if (what.intent.first_access > first) what.intent.first_access -= count;
  return true;
}

void Publication::put(aql::Packet64& place, const aql::Packet64& finished) {
  // Its header never lies in a slot, not even for a moment.
  const uint32_t word = aql::fill(&place, finished);
  place.word[0] = aql::first_word(aql::invalid_header, static_cast<uint16_t>(word >> 16));
  const aql::HeaderFlags flags = aql::header_flags(finished.header());
  intent_of(static_cast<uint32_t>(packets.size() - 1)) = {
      .as_it_is = true,
      .without_barrier = flags.barrier == aql::Barrier::off,
      .acquire = flags.acquire,
      .release = flags.release};
  said.back().header = finished.header();
}

void Publication::put_barrier(aql::Packet64& place) {
  put(place, aql::to_packet(aql::BarrierAnd{}));
  said.back().intent = {};
}

void Publication::drop_barrier() noexcept {
  packets.drop_last();
  said.pop_back();
  planned_ = 0;
}

void Publication::plan() {
  if (kept && planned_ == packets.size()) return;
  planned_ = packets.size();
  plans_.clear();
  if (is_plain()) return;
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

uint16_t Publication::header(uint64_t packet) const noexcept {
  if (!is_plain()) return headers_[packet];
  if (packet + 1 == planned_) return packet == 0 ? plain_.alone : plain_.last;
  return packet == 0 ? plain_.first : plain_.interior;
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
  timing_signals.clear();
  value = 0;
  published = 0;
  completion = {0};
}

void Publication::clear() noexcept {
  packets.clear();
  said.clear();
  accesses.clear();
  own_signal = {0};
  reopen();
}

namespace {

PacketIntent& intent(const PacketRef& packet) {
  if (packet.generation == packet.publication->touched) return packet.publication->intent_of(packet.packet);
  throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "CommandRef",
               .asked = "to say more about a packet",
               .found = "its batch has been touched since, or its recording",
               .remedy = "say everything about a dispatch before the next call"});
}

}  // namespace

void declare(const PacketRef& packet, const void* data, size_t bytes, bool writes) {
  std::vector<AccessRange>& accesses = packet.publication->accesses;
  PacketIntent& said = intent(packet);
  if (!said.declared) {
    said.declared = true;
    said.first_access = static_cast<uint32_t>(accesses.size());
  }
  if (bytes == 0) return;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  accesses.push_back({begin, begin + bytes, writes});
  ++said.access_count;
}

void observe(const PacketRef& packet, Observer observer) { intent(packet).observer = observer; }

void set_fences(const PacketRef& packet, aql::FenceScope acquire, aql::FenceScope release) {
  PacketIntent& said = intent(packet);
  said.explicit_fences = true;
  said.acquire = acquire;
  said.release = release;
}

void drop_barrier(const PacketRef& packet) { intent(packet).without_barrier = true; }

}  // namespace uptempo::detail
