// Private segments: the handshake with the runtime, and wave slots.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "device_fixture.hpp"
#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

namespace {

// Acts as ROCr on a request: provides scratch for `lane_bytes` per work-item and `waves` waves.
void give_scratch(ComputeQueue& queue, uint32_t lane_bytes, uint32_t waves) {
  queue.queue->scratch_wave64_lane_byte_size = lane_bytes;
  queue.queue->compute_tmpring_size = waves | (lane_bytes * 64 / 1024) << 12;
  queue.queue->scratch_backing_memory_location = 0x500000;
  DeviceFixture::set(queue.inactive, 0);
}

}  // namespace

TEST_CASE(
    "scratch for a larger private segment is requested when the queue is empty, with the packet at "
    "the read index") {
  DeviceFixture device;
  ComputeQueue queue(device);
  std::atomic<bool> earlier_may_end{false};
  std::atomic<unsigned> ran{0};
  std::atomic<uint64_t> asked_at{0};
  device.interrupts.when_raised = [&](uint32_t event) {
    if (event == queue.error_event()) asked_at = queue.read_index();
  };
  ScriptedKernel* earlier = device.kernel(
      [&](const Slice&) { return earlier_may_end ? Result::ended : Result::preempted; });
  ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
    if (slice.dispatch.scratch_base == 0x500000 &&
        slice.dispatch.scratch_bytes_per_wave == 64 * 256 && slice.dispatch.scratch_waves == 8)
      ++ran;
    return Result::ended;
  });
  kernel->private_segment_bytes = 200;
  amd_signal_t* done = device.signal(1);
  queue.write(dispatch(earlier));
  auto packet = dispatch(kernel, 64, 64, false, done);
  packet.private_segment_size = 200;
  queue.write(packet);
  queue.ring();
  settle();
  CHECK(queue.error() == 0);
  earlier_may_end = true;
  REQUIRE(eventually([&] { return queue.error() == 1; }));
  CHECK(eventually([&] { return device.interrupts.raised(queue.error_event()) == 1; }));
  CHECK(asked_at == 1);
  CHECK(queue.header(1) == packet.header);
  settle();
  CHECK(DeviceFixture::value(done) == 1);
  give_scratch(queue, 256, 8);
  REQUIRE(fires(done));
  CHECK(ran == 1);
  // Enough for the next dispatch, so no second request.
  amd_signal_t* again = device.signal(1);
  packet.completion_signal = DeviceFixture::handle(again);
  queue.submit(packet);
  CHECK(fires(again));
  CHECK(device.interrupts.raised(queue.error_event()) == 1);
}

TEST_CASE("a runtime that gives too little scratch is asked three times, then the queue stops") {
  DeviceFixture device;
  ComputeQueue queue(device);
  ScriptedKernel* kernel = device.kernel();
  auto packet = dispatch(kernel, 64, 64);
  packet.private_segment_size = 200;
  queue.submit(packet);
  for (int request = 0; request < 3; ++request) {
    REQUIRE(eventually([&] { return queue.error() == 1; }));
    give_scratch(queue, 64, 8);
  }
  CHECK(eventually(
      [&] { return queue.error() == static_cast<uint64_t>(QueueError::packet_format); }));
}

TEST_CASE("a queue that is suspended for lack of scratch says how much its kernel needs") {
  const uptempo::test::TemporaryDirectory directory;
  const int terminal = dup(STDERR_FILENO);
  const int file = open(directory.file("err").c_str(), O_WRONLY | O_CREAT, 0600);
  dup2(file, STDERR_FILENO);
  close(file);
  uint64_t waves = 0;
  {
    DeviceFixture device;
    ComputeQueue queue(device);
    auto packet = dispatch(device.kernel(), 64, 64);
    packet.private_segment_size = 200;
    queue.submit(packet);
    CHECK(eventually([&] { return queue.error() == 1; }));
    const auto ring =
        DeviceFixture::address(static_cast<std::byte*>(queue.queue->hsa_queue.base_address));
    CHECK(device.processor->update_queue(queue.id, ring, queue.packets * 64, 0, 7));
    const DeviceDescription& gpu = *device.device->options.device;
    waves = uint64_t{gpu.compute_units} * gpu.simds_per_compute_unit * gpu.max_waves_per_simd;
  }
  dup2(terminal, STDERR_FILENO);
  close(terminal);
  const std::string text = uptempo::test::contents_of(directory.file("err"));
  CAPTURE(text);
  // 64 times 200 bytes in whole KiB
  CHECK(text.find("needs 200 bytes of private memory per work-item, 13312 per wave, and " +
                  std::to_string(13312 * waves) + " for the " + std::to_string(waves) + " waves") !=
        std::string::npos);
}

TEST_CASE("scratch for one dispatch alone is reclaimed before anything else is launched") {
  DeviceFixture device;
  ComputeQueue queue(device);
  ScriptedKernel* kernel = device.kernel();
  auto packet = dispatch(kernel, 64, 64);
  packet.private_segment_size = 256;
  amd_signal_t* done = device.signal(1);
  packet.completion_signal = DeviceFixture::handle(done);
  amd_signal_t* behind = device.signal(1);
  queue.write(packet);
  queue.write(barrier_and({}, false, behind));
  queue.ring();
  REQUIRE(eventually([&] { return queue.error() == 1; }));
  queue.set_property(AMD_QUEUE_PROPERTIES_USE_SCRATCH_ONCE, true);
  give_scratch(queue, 256, 8);
  REQUIRE(fires(done));
  REQUIRE(eventually([&] { return queue.error() == 0x200; }));
  settle();
  CHECK(DeviceFixture::value(behind) == 1);
  // ROCr stores the signal first, then the property.
  DeviceFixture::set(queue.inactive, 0);
  queue.set_property(AMD_QUEUE_PROPERTIES_USE_SCRATCH_ONCE, false);
  CHECK(fires(behind));
}

TEST_CASE(
    "resident workgroups never share wave slots, and the queue's slots bound how many are "
    "resident") {
  DeviceFixture device;
  ComputeQueue queue(device);
  give_scratch(queue, 256, 8);
  std::mutex mutex;
  std::set<uint32_t> taken;
  size_t most = 0;
  bool clash = false;
  ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
    const std::lock_guard lock(mutex);
    // Workgroups of three waves use three consecutive slots.
    for (uint32_t slot = slice.scratch_slot; slot < slice.scratch_slot + 3; ++slot)
      if (slice.turn == 0) clash = clash || !taken.insert(slot).second || slot >= 8;
    most = std::max(most, taken.size());
    // No workgroup ends before two have been resident together, however late the second worker
    // starts.
    if (slice.turn < 3 || most < 6) return Result::preempted;
    for (uint32_t slot = slice.scratch_slot; slot < slice.scratch_slot + 3; ++slot)
      taken.erase(slot);
    return Result::ended;
  });
  amd_signal_t* done = device.signal(1);
  auto packet = dispatch(kernel, 192 * 50, 192, false, done);
  packet.private_segment_size = 256;
  queue.submit(packet);
  REQUIRE(fires(done));
  CHECK_FALSE(clash);
  CHECK(most == 6);
  CHECK(taken.empty());
}

TEST_CASE("a workgroup with more waves than the scratch has slots for is refused") {
  DeviceFixture device;
  ComputeQueue queue(device);
  give_scratch(queue, 256, 2);
  auto packet = dispatch(device.kernel(), 192, 192);
  packet.private_segment_size = 256;
  queue.submit(packet);
  CHECK(eventually(
      [&] { return queue.error() == static_cast<uint64_t>(QueueError::workgroup_too_large); }));
}
