#include <uptempo/program/code_object.hpp>
#include <uptempo/program/program.hpp>

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

namespace uptempo {
namespace {

static_assert(std::endian::native == std::endian::little, "XXH64 reads little-endian words");

constexpr uint64_t kPrimes[] = {0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
                                0x85ebca77c2b2ae63, 0x27d4eb2f165667c5};

constexpr uint64_t round_of(uint64_t lane, uint64_t input) noexcept {
  return std::rotl(lane + input * kPrimes[1], 31) * kPrimes[0];
}

// Returns the next word and removes it from `bytes`.
template <class Word>
uint64_t take(std::span<const std::byte>& bytes) noexcept {
  Word word;
  std::memcpy(&word, bytes.data(), sizeof word);
  bytes = bytes.subspan(sizeof word);
  return word;
}

}  // namespace

uint64_t content_hash(std::span<const std::byte> bytes) noexcept {
  const uint64_t length = bytes.size();
  uint64_t hash = kPrimes[4];
  if (length >= 32) {
    std::array<uint64_t, 4> lanes{kPrimes[0] + kPrimes[1], kPrimes[1], 0, 0 - kPrimes[0]};
    while (bytes.size() >= 32)
      for (uint64_t& lane : lanes) lane = round_of(lane, take<uint64_t>(bytes));
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
           std::rotl(lanes[3], 18);
    for (const uint64_t lane : lanes) hash = (hash ^ round_of(0, lane)) * kPrimes[0] + kPrimes[3];
  }
  hash += length;
  while (bytes.size() >= 8)
    hash = std::rotl(hash ^ round_of(0, take<uint64_t>(bytes)), 27) * kPrimes[0] + kPrimes[3];
  if (bytes.size() >= 4)
    hash = std::rotl(hash ^ take<uint32_t>(bytes) * kPrimes[0], 23) * kPrimes[1] + kPrimes[2];
  while (!bytes.empty())
    hash = std::rotl(hash ^ take<uint8_t>(bytes) * kPrimes[4], 11) * kPrimes[0];
  hash = (hash ^ hash >> 33) * kPrimes[1];
  hash = (hash ^ hash >> 29) * kPrimes[2];
  return hash ^ hash >> 32;
}

std::string to_string(const CodeIdentity& code) {
  return fmt::format("{}, {} bytes, hash {:016x}", code.target, code.size_bytes, code.hash);
}

}  // namespace uptempo
