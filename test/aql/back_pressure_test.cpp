// Tests AqlQueueWriter on a full ring: which slots are free, how long it waits, what it reports,
// and that it leaves no trace.
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <type_traits>

#include <uptempo/aql/writer.hpp>
#include "test/support/catch.hpp"
#include "test/support/eventually.hpp"
#include "test/support/hsa_double.hpp"
#include "test/support/queue_double.hpp"
#include "test/support/ring_reader.hpp"
#include "test/support/soon.hpp"

using namespace uptempo;
using namespace std::chrono_literals;
using aql::AqlQueueWriter;
using aql::PublishStatus;
using test::emit_tickets;
using test::QueueDouble;
using test::ticketed_packet;
using Clock = std::chrono::steady_clock;

namespace {

// Takes `count` packets out of the ring, as a processor would.
void take(QueueDouble& queue, uint64_t count) {
  const uint64_t read = queue.read_index().load();
  for (uint64_t i = 0; i < count; ++i) queue.invalidate(read + i);
  queue.read_index().store(read + count);
}

// A writer whose ring holds `used` packets.
struct Filled {
  QueueDouble queue;
  AqlQueueWriter writer;

  Filled(uint32_t ring_size, uint64_t used, const std::atomic<hsa_status_t>* error = nullptr)
      : queue({.ring_size = ring_size}), writer(AqlQueueWriter::borrow(queue.queue(), error)) {
    REQUIRE(writer.publish(used, Deadline::now(), emit_tickets(0)));
  }
};

template <class Emit>
concept Publishable = requires(AqlQueueWriter& writer, Emit emit) {
  writer.publish(1, Deadline::now(), emit);
};

std::chrono::nanoseconds cpu_time_of_this_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto ns = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

void check_full_ring() {
  Filled ring(64, 62);
  SECTION("a try reports at once and names the ring's size and occupancy") {
    const auto result = ring.writer.publish(10, Deadline::now(), emit_tickets(62));
    CHECK(result.status == PublishStatus::resource_full);
    CHECK(result.ring_size == 64);
    CHECK(result.occupancy == 62);
    CHECK(result.requested == 10);
  }
  SECTION("a publication that fits in the ring is all or nothing, however it is chunked") {
    const auto result =
        ring.writer.publish(10, Deadline::now(), emit_tickets(62), {.lead = 1, .chunk = 1});
    CHECK(result.status == PublishStatus::resource_full);
    CHECK(ring.queue.write_index().load() == 62);
    CHECK(ring.queue.doorbell().load() == 61);
    CHECK(ring.queue.slot(62).word[0] == aql::first_word(aql::kInvalidHeader));
    CHECK(ring.queue.slot(62).word[8] == 0xcccccccc);
  }
  SECTION("the deadline is kept") {
    const auto start = Clock::now();
    const auto result = ring.writer.publish(10, Deadline::after(20ms), emit_tickets(62));
    const auto waited = Clock::now() - start;
    CHECK(result.status == PublishStatus::resource_full);
    CHECK(waited >= 20ms);
    CHECK(waited < test::kHang);
  }
  SECTION("room that becomes free in time is used") {
    std::thread processor([&] {
      std::this_thread::sleep_for(5ms);
      take(ring.queue, 20);
    });
    const auto result = ring.writer.publish(10, test::soon(), emit_tickets(62));
    processor.join();
    REQUIRE(result);
    CHECK(result.last_index == 71);
    for (uint64_t i = 62; i < 72; ++i) CHECK(ring.queue.slot(i) == ticketed_packet(i));
  }
  SECTION("waiting leaves the core idle") {
    // Repeated: on a busy machine each wake-up may cost more.
    CHECK(test::eventually([&] {
      const auto before = cpu_time_of_this_thread();
      CHECK_FALSE(ring.writer.publish(10, Deadline::after(300ms), emit_tickets(62)));
      return cpu_time_of_this_thread() - before < 60ms;
    }));
  }
  SECTION("more packets than the ring has slots are refused at once") {
    const auto result = ring.writer.publish(65, Deadline::never(), emit_tickets(62));
    CHECK(result.status == PublishStatus::too_long);
    CHECK(result.ring_size == 64);
    CHECK(result.requested == 65);
    CHECK(ring.queue.write_index().load() == 62);
    CHECK(ring.queue.doorbell().load() == 61);
  }
}

}  // namespace

TEST_CASE("Invariant 3: nothing fallible runs between reserving a slot and publishing it",
          "[writer][invariant]") {
  SECTION("an emitter that may throw does not compile") {
    const auto throwing = [](uint64_t, void*) -> uint32_t { throw 1; };
    const auto safe = [](uint64_t, void*) noexcept -> uint32_t { return 0; };
    CHECK_FALSE(Publishable<decltype(throwing)>);
    CHECK(Publishable<decltype(safe)>);
  }
}

TEST_CASE(
    "Invariant 7: a writer waits for a full ring until the deadline, reports it, and leaves no "
    "trace",
    "[writer][invariant]") {
  check_full_ring();
}

TEST_CASE("a reservation proves room and changes nothing", "[writer]") {
  Filled ring(64, 60);
  aql::Slots four{4}, five{5};
  CHECK(ring.writer.try_reserve(four));
  CHECK(four.first == 60);
  CHECK_FALSE(ring.writer.try_reserve(five));
  const auto refused = ring.writer.reserve(five, Deadline::after(1ms));
  CHECK(refused.status == PublishStatus::resource_full);
  CHECK(refused.occupancy == 60);
  CHECK(refused.ring_size == 64);
  CHECK(ring.queue.write_index().load() == 60);
  CHECK(ring.queue.doorbell().load() == 59);
  CHECK(ring.writer.reserve(four, Deadline::now()));
}

TEST_CASE("a failed queue refuses publications at once and ends a wait", "[writer]") {
  std::atomic<hsa_status_t> error{HSA_STATUS_SUCCESS};
  SECTION("later publications are refused, room or not") {
    Filled ring(64, 3, &error);
    error = HSA_STATUS_ERROR_INVALID_ISA;
    const auto result = ring.writer.publish(1, Deadline::never(), emit_tickets(3));
    CHECK(result.status == PublishStatus::queue_failed);
    CHECK(result.queue_error == HSA_STATUS_ERROR_INVALID_ISA);
    CHECK(ring.queue.write_index().load() == 3);
    aql::Slots slots{1};
    CHECK_FALSE(ring.writer.try_reserve(slots));
  }
  SECTION("a wait without deadline ends") {
    Filled ring(64, 64, &error);
    std::thread device([&] {
      std::this_thread::sleep_for(5ms);
      error = HSA_STATUS_ERROR_EXCEPTION;
    });
    const auto result = ring.writer.publish(2, Deadline::never(), emit_tickets(64));
    device.join();
    CHECK(result.status == PublishStatus::queue_failed);
    CHECK(result.queue_error == HSA_STATUS_ERROR_EXCEPTION);
  }
}

TEST_CASE("a deadline saturates and recognizes now and never", "[deadline]") {
  CHECK(Deadline::now().passed());
  CHECK_FALSE(Deadline::never().passed());
  CHECK(Deadline::after(-5ns).is_now());
  CHECK(Deadline::after(std::chrono::nanoseconds::max()).is_never());
  CHECK_FALSE(Deadline::after(10min).passed());
  CHECK(Deadline::at(Clock::now() - 1ns).passed());
}
