#include <uptempo/aql/collision_backoff.hpp>

#include "test/support/catch.hpp"

namespace uptempo::aql {
namespace {

using namespace std::chrono_literals;
using Clock = CollisionBackoff::Clock;

constexpr bool kInTurn = true, kCollides = false;

Clock::time_point at_one_second() noexcept { return Clock::time_point(1s); }
// The pauses of these tests are over at once.
Clock::time_point long_ago() noexcept { return Clock::time_point{}; }

}  // namespace

TEST_CASE("a producer that never collides never pauses", "[backoff]") {
  CollisionBackoff backoff;
  for (int i = 0; i < 100; ++i) {
    backoff.wait(1);
    backoff.published(1, kInTurn, at_one_second);
  }
  CHECK_FALSE(backoff.is_pausing());
  CHECK(backoff.pause() == 0ns);
}

TEST_CASE("each collision doubles the pause up to a limit", "[backoff]") {
  CollisionBackoff backoff;
  auto expected = CollisionBackoff::kShortest;
  for (int i = 0; i < 10; ++i) {
    backoff.published(1, kCollides, at_one_second);
    CHECK(backoff.is_pausing());
    CHECK(backoff.pause() == expected);
    CHECK(backoff.end() == Clock::time_point(1s) + expected);
    expected = std::min(2 * expected, CollisionBackoff::kLongest);
  }
  CHECK(backoff.pause() == CollisionBackoff::kLongest);
}

TEST_CASE("publications in turn shorten the next pause", "[backoff]") {
  CollisionBackoff backoff;
  for (int i = 0; i < 10; ++i) backoff.published(1, kCollides, long_ago);
  for (int i = 0; i < 32; ++i) backoff.published(1, kInTurn, long_ago);
  CHECK(backoff.pause() < CollisionBackoff::kLongest / 2);
  CHECK(backoff.pause() > CollisionBackoff::kLongest / 4);
  for (int i = 0; i < 1000; ++i) backoff.published(1, kInTurn, long_ago);
  CHECK(backoff.pause() < CollisionBackoff::kShortest);
  backoff.published(1, kCollides, long_ago);
  CHECK(backoff.pause() == CollisionBackoff::kShortest);
}

TEST_CASE("a pause ends at a point in time and happens once", "[backoff]") {
  CollisionBackoff backoff;
  backoff.published(1, kCollides, long_ago);
  REQUIRE(backoff.is_pausing());
  backoff.wait(1);
  CHECK_FALSE(backoff.is_pausing());

  backoff.published(1, kCollides);
  const auto end = backoff.end();
  backoff.wait(1);
  CHECK(Clock::now() >= end);
}

TEST_CASE("long publications neither pause nor count", "[backoff]") {
  CollisionBackoff backoff;
  backoff.published(CollisionBackoff::kMostPackets + 1, kCollides, at_one_second);
  CHECK_FALSE(backoff.is_pausing());
  backoff.published(CollisionBackoff::kMostPackets, kCollides, long_ago);
  backoff.wait(CollisionBackoff::kMostPackets + 1);
  CHECK(backoff.is_pausing());
}

}  // namespace uptempo::aql
