#include "test/engine/double_device.hpp"

#include "test/support/catch.hpp"

using namespace uptempo;
using test::DoubleDevice;
using test::kActiveWait;
using test::number_kernel;
using test::soon;

TEST_CASE("a double names the resources of its queue that are in use", "[double]") {
  DoubleDevice device({.device = {.paused = true}});
  CHECK(device.in_use().empty());
  {
    BatchSubmitter batch(device.queue());
    batch.dispatch(number_kernel(), Grid{1}, 1u);
    CHECK(device.in_use() == "1 of 64 kernarg slabs");
    const Completion completion = batch.submit();
    CHECK(device.in_use() == "1 of 16 publications, 1 of 32 signals, 1 of 64 kernarg slabs");
    device.processor().resume();
    REQUIRE(completion.wait(soon(), kActiveWait));
    CHECK(device.in_use() == "1 of 64 kernarg slabs");  // the batch keeps it for its next dispatch
  }
  CHECK(device.in_use().empty());
}

TEST_CASE("the end of a double whose resources are in use fails the test",
          "[double][!shouldfail]") {
  auto device = std::make_unique<DoubleDevice>();
  BatchSubmitter batch(device->queue());
  batch.dispatch(number_kernel(), Grid{1}, 1u);
  device.reset();
}
