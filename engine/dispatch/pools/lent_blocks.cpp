#include "engine/dispatch/pools/lent_blocks.hpp"

#include <fmt/format.h>

#include "engine/completion/timeline.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo::detail {

void LentBlocks::lend(std::span<const std::byte> block, const void* batch, Timeline& timeline) {
  std::erase_if(lent_, [&](const Lent& lent) {
    return lent.batch == nullptr && timeline.is_done(lent.value);
  });
  const std::byte* const end = block.data() + block.size();
  for (const Lent& lent : lent_) {
    if (end <= lent.begin || lent.end <= block.data()) continue;
    throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "BatchSubmitter::dispatch_at",
                 .asked = fmt::format("the kernarg block of {} bytes at {}", block.size(),
                                      fmt::ptr(block.data())),
                 .found = lent.batch == nullptr
                              ? fmt::format("publication {}, which is not complete, still reads it",
                                            lent.value)
                              : "an earlier dispatch, not submitted yet, uses it",
                 .remedy = "use one block for each dispatch until its completion"});
  }
  lent_.push_back({block.data(), end, batch, 0});
}

void LentBlocks::published(const void* batch, uint64_t value) noexcept {
  for (Lent& lent : lent_) {
    if (lent.batch != batch) continue;
    lent.batch = nullptr;
    lent.value = value;
  }
}

void LentBlocks::dropped(const void* batch) noexcept {
  std::erase_if(lent_, [&](const Lent& lent) { return lent.batch == batch; });
}

}  // namespace uptempo::detail
