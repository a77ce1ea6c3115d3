#include "keys.hpp"

#include <algorithm>
#include <cmath>

namespace uptempo::sample_sort {
namespace {

constexpr uint64_t kValues = uint64_t{1} << 32;
constexpr double kSkewedValues = 1 << 20;

// floor(total * part / whole), without overflow for part <= whole < 2^32.
uint64_t part_of(uint64_t total, uint64_t part, uint64_t whole) {
  return total / whole * part + total % whole * part / whole;
}

// Ascending, over all values as far as `total` allows.
uint32_t ascending_key(uint64_t position, uint64_t total) {
  return static_cast<uint32_t>(total <= kValues ? position * (kValues / total)
                                                : position / (total / kValues + 1));
}

}  // namespace

const char* name_of(Distribution distribution) {
  return kDistributions[static_cast<size_t>(distribution)].name;
}

Range share_of(uint64_t total, uint32_t ranks, uint32_t rank, bool uneven) {
  const auto begin_of = [&](uint64_t r) {
    if (!uneven || ranks == 1) return part_of(total, r, ranks);
    return part_of(total, r * (r - 1) / 2, uint64_t{ranks} * (ranks - 1) / 2);
  };
  const uint64_t first = rank == 0 ? 0 : begin_of(rank);
  return {.first = first, .count = begin_of(uint64_t{rank} + 1) - first};
}

void generate(Distribution distribution, uint64_t seed, uint64_t total, Range share,
              std::span<uint32_t> keys) {
  const uint64_t stream = mix(seed);
  for (uint64_t i = 0; i < share.count; ++i) {
    const uint64_t position = share.first + i;
    uint32_t& key = keys[i];
    switch (distribution) {
      case Distribution::uniform:
        key = static_cast<uint32_t>(mix(stream ^ position) >> 32);
        break;
      case Distribution::sorted:
        key = ascending_key(position, total);
        break;
      case Distribution::reverse:
        key = ascending_key(total - 1 - position, total);
        break;
      case Distribution::equal:
        key = static_cast<uint32_t>(stream);
        break;
      case Distribution::skewed: {
        // Logarithms of the values are uniform.
        const double uniform = static_cast<double>(mix(stream ^ position) >> 11) * 0x1p-53;
        key = static_cast<uint32_t>(std::exp(uniform * std::log(kSkewedValues)));
        break;
      }
    }
  }
}

Checksum checksum(std::span<const uint32_t> keys) {
  Checksum result{.count = keys.size()};
  for (const uint32_t key : keys) {
    result.sum += key;
    result.mixed_sum += mix(key);
  }
  return result;
}

}  // namespace uptempo::sample_sort
