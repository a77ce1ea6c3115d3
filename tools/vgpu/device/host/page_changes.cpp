#include "device/host/page_changes.hpp"

namespace uptempo::vgpu {
namespace {

// Returns bit i set if byte i of the word is not zero.
constexpr uint64_t nonzero_bytes(uint64_t word) {
  constexpr uint64_t kLow7 = 0x7f7f7f7f7f7f7f7f;
  const uint64_t high_bits = (((word & kLow7) + kLow7) | word) & ~kLow7;
  return (high_bits >> 7) * 0x0102040810204080 >> 56;
}
static_assert(nonzero_bytes(0) == 0);
static_assert(nonzero_bytes(0x0100000000008000) == 0b10000010);
static_assert(nonzero_bytes(~uint64_t{0}) == 0xff);

constexpr size_t kWords = 4096 / sizeof(uint64_t);

using Word [[gnu::may_alias]] = uint64_t;

}  // namespace

[[gnu::no_sanitize_thread, gnu::no_sanitize_address]] void copy_page(
    std::byte* to, const std::byte* from) noexcept {
  auto* const target = reinterpret_cast<Word*>(to);
  const auto* const source = reinterpret_cast<const Word*>(from);
  // Relaxed loads, word by word. The compiler turns a plain loop into memcpy(), which the thread
  // sanitizer always checks.
  for (size_t word = 0; word < kWords; ++word)
    target[word] = __atomic_load_n(&source[word], __ATOMIC_RELAXED);
}

[[gnu::no_sanitize_thread]] bool find_changes(const std::byte* now, const std::byte* before,
                                              PageMask& changes) noexcept {
  const auto* const present = reinterpret_cast<const Word*>(now);
  const auto* const past = reinterpret_cast<const Word*>(before);
  uint64_t any = 0;
  for (size_t group = 0; group < changes.size(); ++group) {
    uint64_t bits = 0;
    for (size_t byte = 0; byte < 8; ++byte) {
      const size_t word = group * 8 + byte;
      const uint64_t difference = __atomic_load_n(&present[word], __ATOMIC_RELAXED) ^ past[word];
      bits |= nonzero_bytes(difference) << byte * 8;
    }
    changes[group] = bits;
    any |= bits;
  }
  return any != 0;
}

}  // namespace uptempo::vgpu
