#include "cp/scheduler/claims.hpp"

#include <utility>

namespace uptempo::vgpu {

Claims::Claims(Device device) : device_(device) { free_.fill(~uint64_t{0}); }
Claims::~Claims() = default;

Claims::Slot* Claims::reserve(Dispatch& dispatch, uint64_t total) {
  for (size_t group = 0; group < free_.size(); ++group) {
    // acquire: pairs with release(), so that nobody uses the slots any more
    if (free_[group] == 0 && released_[group].load(std::memory_order_relaxed) != 0)
      free_[group] = released_[group].exchange(0, std::memory_order_acquire);
    if (free_[group] == 0) continue;
    if (groups_[group] == nullptr) {
      groups_[group] = std::make_unique<Group>(group * 64, device_.workers);
      groups_in_use_.store(group + 1, std::memory_order_release);
    }
    Slot& slot = slot_at(group * 64 + static_cast<size_t>(std::countr_zero(free_[group])));
    free_[group] &= free_[group] - 1;
    slot.dispatch_.store(&dispatch, std::memory_order_relaxed);
    slot.unended_.store(total, std::memory_order_relaxed);
    return &slot;
  }
  return nullptr;
}

bool Claims::has_room() const noexcept {
  for (size_t group = 0; group < free_.size(); ++group)
    if (free_[group] != 0 || released_[group].load(std::memory_order_relaxed) != 0) return true;
  return false;
}

void Claims::release(Slot& slot) noexcept {
  // seq_cst: see show()
  slot.finished_.store(true, std::memory_order_seq_cst);
  hide(slot);
  slot.dispatch_.store(nullptr, std::memory_order_relaxed);
  released_[slot.index_ / 64].fetch_or(uint64_t{1} << slot.index_ % 64, std::memory_order_release);
}

void Claims::open(Slot& slot, const Deal& deal, bool locked) noexcept {
  slot.finished_.store(false, std::memory_order_relaxed);
  const uint32_t before = slot.generation_.load(std::memory_order_relaxed);
  slot.generation_.store(before + 1, std::memory_order_relaxed);
  // release, each: a worker that sees one of them sees the odd generation, too.
  slot.locked_.store(locked, std::memory_order_release);
  slot.total_.store(deal.total, std::memory_order_release);
  slot.room_.store(deal.room, std::memory_order_release);
  slot.parts_count_.store(deal.parts, std::memory_order_release);
  slot.block_.store(deal.block, std::memory_order_release);
  slot.needs_.store(deal.needs, std::memory_order_release);
  slot.generation_.store(before + 2, std::memory_order_release);
}

std::optional<Claims::Opened> Claims::read(const Slot& slot) noexcept {
  const uint32_t generation = slot.generation_.load(std::memory_order_acquire);
  if (generation % 2 != 0) return std::nullopt;
  // acquire, each: the generation below is loaded after them.
  const Opened opened{
      generation,
      slot.locked_.load(std::memory_order_acquire),
      slot.dispatch_.load(std::memory_order_acquire),
      {slot.total_.load(std::memory_order_acquire),
       slot.parts_count_.load(std::memory_order_acquire),
       slot.block_.load(std::memory_order_acquire), slot.room_.load(std::memory_order_acquire),
       slot.needs_.load(std::memory_order_acquire)}};
  if (slot.generation_.load(std::memory_order_relaxed) != generation) return std::nullopt;
  return opened;
}

uint64_t Claims::close_part(Part& part, uint32_t generation) noexcept {
  uint64_t ticket = part.ticket.load(std::memory_order_relaxed);
  uint64_t next = 0;
  do {
    next = value_in(ticket, generation);
    if (next == kClosed) return kClosed;
  } while (!part.ticket.compare_exchange_weak(ticket, word_of(generation, kClosed),
                                              std::memory_order_acq_rel));
  return next;
}

void Claims::show(Slot& slot, std::optional<PipePriority> priority) noexcept {
  const uint64_t bit = uint64_t{1} << slot.index_ % 64;
  for (size_t each = 0; each < kPipePriorities; ++each)
    if (!priority || each != static_cast<size_t>(*priority))
      shown(slot.index_ / 64, each).fetch_and(~bit, std::memory_order_relaxed);
  if (!priority) return;
  // The worker that ends the last workgroup hides the slot. It takes no lock, so it may have been
  // too early. seq_cst: either it sees the bit, or this thread sees that the slot is finished. The
  // slot is not opened again meanwhile, since that needs the lock.
  shown(slot.index_ / 64, static_cast<size_t>(*priority)).fetch_or(bit, std::memory_order_seq_cst);
  if (slot.finished_.load(std::memory_order_seq_cst)) hide(slot);
}

void Claims::hide(const Slot& slot) noexcept {
  const uint64_t bit = uint64_t{1} << slot.index_ % 64;
  for (size_t each = 0; each < kPipePriorities; ++each)
    if ((shown(slot.index_ / 64, each).load(std::memory_order_seq_cst) & bit) != 0)
      shown(slot.index_ / 64, each).fetch_and(~bit, std::memory_order_relaxed);
}

Dispatch* Claims::current(const Slot& slot, uint32_t generation) noexcept {
  // A slot keeps its generation until it is opened again, which needs the lock. A dispatch with a
  // rest does not finish.
  if (!slot.has_rest_ || slot.generation_.load(std::memory_order_relaxed) != generation)
    return nullptr;
  return slot.dispatch_.load(std::memory_order_relaxed);
}

void Claims::set_rest(Slot& slot, bool has_rest) noexcept { slot.has_rest_ = has_rest; }

bool Claims::end(Slot& slot, uint32_t part, uint64_t count) noexcept {
  // relaxed: the slot's words do not change while these workgroups have not ended.
  const uint32_t generation = slot.generation_.load(std::memory_order_relaxed);
  const Deal deal{.total = slot.total_.load(std::memory_order_relaxed),
                  .parts = slot.parts_count_.load(std::memory_order_relaxed),
                  .block = slot.block_.load(std::memory_order_relaxed)};
  if (deal.parts == 1) return slot.end_units(count);
  std::atomic<uint64_t>& ended = slot.parts_[part].ended;
  uint64_t before = ended.load(std::memory_order_relaxed);
  uint64_t now = 0;
  do {
    now = value_in(before, generation) + count;
  } while (
      !ended.compare_exchange_weak(before, word_of(generation, now), std::memory_order_acq_rel));
  const uint64_t size = deal.size(part);
  return now == size && slot.end_units(size);
}

uint64_t Claims::ended_in(const Slot& slot, const Opened& opened, uint32_t part) noexcept {
  // An added unit that has not ended makes this one too few for a moment.
  if (opened.deal.parts == 1) {
    const uint64_t unended = slot.unended_.load(std::memory_order_acquire);
    return opened.deal.total - std::min(unended, opened.deal.total);
  }
  return value_in(slot.parts_[part].ended.load(std::memory_order_acquire), opened.generation);
}

uint64_t Claims::resident(const Slot& slot, uint64_t rest) noexcept {
  const std::optional<Opened> opened = read(slot);
  uint64_t ended = 0;
  for (uint32_t part = 0; part < opened->deal.parts; ++part) ended += ended_in(slot, *opened, part);
  return opened->deal.total - rest - ended;
}

uint64_t Claims::left(const Slot& slot, uint32_t part) noexcept {
  const std::optional<Opened> opened = read(slot);
  if (!opened) return 0;
  const uint64_t next =
      value_in(slot.parts_[part].ticket.load(std::memory_order_relaxed), opened->generation);
  const uint64_t size = opened->deal.size(part);
  return next < size ? (size - next) * opened->deal.parts : 0;
}

uint64_t Claims::unclaimed(const Slot& slot) noexcept {
  const std::optional<Opened> opened = read(slot);
  if (!opened) return 0;
  uint64_t count = 0;
  for (uint32_t part = 0; part < opened->deal.parts; ++part) {
    const uint64_t size = opened->deal.size(part);
    count +=
        size - std::min(size, value_in(slot.parts_[part].ticket.load(std::memory_order_relaxed),
                                       opened->generation));
  }
  return count;
}

int Claims::highest(const View& view) const noexcept {
  const size_t groups = groups_in_use_.load(std::memory_order_acquire);
  for (size_t priority = kPipePriorities; priority-- > 0;)
    for (size_t group = 0; group < groups; ++group)
      for (uint64_t bits = shown(group, priority).load(std::memory_order_acquire); bits != 0;
           bits &= bits - 1) {
        const size_t index = group * 64 + static_cast<size_t>(std::countr_zero(bits));
        if (slot_at(index).generation_.load(std::memory_order_acquire) != view.exhausted[index])
          return static_cast<int>(priority);
      }
  return -1;
}

std::optional<Claims::Claim> Claims::claim_of(Slot& slot, const Opened& opened,
                                              View& view) const noexcept {
  const Deal& deal = opened.deal;
  const uint32_t home = view.worker % deal.parts;
  Claim claim{};
  if (deal.size(home) > 2 * deal.block) {
    // One other part at each claim. Its worker may sleep, or the system may have taken its core.
    view.compared = (view.compared + 1) % deal.parts;
    const auto next_in = [&](uint32_t part) {
      return value_in(slot.parts_[part].ticket.load(std::memory_order_relaxed), opened.generation);
    };
    if (next_in(view.compared) + deal.block < next_in(home) &&
        claim_part(slot, opened, view.compared, claim) == PartState::claimed)
      return claim;
  }
  bool closed = true;
  for (uint32_t tried = 0; tried < deal.parts; ++tried) {
    const PartState state = claim_part(slot, opened, (home + tried) % deal.parts, claim);
    if (state == PartState::claimed) return claim;
    closed = closed && state == PartState::closed;
  }
  // acquire, in claim_part: if lock() has closed a part, this sees that it has locked the slot.
  if (closed && !slot.locked_.load(std::memory_order_relaxed))
    view.exhausted[slot.index_] = opened.generation;
  return std::nullopt;
}

Claims::PartState Claims::claim_part(Slot& slot, const Opened& opened, uint32_t part,
                                     Claim& claim) const noexcept {
  std::atomic<uint64_t>& word = slot.parts_[part].ticket;
  const uint64_t size = opened.deal.size(part);
  uint64_t ticket = word.load(std::memory_order_acquire);
  for (;;) {
    // Another generation is an earlier one, or this worker is late and the dispatch has finished.
    if (static_cast<int32_t>(generation_of(ticket) - opened.generation) > 0)
      return PartState::closed;
    const uint64_t next = value_in(ticket, opened.generation);
    if (next == kClosed) return PartState::closed;
    uint64_t room = size - next;
    if (!has_room_for(slot, opened, part, next, room)) return PartState::no_room;
    const uint64_t left = size - next;
    const uint64_t count = std::clamp<uint64_t>(std::min(left / 4, room), 1, kMaxChunk);
    const uint64_t after = word_of(opened.generation, count == left ? kClosed : next + count);
    // release: whoever claims next sees what this worker has read and seen.
    if (!word.compare_exchange_weak(ticket, after, std::memory_order_acq_rel,
                                    std::memory_order_acquire))
      continue;
    claim = {opened.dispatch, part, next, next + count};
    return PartState::claimed;
  }
}

// Lowers `room` to the number of workgroups that may become resident. Returns false if there is
// none.
bool Claims::has_room_for(const Slot& slot, const Opened& opened, uint32_t part, uint64_t next,
                          uint64_t& room) const noexcept {
  const Deal& deal = opened.deal;
  if (deal.total > deal.room) {
    const uint64_t resident = next - std::min(ended_in(slot, opened, part), next);
    uint64_t most = deal.room_of(part);
    if (most <= resident) most += borrowed(slot, opened, part);
    if (most <= resident) return false;
    room = std::min(room, most - resident);
  }
  // Beside other dispatches. Every worker may claim at the same time. No division if none of their
  // workgroups holds a place.
  const uint64_t beside = device_.slots.room(device_.units, deal.needs);
  if (beside < kMaxChunk * device_.workers) {
    if (beside == 0) return false;
    room = std::min(room, std::max<uint64_t>(beside / device_.workers, 1));
  }
  return true;
}

// The room of parts of which nothing is left to claim. The first of the other parts has it, so that
// all workgroups of the dispatch together never exceed its room. A part that is closed with more
// workgroups than its own room counts negative.
uint64_t Claims::borrowed(const Slot& slot, const Opened& opened, uint32_t part) noexcept {
  int64_t room = 0;
  for (uint32_t each = 0; each < opened.deal.parts; ++each) {
    if (each == part) continue;
    // acquire: no claim of a closed part follows, and its ends only make more room.
    const uint64_t next =
        value_in(slot.parts_[each].ticket.load(std::memory_order_acquire), opened.generation);
    if (next == kClosed) {
      const uint64_t size = opened.deal.size(each);
      const uint64_t resident = size - std::min(ended_in(slot, opened, each), size);
      room += static_cast<int64_t>(opened.deal.room_of(each)) - static_cast<int64_t>(resident);
    } else if (each < part) {
      return 0;
    }
  }
  return static_cast<uint64_t>(std::max<int64_t>(room, 0));
}

}  // namespace uptempo::vgpu
