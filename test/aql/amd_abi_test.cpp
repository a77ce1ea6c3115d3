#include <uptempo/aql/amd_abi.hpp>

#include "test/support/catch.hpp"
#include "test/support/hsa_double.hpp"
#include "test/support/queue_double.hpp"

using namespace uptempo;
using test::hsa_calls;
using test::QueueDouble;
using test::SignalDouble;

TEST_CASE("a queue with AMD's layout yields direct pointers to its indices", "[abi]") {
  QueueDouble queue;
  const aql::QueueView view = aql::view(queue.queue());
  CHECK(view.read_index == const_cast<uint64_t*>(&queue.abi().read_dispatch_id));
  CHECK(view.write_index == const_cast<uint64_t*>(&queue.abi().write_dispatch_id));
}

TEST_CASE("a queue that records no read-index offset yields no direct pointers", "[abi]") {
  QueueDouble queue({.amd_layout = false});
  const aql::QueueView view = aql::view(queue.queue());
  CHECK(view.read_index == nullptr);
  CHECK(view.write_index == nullptr);
}

TEST_CASE("a view by HSA calls has no direct pointers, whatever the queue allows", "[abi]") {
  QueueDouble queue;
  const aql::QueueView view = aql::view(queue.queue(), aql::RingAccess::hsa_calls);
  CHECK(view.queue == queue.queue());
  CHECK(view.read_index == nullptr);
  CHECK(view.write_index == nullptr);
  CHECK(view.doorbell == nullptr);
}

TEST_CASE("only a queue with AMD's layout yields the apertures of scratch and LDS", "[abi]") {
  const bool amd_layout = GENERATE(true, false);
  QueueDouble queue({.amd_layout = amd_layout});
  queue.abi().private_segment_aperture_base_hi = 0x20000;
  queue.abi().group_segment_aperture_base_hi = 0x10000;
  const aql::QueueApertures apertures = aql::apertures(queue.queue());
  CHECK(apertures.private_segment_high == (amd_layout ? 0x20000 : 0));
  CHECK(apertures.group_segment_high == (amd_layout ? 0x10000 : 0));
}

TEST_CASE("only a doorbell signal of kind DOORBELL yields a direct doorbell", "[abi]") {
  SECTION("DOORBELL") {
    QueueDouble queue;
    uint64_t* const doorbell = aql::view(queue.queue()).doorbell;
    REQUIRE(doorbell != nullptr);
    std::atomic_ref(*doorbell).store(41);
    CHECK(queue.doorbell().load() == 41);
  }
  SECTION("USER, as under a profiler") {
    QueueDouble queue({.doorbell_kind = AMD_SIGNAL_KIND_USER});
    CHECK(aql::view(queue.queue()).doorbell == nullptr);
  }
  SECTION("LEGACY_DOORBELL, which uses another unit") {
    QueueDouble queue({.doorbell_kind = AMD_SIGNAL_KIND_LEGACY_DOORBELL});
    CHECK(aql::view(queue.queue()).doorbell == nullptr);
  }
}

TEST_CASE(
    "a signal's kind, interrupt, value and times are read from its ABI block without HSA calls",
    "[abi]") {
  hsa_calls().reset();
  SignalDouble signal(5);
  CHECK(aql::detail::signal_kind(signal.handle()) == aql::detail::SignalKind::user);
  CHECK(aql::detail::signal_kind({0}) == aql::detail::SignalKind::invalid);

  CHECK_FALSE(aql::has_interrupt(signal.handle()));
  signal.abi().event_mailbox_ptr = 0x1000;
  CHECK(aql::has_interrupt(signal.handle()));
  CHECK_FALSE(aql::has_interrupt({0}));

  CHECK(aql::load_acquire(signal.handle()) == 5);

  signal.abi().start_ts = 100;
  signal.abi().end_ts = 250;
  CHECK(aql::signal_times(signal.handle()).start_ticks == 100);
  CHECK(aql::signal_times(signal.handle()).end_ticks == 250);

  aql::rearm(signal.handle(), 1);
  CHECK(signal.value() == 1);
  CHECK(aql::signal_times(signal.handle()).start_ticks == 0);
  CHECK(aql::signal_times(signal.handle()).end_ticks == 0);
  CHECK(signal.abi().event_mailbox_ptr == 0x1000);
  CHECK(hsa_calls().total() == 0);
}

TEST_CASE("a signal without a value in its ABI block takes the HSA call", "[abi]") {
  hsa_calls().reset();
  SignalDouble signal(5);
  signal.abi().kind = AMD_SIGNAL_KIND_LEGACY_DOORBELL;
  CHECK(aql::load_acquire(signal.handle()) == 5);
  CHECK(hsa_calls().signal_load == 1);
  CHECK(aql::signal_times(signal.handle()).end_ticks == 0);
  aql::rearm(signal.handle(), 7);
  CHECK(signal.value() == 7);
  CHECK(hsa_calls().signal_store == 1);
}
