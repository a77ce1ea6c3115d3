#include <uptempo/dispatch/detail/publication.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <uptempo/dispatch/batch_queue.hpp>
#include <uptempo/fences/fence_planner.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {
namespace {

using aql::PacketType;

uint16_t dispatch_header(aql::HeaderFlags flags) noexcept {
  return aql::make_header(PacketType::kernel_dispatch, flags);
}

}  // namespace

Publication::PlainHeaders Publication::plan_plain() {
  static constexpr std::array<Declarations, 3> kUndeclared{};
  std::array<PacketPlan, 3> plans;
  planner_->plan(std::span(kUndeclared).first(1), {}, std::span(plans).first(1));
  const uint16_t alone = dispatch_header(plans[0].flags);
  planner_->plan(kUndeclared, {}, plans);
  return {alone, dispatch_header(plans[0].flags), dispatch_header(plans[1].flags),
          dispatch_header(plans[2].flags)};
}

Publication::Publication(FencePolicy policy, bool is_kept, const Agent* agent)
    : kept(is_kept),
      planner_(std::make_unique<FencePlanner>(overwrites_on(agent), policy)),
      plain_(plan_plain()),
      plain_costs_{.alone = aql::costs_of(plain_.alone),
                   .ends = aql::costs_of(plain_.first) + aql::costs_of(plain_.last),
                   .interior = aql::costs_of(plain_.interior)},
      plain_flight_{
          .alone = {.first = plain_.alone, .last = plain_.alone},
          .many = {.first = plain_.first, .last = plain_.last, .between = plain_.interior}} {}

Publication::~Publication() {
  if (queue == nullptr) return;
  queue->drop(*this);
  BatchQueue::leave(*this);
}

bool Publication::forget_declarations(uint32_t packet) {
  const Declarations old = find_declared(packet);
  if (old == Declarations{}) return false;
  declared[packet] = {};
  const auto first = accesses.begin() + old.first_access;
  accesses.erase(first, first + old.access_count);
  for (Declarations& other : declared)
    if (other.first_access > old.first_access) other.first_access -= old.access_count;
  if (std::ranges::count(declared, Declarations{}) == std::ssize(declared)) declared.clear();
  return true;
}

void Publication::drop_unused_accesses() {
  size_t used = 0;
  for (const Declarations& each : declared) used += each.access_count;
  if (used == accesses.size()) return;
  std::vector<AccessRange> all;
  all.reserve(used);
  for (Declarations& each : declared) {
    const auto own = std::span(accesses).subspan(each.first_access, each.access_count);
    // Without ranges: as in a packet without declarations.
    each.first_access = own.empty() ? 0 : static_cast<uint32_t>(all.size());
    all.insert(all.end(), own.begin(), own.end());
  }
  accesses = std::move(all);
}

void Publication::put(const aql::Packet64& finished) {
  const aql::HeaderFlags flags = aql::header_flags(finished.header());
  if (aql::packet_type(finished.header()) == PacketType::invalid)
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_PACKET_FORMAT,
                 .call = kept ? "Recording::raw" : "BatchSubmitter::raw",
                 .asked = fmt::format("a packet with header 0x{:04x}", finished.header()),
                 .found = "its type is INVALID: the packet processor would wait for it forever",
                 .remedy = "give the packet its final header"});
  // Its kernel is unknown here and may read its packet. Vendor packets may also be dispatches.
  const PacketType type = aql::packet_type(finished.header());
  if (type == PacketType::kernel_dispatch || type == PacketType::vendor_specific)
    holds_slots = true;
  declarations_of(static_cast<uint32_t>(packets.size())) = {
      .is_finished = true,
      .without_barrier = flags.barrier == aql::Barrier::off,
      .acquire = flags.acquire,
      .release = flags.release};
  // last, after everything that may throw
  aql::store_behind_gate(std::span(&packets.add(), 1), &finished);
}

void Publication::put_barrier() {
  put(aql::to_packet(aql::BarrierAnd{}));
  declared.back() = {.declared = true};  // it accesses nothing
}

void Publication::drop_barrier() noexcept {
  packets.drop_last();
  declared.pop_back();
  planned_ = 0;
}

void Publication::make_plan(size_t count) {
  forget_plan();
  plans_.resize(count);
  planner_->plan(declared, accesses, plans_);
  if (kernargs_go_stale_in_l2) acquire_kernargs();
  if (kept) return;  // a kept batch compares nothing: replan() invalidates its plan
  last_.accesses = accesses;
  last_.declared = declared;  // last: until then the plan is not known
}

// An acquire of agent scope leaves old bytes of a reused block in L2. The first packet whose header
// is the engine's serves all later ones.
void Publication::acquire_kernargs() noexcept {
  const auto first = std::ranges::find(declared, false, &Declarations::is_finished);
  if (first == declared.end()) return;
  PacketPlan& plan = plans_[static_cast<size_t>(first - declared.begin())];
  if (plan.flags.acquire == aql::FenceScope::system) return;
  plan.flags.acquire = aql::FenceScope::system;
  plan.acquire = ScopeReason::stale_kernargs;
}

void Publication::plan_packets(size_t count) {
  declared.resize(count);
  const bool are_known =
      last_.declared.size() == count &&
      std::memcmp(last_.declared.data(), declared.data(), count * sizeof(Declarations)) == 0;
  if (!are_known || last_.accesses != accesses) make_plan(count);
  planned_costs_ = {};
  for (size_t i = 0; i < count; ++i) {
    aql::Packet64& packet = packets[i];
    // Finished packets already have these flags.
    const uint16_t header = aql::with_flags(packet.header(), plans_[i].flags);
    planned_costs_ += aql::costs_of(header);
    if (!declared[i].is_finished) packet.word[0] = aql::first_word(header, packet.setup());
  }
}

aql::HeaderCosts Publication::costs_by_packet(uint64_t from, uint64_t count) const noexcept {
  aql::HeaderCosts sum{};
  for (uint64_t i = from; i < from + count; ++i) sum += aql::costs_of(header(i));
  return sum;
}

void Publication::emit(uint64_t first, std::span<aql::Packet64> slots) noexcept {
  for (size_t done = 0; done < slots.size();) {
    const size_t i = first + done;
    if (i + 1 == planned_ || i < timing_signals.size()) {
      aql::Packet64& slot = slots[done++];
      const uint32_t word = emit(i, &slot);
      std::atomic_ref(slot.word[0]).store(word, std::memory_order_release);
      continue;
    }
    const std::span<aql::Packet64> to =
        slots.subspan(done, std::min(planned_ - 1 - i, slots.size() - done));
    aql::store_behind_gate(to, &packets[i]);
    done += to.size();
  }
}

std::span<const PacketPlan> Publication::last_plan() {
  if (plans_.empty() && planned_ != 0) {
    plans_.resize(planned_);
    planner_->plan(std::vector<Declarations>(planned_), {}, plans_);
  }
  return plans_;
}

void Publication::end(EndedBy what) noexcept {
  ended_by = what;
  kernargs = {};
  clear();
  packets.close();
}

void refuse_declaration(const Publication& publication) {
  if (publication.published != 0) BatchQueue::refuse_more(publication, "one more declaration");
  throw Error({.code = ErrorCode::misuse,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "CommandRef",
               .asked = "a declaration for a packet",
               .found = "it is no longer the last packet of its batch",
               .remedy = "make all declarations of a dispatch before the next call"});
}

void require_same(const PacketRef& own, const PacketRef& other) {
  if (own.publication == other.publication) return;
  throw Error(
      {.code = ErrorCode::argument,
       .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
       .call = "CommandRef::after",
       .asked = fmt::format("packet {} after packet {} of another batch", own.packet, other.packet),
       .found = "the packets of a batch depend on one another only",
       .remedy = "order the batches by their queue, or by a Signal"});
}

}  // namespace uptempo::detail
