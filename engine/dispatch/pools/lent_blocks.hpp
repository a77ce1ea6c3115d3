// Kernarg blocks that the caller lends to BatchSubmitter::dispatch_at(), until the publication that reads
// them has completed. Private to engine/dispatch; kept with handle checks only.
//
// Thread safety: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "engine/runtime/handle_check.hpp"

namespace uptempo {
class Timeline;
}

namespace uptempo::detail {

class LentBlocks {
 public:
  // Throws Error if part of it is still read by an earlier dispatch.
  void lend(std::span<const std::byte> block, const void* batch, Timeline& timeline);
  void published(const void* batch, uint64_t value) noexcept;
  void dropped(const void* batch) noexcept;

 private:
  struct Lent {
    const std::byte* begin;
    const std::byte* end;
    const void* batch;  // null when it is published
    uint64_t value;
  };
  std::vector<Lent> lent_;
};
struct NoLentBlocks {
  void lend(std::span<const std::byte>, const void*, Timeline&) noexcept {}
  void published(const void*, uint64_t) noexcept {}
  void dropped(const void*) noexcept {}
};
using LentBlocksIfChecked = std::conditional_t<handle_checks, LentBlocks, NoLentBlocks>;

}  // namespace uptempo::detail
