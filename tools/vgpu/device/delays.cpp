#include "device/delays.hpp"

#include <array>

namespace uptempo::vgpu {
namespace {

// One step of SplitMix64 with its finalizer (Steele, Lea and Flood 2014). Neighbouring inputs give
// unrelated outputs.
constexpr uint64_t mixed(uint64_t value) noexcept {
  uint64_t z = value + 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

constexpr std::array<unsigned, 4> kPeriods{0, 16, 4, 1};

// sqrt(kShortest / kLongest)
constexpr double kRootOfShare = 0.022360679774997897;
static_assert(kRootOfShare * kRootOfShare * (Delays::kLongest / Delays::kShortest) > 0.999999999 &&
              kRootOfShare * kRootOfShare * (Delays::kLongest / Delays::kShortest) < 1.000000001);

}  // namespace

Delays::Delays(uint64_t seed, uint32_t queue) noexcept : seed_(mixed(mixed(seed) ^ queue)) {}

uint64_t Delays::stream(DelayPlace place) const noexcept {
  return mixed(seed_ ^ static_cast<uint64_t>(place));
}

unsigned Delays::period(DelayPlace place) const noexcept {
  return kPeriods[stream(place) % kPeriods.size()];
}

std::chrono::nanoseconds Delays::of(DelayPlace place, uint64_t number) const noexcept {
  const unsigned one_of = period(place);
  if (one_of == 0) return std::chrono::nanoseconds(0);
  const uint64_t drawn = mixed(mixed(stream(place)) ^ number);
  if (drawn % one_of != 0) return std::chrono::nanoseconds(0);
  // The upper 53 bits, which the test above did not use, as a number from 0 to 1.
  const double uniform = static_cast<double>(drawn >> 11) * 0x1p-53;
  const double root = 1 - uniform * (1 - kRootOfShare);
  return std::chrono::nanoseconds(
      static_cast<int64_t>(static_cast<double>(kShortest.count()) / (root * root)));
}

}  // namespace uptempo::vgpu
