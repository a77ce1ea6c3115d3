#include "device/host/host_events.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

HostEvent read_at(GpuAddress address) {
  return {.kind = HostEvent::Kind::read, .address = address};
}

TEST_CASE("events come out in the order of push(), over many rounds of the ring", "[host_events]") {
  HostEventRing ring(4);
  HostEvent event;
  CHECK_FALSE(ring.take(event));
  GpuAddress next_in = 0;
  GpuAddress next_out = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 1 + round % 4; ++i) REQUIRE(ring.push(read_at(next_in++)));
    while (next_out < next_in) {
      REQUIRE(ring.take(event));
      REQUIRE(event.address == next_out++);
    }
    REQUIRE_FALSE(ring.take(event));
  }
}

TEST_CASE("a full ring refuses an event and loses none", "[host_events]") {
  HostEventRing ring(4);
  for (GpuAddress i = 0; i < 4; ++i) REQUIRE(ring.push(read_at(i)));
  CHECK_FALSE(ring.push(read_at(4)));
  HostEvent event;
  REQUIRE(ring.take(event));
  CHECK(event.address == 0);
  CHECK(ring.push(read_at(5)));
  CHECK_FALSE(ring.push(read_at(6)));
  for (const GpuAddress expected : {1, 2, 3, 5}) {
    REQUIRE(ring.take(event));
    CHECK(event.address == expected);
  }
}

TEST_CASE("a mask comes out as runs of its bits, across words and up to the end of the page",
          "[host_events]") {
  HostEventRing ring(2);
  PageMask mask{};
  mask[0] = 0b1011;
  mask[1] = uint64_t{1} << 63;
  mask[2] = ~uint64_t{0};
  mask[3] = 1;
  mask[63] = uint64_t{3} << 62;
  const HostEvent page{.kind = HostEvent::Kind::wrote,
                       .address = 0x7000,
                       .bytes = 4096,
                       .opened_ns = 3,
                       .closed_ns = 8};
  REQUIRE(ring.push(page, &mask));
  REQUIRE(ring.push(read_at(1)));
  struct Run {
    GpuAddress begin;
    uint32_t bytes;
  };
  for (const Run& run : {Run{0x7000, 2}, Run{0x7003, 1}, Run{0x707f, 66}, Run{0x7ffe, 2}}) {
    HostEvent event;
    REQUIRE(ring.take(event));
    CHECK(event.kind == HostEvent::Kind::wrote);
    CHECK(event.address == run.begin);
    CHECK(event.bytes == run.bytes);
    CHECK(event.opened_ns == 3);
    CHECK(event.closed_ns == 8);
  }
  HostEvent event;
  REQUIRE(ring.take(event));
  CHECK(event.kind == HostEvent::Kind::read);
  CHECK_FALSE(ring.take(event));
}

TEST_CASE("a mask of a whole page is one run", "[host_events]") {
  HostEventRing ring(2);
  PageMask mask;
  mask.fill(~uint64_t{0});
  REQUIRE(ring.push({.kind = HostEvent::Kind::wrote, .address = 0x7000}, &mask));
  HostEvent event;
  REQUIRE(ring.take(event));
  CHECK(event.address == 0x7000);
  CHECK(event.bytes == 4096);
  CHECK_FALSE(ring.take(event));
}

TEST_CASE("changes can be taken a page at a time", "[host_events]") {
  HostEventRing ring(2);
  PageMask mask{};
  mask[3] = 0b101;
  REQUIRE(ring.push({.kind = HostEvent::Kind::wrote, .address = 0x7000}, &mask));
  REQUIRE(ring.push({.kind = HostEvent::Kind::read, .address = 0x7041, .bytes = 1}));
  HostEvent event;
  PageMask taken;
  REQUIRE(ring.take(event, taken));
  CHECK(event.address == 0x7000);
  CHECK(taken == mask);
  REQUIRE(ring.take(event, taken));
  CHECK(event.address == 0x7041);
  PageMask one{};
  one[1] = 0b10;
  CHECK(taken == one);
  CHECK_FALSE(ring.take(event, taken));
}

// The host's accesses before a doorbell have been pushed when the device finds the doorbell,
// possibly after an event that another thread is still writing.
TEST_CASE("take() returns every event pushed before it, also while other threads push",
          "[host_events]") {
  HostEventRing ring(64);
  constexpr GpuAddress ours = 1, theirs = 0x1000;
  std::atomic<bool> over{false};
  std::thread other([&] {
    PageMask whole;
    whole.fill(~uint64_t{0});
    for (int pushed = 0; pushed < 50000;) {
      if (ring.push(read_at(theirs), &whole)) {
        ++pushed;
      } else {
        std::this_thread::yield();
      }
    }
    over.store(true, std::memory_order_relaxed);
  });
  int missed = 0;
  while (!over.load(std::memory_order_relaxed)) {
    const bool pushed = ring.push(read_at(ours));  // false: the other thread has filled the ring
    bool found = !pushed;
    HostEvent event;
    for (PageMask mask; ring.take(event, mask);) found = found || event.address == ours;
    if (!found) ++missed;
  }
  other.join();
  CHECK(missed == 0);
}

TEST_CASE("events of several threads come out complete and in each thread's order",
          "[host_events]") {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kEach = 5000;
  HostEventRing ring(64);
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&ring, thread] {
      for (uint64_t i = 0; i < kEach; ++i)
        while (!ring.push({.address = thread, .host_ns = i})) std::this_thread::yield();
    });
  std::vector<uint64_t> next(kThreads, 0);
  bool in_order = true;
  for (uint64_t taken = 0; taken < kThreads * kEach;) {
    HostEvent event;
    if (!ring.take(event)) {
      std::this_thread::yield();
      continue;
    }
    in_order = in_order && event.host_ns == next[event.address]++;
    ++taken;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(in_order);
}

}  // namespace
}  // namespace uptempo::vgpu
