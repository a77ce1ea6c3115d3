#include <uptempo/dispatch/pools/lent_blocks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include <uptempo/completion/timeline.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kFewestLines = 64;

}  // namespace

// The line's entry, or the free place for it.
LentBlocks::Line& LentBlocks::find(std::vector<Line>& lines, const std::byte* begin) noexcept {
  // Blocks are close to each other: the multiplication spreads them over the table.
  const uint64_t hash = reinterpret_cast<uintptr_t>(begin) / kLineBytes * 0x9e3779b97f4a7c15u;
  const size_t mask = lines.size() - 1;
  size_t at = hash >> (64 - std::countr_zero(lines.size()));
  while (lines[at].begin != begin && lines[at].begin != nullptr) at = (at + 1) & mask;
  return lines[at];
}

bool LentBlocks::is_current(Lending lending, Timeline& timeline) const noexcept {
  const Place& place = places_[place_of(lending)];
  if (place.number != lending) return false;
  // A failed queue refuses its next submission with a better reason.
  return place.value == 0 || (!timeline.is_done(place.value) && !timeline.failed());
}

void LentBlocks::end(uint32_t place) noexcept {
  places_[place].number += uint64_t{1} << kPlaceBits;
  places_[place].next = std::exchange(free_, place);
}

LentBlocks::Lending LentBlocks::begin(Timeline& timeline) {
  // Each lending ends at most one, so there are at most as many as publications and batches.
  if (oldest_ != kNone && timeline.is_done(places_[oldest_].value)) {
    const uint32_t place = std::exchange(oldest_, places_[oldest_].next);
    if (oldest_ == kNone) newest_ = kNone;
    end(place);
  }
  if (free_ == kNone) {
    // All that are published, and a batch. More batches at a time need more.
    if (places_.empty()) places_.reserve(timeline.capacity() + 1);
    const auto place = static_cast<uint32_t>(places_.size());
    places_.push_back({.number = uint64_t{1} << kPlaceBits | place, .value = 0, .next = kNone});
    free_ = place;
  }
  Place& place = places_[free_];
  free_ = std::exchange(place.next, kNone);
  place.value = 0;
  return place.number;
}

// Removes the entries of ended lendings. The table is at most a quarter full then.
void LentBlocks::make_room(size_t lines, Timeline& timeline) {
  size_t current = lines;
  for (const Line& line : lines_)
    current += line.begin != nullptr && is_current(line.lending, timeline);
  spare_.assign(std::max({kFewestLines, lines_.size(), std::bit_ceil(4 * current)}), {});
  used_ = 0;
  for (const Line& line : lines_) {
    if (line.begin == nullptr || !is_current(line.lending, timeline)) continue;
    find(spare_, line.begin) = line;
    ++used_;
  }
  lines_.swap(spare_);
  spare_.reserve(lines_.size());  // now, so that later calls allocate nothing
}

void LentBlocks::lend(std::span<const std::byte> block, Lending& lending, Timeline& timeline) {
  const size_t count = (block.size() + kLineBytes - 1) / kLineBytes;
  if (2 * (used_ + count) > lines_.size()) [[unlikely]]
    make_room(count, timeline);
  const bool begins = lending == 0;
  if (begins) lending = begin(timeline);
  for (size_t i = 0; i < count; ++i) {
    Line& line = find(lines_, block.data() + i * kLineBytes);
    if (line.begin != nullptr && is_current(line.lending, timeline)) [[unlikely]] {
      const Lending user = line.lending;
      for (size_t j = 0; j < i; ++j) find(lines_, block.data() + j * kLineBytes).lending = 0;
      if (begins) drop(lending);
      refuse(block, user);
    }
    used_ += line.begin == nullptr;
    line = {.begin = block.data() + i * kLineBytes, .lending = lending};
  }
}

void LentBlocks::publish(Lending& lending, uint64_t value) noexcept {
  const uint32_t place = place_of(std::exchange(lending, 0));
  places_[place].value = value;
  (newest_ == kNone ? oldest_ : places_[newest_].next) = place;
  newest_ = place;
}

void LentBlocks::drop(Lending& lending) noexcept { end(place_of(std::exchange(lending, 0))); }

void LentBlocks::refuse(std::span<const std::byte> block, Lending user) const {
  const uint64_t value = places_[place_of(user)].value;
  throw Error(
      {.code = ErrorCode::misuse,
       .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
       .call = "BatchSubmitter::dispatch_at",
       .asked =
           fmt::format("the kernarg block of {} bytes at {}", block.size(), fmt::ptr(block.data())),
       .found = value == 0
                    ? "an earlier dispatch, not submitted yet, uses it"
                    : fmt::format("publication {}, which is not complete, still reads it", value),
       .remedy = "use one block for each dispatch until its completion"});
}

}  // namespace uptempo::detail
