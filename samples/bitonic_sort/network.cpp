#include "network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace uptempo::sort {

Network::Network(int64_t length) {
  if (length < kMinLength || length > kMaxLength ||
      !std::has_single_bit(static_cast<uint64_t>(length)))
    throw std::invalid_argument(fmt::format(
        "the number of keys is {}; it must be a power of two from 2 to 16777216 (2^24)", length));
  length_ = static_cast<uint32_t>(length);
  const auto stages = static_cast<uint32_t>(std::countr_zero(length_));
  for (uint32_t stage = 0; stage < stages; ++stage)
    for (uint32_t pass = 0; pass <= stage; ++pass) passes_.push_back({stage, pass});
}

uint32_t Network::workgroup() const noexcept { return std::min(256u, work_items()); }

}  // namespace uptempo::sort
