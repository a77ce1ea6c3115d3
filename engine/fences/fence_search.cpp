#include "engine/fences/fence_search.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

namespace uptempo::detail {
namespace {

using aql::Barrier;
using aql::FenceScope;

constexpr uint32_t kMostPackets = 32;

// One bit per packet or epoch.
using Set = uint32_t;
constexpr Set only(uint32_t i) noexcept { return Set{1} << i; }
constexpr Set below(uint32_t i) noexcept { return i >= 32 ? ~Set{0} : only(i) - 1; }
// Packets after i and no later than j.
constexpr Set between(uint32_t i, uint32_t j) noexcept { return below(j + 1) & ~below(i + 1); }

class Search {
 public:
  Search(const FenceRelations& relations, std::span<const PacketPlan> plans) noexcept
      : relations_(relations), count_(static_cast<uint32_t>(plans.size())) {
    for (uint32_t i = 0; i < count_; ++i) {
      const PacketPlan& plan = plans[i];
      if (plan.flags.barrier == Barrier::on) given_ |= only(i);
      if (releases(plan) && plan.release != ScopeReason::hand_over) released_ |= only(i);
      best_ += (plan.acquire == ScopeReason::hand_over) + (plan.release == ScopeReason::hand_over);
    }
  }

  struct Choice {
    Set barriers = 0;
    Set acquires = 0;  // epochs; epoch 0 begins with packet 0
    Set releases = 0;  // packets that release for hand-overs
  };

  // Empty if the given plan cannot be improved.
  std::optional<Choice> run() noexcept {
    if (least() == best_) return {};
    std::optional<Choice> found;
    const Set ends = only(0) | only(count_ - 1), inner = below(count_) & ~ends;
    const int bits = std::popcount(given_ & inner);
    // Tries all subsets of the inner packets with the same number of bits.
    for (Set chosen = inner;; chosen = (chosen - 1) & inner) {
      if (std::popcount(chosen) == bits && in_order(chosen | ends))
        if (try_barriers(chosen | ends)) found = best_choice_;
      if (chosen == 0) return found;
    }
  }

 private:
  bool in_order(Set barriers) const noexcept {
    for (uint32_t i = 0; i < count_; ++i) {
      const uint32_t after = relations_.comes_after(i);
      if (after != 0 && (barriers & between(after - 1, i)) == 0) return false;
    }
    return true;
  }

  // Lower bound of agent fences over all plans with as few barrier bits.
  uint32_t least() const noexcept {
    // The fewest barrier bits that order requires among packets up to i, and among those after j.
    std::array<uint32_t, kMostPackets> up_to{}, behind{};
    uint32_t bits = 0;
    for (uint32_t i = 0, since = 0; i < count_; ++i) {
      if (i == 0 || i + 1 == count_ || relations_.comes_after(i) > since) {
        since = i;
        ++bits;
      }
      up_to[i] = bits;
    }
    // `next`: first packet after j with a barrier bit if bits are placed as early as possible.
    // `counted`: number of such bits.
    uint32_t next = count_ - 1, counted = 1;
    for (uint32_t j = count_ - 1; j-- > 0;) {
      bool is_needed = false;  // bit required at j + 1: a packet before the next bit comes after j
      for (uint32_t i = j + 1; i < next; ++i) is_needed |= relations_.comes_after(i) == j + 1;
      if (is_needed) {
        next = j + 1;
        ++counted;
      }
      behind[j] = counted;
    }
    uint32_t acquires = 0, served = 0;  // readers in disjoint stretches need one acquire each
    Set forced = 0;                     // writers that must release themselves
    for (const HandOver& pair : relations_.hand_overs()) {
      if (acquires == 0 || pair.writer >= served) {
        ++acquires;
        served = pair.reader;
      }
      if (bits - up_to[pair.writer] - behind[pair.reader] <= 1) forced |= only(pair.writer);
    }
    return acquires + static_cast<uint32_t>(std::popcount(forced & ~released_));
  }

  bool try_barriers(Set barriers) noexcept {
    std::array<uint32_t, kMostPackets> epoch{};
    for (uint32_t i = 0; i < count_; ++i)
      epoch[i] = static_cast<uint32_t>(std::popcount(barriers & below(i + 1))) - 1;
    const Set epochs = below(epoch[count_ - 1] + 1) & ~only(0);
    bool better = false;
    for (Set acquires = epochs;; acquires = (acquires - 1) & epochs) {
      if (static_cast<uint32_t>(std::popcount(acquires)) < best_)
        better |= try_acquires(barriers, epoch, acquires);
      if (acquires == 0) return better;
    }
  }

  bool try_acquires(Set barriers, const std::array<uint32_t, kMostPackets>& epoch,
                    Set acquires) noexcept {
    // Per writer: the first epoch that acquires for one of its readers; 0: none.
    std::array<uint32_t, kMostPackets> due{};
    for (const HandOver& pair : relations_.hand_overs()) {
      const Set serving = acquires & between(epoch[pair.writer], epoch[pair.reader]);
      if (serving == 0) return false;
      const auto last = static_cast<uint32_t>(std::bit_width(serving)) - 1;
      if (due[pair.writer] == 0 || last < due[pair.writer]) due[pair.writer] = last;
    }
    Set released = 0, in_epochs = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      if (due[i] == epoch[i] + 1 && (released_ & only(i)) == 0) released |= only(i);
      if (((released | released_) & only(i)) != 0) in_epochs |= only(epoch[i]);
    }
    for (uint32_t acquire = 2; acquire <= epoch[count_ - 1]; ++acquire) {
      for (uint32_t i = 0; i < count_; ++i) {
        if (due[i] != acquire || ((released | released_) & only(i)) != 0) continue;
        if ((in_epochs & between(epoch[i], acquire - 1)) != 0) continue;
        // The last packet of the epoch before the acquire. It has no release yet.
        uint32_t last = i;
        while (epoch[last + 1] != acquire) ++last;
        released |= only(last);
        in_epochs |= only(acquire - 1);
      }
    }
    const auto cost = static_cast<uint32_t>(std::popcount(acquires) + std::popcount(released));
    if (cost >= best_) return false;
    best_ = cost;
    best_choice_ = {barriers, acquires, released};
    return true;
  }

  const FenceRelations& relations_;
  const uint32_t count_;
  Set given_ = 0;     // barrier bits of the given plan
  Set released_ = 0;  // packets that release regardless of hand-overs
  uint32_t best_ = 0;
  Choice best_choice_;
};

void write(const Search::Choice& choice, const FenceRelations& relations,
           std::span<PacketPlan> plans) noexcept {
  const auto count = static_cast<uint32_t>(plans.size());
  std::array<uint32_t, kMostPackets> epoch{};
  for (uint32_t i = 0; i < count; ++i) {
    PacketPlan& plan = plans[i];
    epoch[i] = static_cast<uint32_t>(std::popcount(choice.barriers & below(i + 1))) - 1;
    if (i != 0 && i + 1 != count) {
      plan.flags.barrier = Barrier::off;
      plan.barrier = BarrierReason::independent;
    }
    if (plan.acquire == ScopeReason::hand_over) {
      plan.flags.acquire = FenceScope::none;
      plan.acquire = ScopeReason::nothing_new;
    }
    if (plan.release == ScopeReason::hand_over) {
      plan.flags.release = FenceScope::none;
      plan.release = ScopeReason::no_reader;
    }
  }
  // Reasons: for a barrier bit, a pair that only this bit orders; for a fence, the first hand-over
  // that it serves.
  for (uint32_t later = 0; later < count; ++later) {
    const uint32_t after = relations.comes_after(later);
    if (after == 0) continue;
    const Set keep = choice.barriers & between(after - 1, later);
    const auto first = static_cast<uint32_t>(std::countr_zero(keep));
    PacketPlan& plan = plans[first];
    if (!std::has_single_bit(keep) || plan.flags.barrier == Barrier::on) continue;
    plan.flags.barrier = Barrier::on;
    plan.barrier =
        relations.is_dependency(later) ? BarrierReason::dependency : BarrierReason::conflict;
    plan.conflict = {after - 1, later};
  }
  Set acquired = 0;  // epochs
  for (const HandOver& pair : relations.hand_overs()) {
    const Set serving = choice.acquires & between(epoch[pair.writer], epoch[pair.reader]);
    const auto acquire = static_cast<uint32_t>(std::bit_width(serving)) - 1;
    if ((acquired & only(acquire)) == 0) {
      acquired |= only(acquire);
      // Readers of that epoch come first in the list. If it has none, use its first packet.
      uint32_t at = pair.reader;
      while (epoch[at] > acquire || (at != pair.reader && epoch[at - 1] == acquire)) --at;
      plans[at].flags.acquire = FenceScope::agent;
      plans[at].acquire = ScopeReason::hand_over;
      plans[at].acquired = {pair.writer, pair.reader};
    }
    for (uint32_t i = pair.writer; epoch[i] < acquire; ++i) {
      const bool covers = i == pair.writer || epoch[i] > epoch[pair.writer];
      if (!covers || (choice.releases & only(i)) == 0 || releases(plans[i])) continue;
      plans[i].flags.release = FenceScope::agent;
      plans[i].release = ScopeReason::hand_over;
      plans[i].released = {pair.writer, pair.reader};
    }
  }
}

}  // namespace

void search_fences(std::span<const Declarations> packets, const FenceRelations& relations,
                   std::span<PacketPlan> plans) noexcept {
  if (packets.size() < 3) return;  // nothing to choose
  for (const Declarations& packet : packets)
    if (packet.is_finished || packet.explicit_fences || packet.without_barrier) return;
  if (const auto choice = Search(relations, plans).run()) write(*choice, relations, plans);
}

}  // namespace uptempo::detail
