// LentBlocks: records the kernarg blocks that callers pass to BatchSubmitter::dispatch_at(), until
// the publication that reads them has completed. Private to engine/dispatch; used only with handle
// checks.
//
// Thread safety: thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "engine/runtime/detail/handle_check.hpp"

namespace uptempo {
class Timeline;
}

namespace uptempo::detail {

class LentBlocks {
 public:
  // Throws Error if an earlier dispatch still reads part of the block.
  void lend(std::span<const std::byte> block, const void* batch, Timeline& timeline);
  void published(const void* batch, uint64_t value) noexcept;
  void dropped(const void* batch) noexcept;

 private:
  struct Lent {
    const std::byte* begin;
    const std::byte* end;
    const void* batch;  // null once published
    uint64_t value;
  };
  std::vector<Lent> lent_;
};
struct NoLentBlocks {
  void lend(std::span<const std::byte>, const void*, Timeline&) noexcept {}
  void published(const void*, uint64_t) noexcept {}
  void dropped(const void*) noexcept {}
};
using LentBlocksIfChecked = std::conditional_t<kHandleChecks, LentBlocks, NoLentBlocks>;

}  // namespace uptempo::detail
