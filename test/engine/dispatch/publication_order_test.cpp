// The order of every publication with arguments in device memory, instruction by instruction:
//
//   arguments < sfence < flush or read-back < body < sfence < header < sfence < doorbell
//
// A read-back is a store, mfence and a load.
//
// The fences around the header are those of rings in device memory. In host memory, packets after
// the first are stored behind the gate while the batch is built, so only the first one's header
// counts.
#include "test/engine/dispatch/publication_world.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

// `end`: the number of the instruction after which another publication begins.
void check_order(const Steps& steps, By by, Ring ring) {
  const Place flushed = by == By::flush ? Place::hdp : Place::line;
  REQUIRE(steps.count(Kind::store, flushed) == 1);
  REQUIRE(steps.count(Kind::load, flushed) == 1);
  CHECK(steps.count(Kind::store, by == By::flush ? Place::line : Place::hdp) == 0);
  const uint64_t arguments = steps.last(Kind::store, Place::kernargs);
  const uint64_t flush = steps.first(Kind::store, flushed);
  const uint64_t flush_ends = steps.first(Kind::load, flushed);
  const uint64_t header = steps.first(Kind::store, Place::ring_header, 0);
  const uint64_t doorbell = steps.first(Kind::store, Place::doorbell);
  REQUIRE(arguments != Steps::kNever);
  REQUIRE(header != Steps::kNever);
  REQUIRE(doorbell != Steps::kNever);
  CHECK(arguments < flush);
  CHECK(steps.has_fence(arguments, flush));
  CHECK(flush < flush_ends);
  if (by == By::read_back) CHECK(steps.has_full_fence(flush, flush_ends));
  CHECK(flush_ends < header);
  CHECK(steps.first(Kind::store, Place::ring_body, 0) < header);
  CHECK(header < steps.first(Kind::store, Place::write_index));
  CHECK(header < doorbell);
  if (ring == Ring::host) return;
  const uint64_t first_body = steps.first(Kind::store, Place::ring_body);
  const uint64_t last_body = steps.last(Kind::store, Place::ring_body);
  CHECK(flush_ends < first_body);
  CHECK(last_body < header);
  CHECK(steps.has_fence(last_body, header));
  CHECK(steps.last(Kind::store, Place::ring_header) == header);
  CHECK(steps.has_fence(header, doorbell));
}

template <class World>
void check_all(const char* name, std::initializer_list<uint32_t> lengths) {
  for (const By by : {By::flush, By::read_back}) {
    for (const Ring ring : {Ring::host, Ring::device}) {
      for (const uint32_t length : lengths) {
        CAPTURE(name, by, ring, length);
        World world(by, ring);
        check_order(world.publish(length), by, ring);
      }
    }
  }
}

}  // namespace

TEST_CASE("a batch publishes its arguments before its first header", "[order]") {
  check_all<BatchWorld>("batch", {2});
}

TEST_CASE("a batch of a shared queue publishes its arguments before its first header", "[order]") {
  check_all<SharedWorld>("shared", {2});
}

TEST_CASE("a replay publishes changed arguments before its first header", "[order]") {
  check_all<ReplayWorld>("replay", {2});
}

TEST_CASE("shorter and longer publications have the same order", "[order][.long]") {
  check_all<BatchWorld>("batch", {1, 8});
  check_all<SharedWorld>("shared", {1, 8});
  check_all<ReplayWorld>("replay", {1, 8});
}

TEST_CASE("a launch of a stream publishes its arguments before its header", "[order]") {
  check_all<StreamWorld>("stream", {1});
}

TEST_CASE("every launch of a stream publishes its own arguments", "[order]") {
  StreamWorld world(By::flush, Ring::device);
  const Steps steps = world.publish(4);
  CHECK(steps.count(Kind::store, Place::hdp) == 4);
  for (size_t slot = 0, at = 0; slot < 4; ++slot) {
    // The first store to the register after the previous launch's header.
    uint64_t flush = Steps::kNever;
    for (; at < steps.all.size() && flush == Steps::kNever; ++at)
      if (steps.all[at].place == Place::hdp && steps.all[at].kind == Kind::store)
        flush = steps.all[at].number;
    const uint64_t header = steps.first(Kind::store, Place::ring_header, slot);
    CAPTURE(slot);
    CHECK(flush < header);
    CHECK(steps.has_fence(steps.first(Kind::store, Place::ring_body, slot), header));
    CHECK((slot == 0 || steps.first(Kind::store, Place::ring_header, slot - 1) < flush));
  }
}

TEST_CASE("a ring in host memory needs no fence", "[order]") {
  PublicationWorld world(By::flush, Ring::host);
  aql::AqlQueueWriter writer = aql::AqlQueueWriter::borrow(world.memory().queue());
  CHECK_FALSE(writer.has_device_ring());
  const std::vector<aql::Packet64> packets(
      4, aql::to_packet(aql::KernelDispatch{.kernel_object = 0x1234}));
  const Steps steps = world.steps([&] { (void)writer.publish(packets, Deadline::never()); });
  CHECK_FALSE(steps.has_fence(0, UINT64_MAX));
  CHECK(steps.first(Kind::store, Place::ring_header, 0) <
        steps.first(Kind::store, Place::doorbell));
}
