// LentBlocks: the kernarg blocks that callers pass to BatchSubmitter::dispatch_at(), until the
// publication that reads them has completed. Private to engine/dispatch.
//
// The blocks of one batch are a lending. It has a number, which the batch holds from its first
// block to its submission. A table maps each line of 64 bytes to the lending that used it last, so
// blocks of any size that overlap meet at a line. Entries of an ended lending stay in the table
// until their line or their place is used again.
//
// Cost: one search for each line of a block, usually one step long. Allocates while the number of
// lines in use grows, never for lines that were in use before.
//
// Thread safety: thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace uptempo {
class Timeline;
}

namespace uptempo::detail {

class LentBlocks {
 public:
  // Number of the blocks of one batch; 0: none.
  using Lending = uint64_t;

  // Adds a block, which begins at a line, to the batch's lending. Throws Error if an earlier
  // dispatch uses part of it, and std::bad_alloc; nothing is added then.
  void lend(std::span<const std::byte> block, Lending& lending, Timeline& timeline);
  // The batch is published with this value. Values increase.
  void publish(Lending& lending, uint64_t value) noexcept;
  // The batch is not published.
  void drop(Lending& lending) noexcept;

 private:
  struct Line {
    const std::byte* begin;  // null: free place
    Lending lending;
  };
  // State of the lending that has this place. Places are reused.
  struct Place {
    Lending number;
    uint64_t value;  // of its publication; 0: not published
    uint32_t next;   // place in the same list
  };
  static constexpr uint32_t kPlaceBits = 24;  // of a number: its place
  static constexpr uint32_t kNone = UINT32_MAX;

  static uint32_t place_of(Lending lending) noexcept {
    return static_cast<uint32_t>(lending & ((uint64_t{1} << kPlaceBits) - 1));
  }
  static Line& find(std::vector<Line>& lines, const std::byte* begin) noexcept;
  bool is_current(Lending lending, Timeline& timeline) const noexcept;
  Lending begin(Timeline& timeline);
  void end(uint32_t place) noexcept;
  void make_room(size_t lines, Timeline& timeline);
  [[noreturn]] void refuse(std::span<const std::byte> block, Lending user) const;

  std::vector<Line> lines_;  // a power of two of places, at most half of them in use
  std::vector<Line> spare_;  // as large, for the next removal of old entries
  size_t used_ = 0;
  std::vector<Place> places_;
  uint32_t free_ = kNone;                     // list of free places
  uint32_t oldest_ = kNone, newest_ = kNone;  // list of published lendings, in order
};

}  // namespace uptempo::detail
