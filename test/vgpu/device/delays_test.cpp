// The distribution of --delay. Needs no device.
#include "device/delays.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

using namespace std::chrono_literals;
using uptempo::test::Approx;

constexpr DelayPlace kPlaces[] = {DelayPlace::doorbell, DelayPlace::launch, DelayPlace::completion,
                                  DelayPlace::interrupt, DelayPlace::copy};

std::vector<std::chrono::nanoseconds> drawn(const Delays& delays, DelayPlace place,
                                            uint64_t count) {
  std::vector<std::chrono::nanoseconds> result;
  for (uint64_t number = 0; number < count; ++number) result.push_back(delays.of(place, number));
  return result;
}

// Returns the delays of the first queue whose steps are all delayed at this place.
Delays always_late(DelayPlace place) {
  for (uint32_t queue = 0;; ++queue)
    if (const Delays delays(1, queue); delays.period(place) == 1) return delays;
}

TEST_CASE("a delay depends on seed, queue, place and number only", "[delays]") {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{7}, ~uint64_t{0}}) {
    const Delays once(seed, 3), again(seed, 3);
    for (const DelayPlace place : kPlaces) {
      const auto forwards = drawn(once, place, 500);
      for (uint64_t number = 500; number-- > 0;) CHECK(again.of(place, number) == forwards[number]);
    }
  }
}

TEST_CASE("different seeds, queues, places and numbers give different delays", "[delays]") {
  std::set<std::vector<std::chrono::nanoseconds>> different;
  unsigned sequences = 0;
  for (uint64_t seed = 0; seed < 40; ++seed)
    for (uint32_t queue = 0; queue < 10; ++queue)
      for (const DelayPlace place : kPlaces) {
        const Delays delays(seed, queue);
        if (delays.period(place) != 1) continue;
        ++sequences;
        const auto sequence = drawn(delays, place, 16);
        CHECK(std::set(sequence.begin(), sequence.end()).size() >= 14);
        different.insert(sequence);
      }
  CHECK(sequences > 400);
  CHECK(different.size() == sequences);
}

TEST_CASE(
    "at each place, a quarter of the queues has no delays, the others rare, frequent or constant "
    "ones",
    "[delays]") {
  std::map<unsigned, unsigned> periods;
  for (uint64_t seed = 0; seed < 400; ++seed)
    for (uint32_t queue = 0; queue < 10; ++queue)
      for (const DelayPlace place : kPlaces) ++periods[Delays(seed, queue).period(place)];
  CHECK(periods.size() == 4);
  for (const unsigned period : {0u, 1u, 4u, 16u}) {
    CAPTURE(period);
    CHECK(periods[period] > 4800);
    CHECK(periods[period] < 5200);
  }
}

TEST_CASE("the period gives the share of delayed steps", "[delays]") {
  for (uint32_t queue = 0; queue < 64; ++queue)
    for (const DelayPlace place : kPlaces) {
      const Delays delays(5, queue);
      const auto sequence = drawn(delays, place, 4096);
      const auto late =
          std::count_if(sequence.begin(), sequence.end(), [](auto delay) { return delay > 0ns; });
      const unsigned period = delays.period(place);
      CAPTURE(queue, period);
      if (period == 0) {
        CHECK(late == 0);
      } else if (period == 1) {
        CHECK(late == 4096);
      } else {
        CHECK(late > 4096 / period * 2 / 3);
        CHECK(late < 4096 / period * 4 / 3);
      }
    }
}

TEST_CASE("most delays last microseconds, some last a millisecond", "[delays]") {
  constexpr size_t kCount = 100'000;
  auto delays = drawn(always_late(DelayPlace::launch), DelayPlace::launch, kCount);
  std::sort(delays.begin(), delays.end());
  CHECK(delays.front() >= Delays::kShortest);
  CHECK(delays.back() <= Delays::kLongest);
  const auto longer_than = [&](std::chrono::nanoseconds limit) {
    return static_cast<double>(delays.end() -
                               std::upper_bound(delays.begin(), delays.end(), limit)) /
           kCount;
  };
  // (sqrt(1 us / x) - sqrt(1 us / 2 ms)) / (1 - sqrt(1 us / 2 ms))
  CHECK(longer_than(4us) == Approx(0.4886).margin(0.01));
  CHECK(longer_than(100us) == Approx(0.0794).margin(0.005));
  CHECK(longer_than(1ms) == Approx(0.0095).margin(0.002));
  const auto sum = std::accumulate(delays.begin(), delays.end(), 0ns);
  CHECK(static_cast<double>(sum.count()) / kCount == Approx(44'700).margin(2'500));
}

}  // namespace
}  // namespace uptempo::vgpu
