// Arguments and rings in device memory. Each test fails under its patches in test/mutants, and only
// that one. publication_order_test.cpp checks the whole order of each kind of publication.
#include "test/engine/dispatch/publication_world.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

std::vector<aql::Packet64> dispatches(size_t count) {
  return std::vector<aql::Packet64>(count,
                                    aql::to_packet(aql::KernelDispatch{.kernel_object = 0x1234}));
}

bool flushes_before_header(const Steps& steps) {
  const uint64_t flush = steps.first(Kind::store, Place::hdp);
  return flush != Steps::kNever && flush < steps.first(Kind::store, Place::ring_header, 0);
}

}  // namespace

TEST_CASE("Device memory: a batch flushes its arguments before its first header", "[invariant]") {
  CHECK(flushes_before_header(BatchWorld(By::flush, Ring::host).publish(3)));
}

TEST_CASE("Device memory: a replay flushes changed arguments before its first header",
          "[invariant]") {
  CHECK(flushes_before_header(ReplayWorld(By::flush, Ring::host).publish(3)));
}

TEST_CASE("Device memory: a launch flushes its arguments before its header", "[invariant]") {
  CHECK(flushes_before_header(StreamWorld(By::flush, Ring::host).publish(1)));
}

TEST_CASE("Device memory: stores are fenced before the flush", "[invariant]") {
  PublicationWorld world(By::flush, Ring::host);
  detail::DeviceWrites writes = world.writes();
  const Steps steps = world.steps([&] {
    *reinterpret_cast<volatile uint32_t*>(world.kernargs().data()) = 1;
    writes.flush();
  });
  CHECK(steps.has_fence(steps.first(Kind::store, Place::kernargs),
                        steps.first(Kind::store, Place::hdp)));
}

TEST_CASE("Device memory: a flush ends with a read of the register", "[invariant]") {
  PublicationWorld world(By::flush, Ring::host);
  detail::DeviceWrites writes = world.writes();
  const Steps steps = world.steps([&] { writes.flush(); });
  CHECK(steps.first(Kind::store, Place::hdp) < steps.first(Kind::load, Place::hdp));
}

TEST_CASE("Device memory: a read-back loads what it has just stored", "[invariant]") {
  PublicationWorld world(By::read_back, Ring::host);
  detail::DeviceWrites writes = world.writes();
  const Steps steps = world.steps([&] { writes.flush(); });
  CHECK(steps.first(Kind::store, Place::line) != Steps::kNever);
  CHECK(steps.first(Kind::store, Place::line) < steps.first(Kind::load, Place::line));
}

TEST_CASE("Device memory: a read-back fences its store before its load", "[invariant]") {
  PublicationWorld world(By::read_back, Ring::host);
  detail::DeviceWrites writes = world.writes();
  const Steps steps = world.steps([&] { writes.flush(); });
  const uint64_t load = steps.first(Kind::load, Place::line);
  CHECK(
      (load == Steps::kNever || steps.has_full_fence(steps.first(Kind::store, Place::line), load)));
}

TEST_CASE("Device memory: a ring's bodies are fenced before the header", "[invariant]") {
  PublicationWorld world(By::flush, Ring::device);
  aql::AqlQueueWriter writer = aql::AqlQueueWriter::borrow(world.memory().queue());
  REQUIRE(writer.has_device_ring());
  const auto packets = dispatches(3);
  const Steps steps = world.steps([&] { (void)writer.publish(packets, Deadline::never()); });
  CHECK(steps.has_fence(steps.last(Kind::store, Place::ring_body),
                        steps.first(Kind::store, Place::ring_header, 0)));
}

TEST_CASE("Device memory: a ring's headers are fenced before the doorbell", "[invariant]") {
  PublicationWorld world(By::flush, Ring::device);
  aql::AqlQueueWriter writer = aql::AqlQueueWriter::borrow(world.memory().queue());
  const auto packets = dispatches(3);
  const Steps steps = world.steps([&] { (void)writer.publish(packets, Deadline::never()); });
  CHECK(steps.has_fence(steps.last(Kind::store, Place::ring_header),
                        steps.first(Kind::store, Place::doorbell)));
}
