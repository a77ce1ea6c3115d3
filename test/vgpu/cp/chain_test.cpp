// Chains: dispatches with barrier bits, which workers start without the command processor. It
// chains only kernels that it has launched before, so each test uses one kernel.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "device_fixture.hpp"
#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

namespace {

bool set_percentage(DeviceFixture& device, const ComputeQueue& queue, uint32_t percentage) {
  return device.processor->update_queue(
      queue.id, reinterpret_cast<GpuAddress>(queue.queue->hsa_queue.base_address),
      queue.packets * 64, percentage, 7);
}

// A kernel whose first dispatch of the queue ends once `open` is true. Workgroups of later ones
// count in `started` and end.
ScriptedKernel* gated(DeviceFixture& device, std::atomic<bool>& open,
                      std::atomic<unsigned>& started) {
  return device.kernel([&](const Slice& slice) {
    if (slice.dispatch.dispatch_id == 0) return open ? Result::ended : Result::preempted;
    ++started;
    return Result::ended;
  });
}

}  // namespace

TEST_CASE("no workgroup of a chain starts before the last one of the dispatch before has ended") {
  for (const uint32_t workers : {2u, 4u, 9u}) {
    CAPTURE(workers);
    DeviceFixture device(with_workers(workers));
    ComputeQueue queue(device);
    constexpr unsigned kDispatches = 150;
    // From fewer workgroups than workers to several chunks of each.
    const auto groups = [](uint64_t id) { return id % 3 == 0 ? 5u : id % 3 == 1 ? 1u : 300u; };
    std::array<std::atomic<unsigned>, kDispatches> ended{};
    std::atomic<unsigned> wrong{0};
    ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
      const uint64_t id = slice.dispatch.dispatch_id;
      if (id > 0 && ended[id - 1] != groups(id - 1)) ++wrong;
      if (slice.turn < slice.id[0] % 2) return Result::preempted;
      ++ended[id];
      return Result::ended;
    });
    amd_signal_t* done = device.signal(1);
    for (unsigned index = 0; index < kDispatches; ++index)
      queue.submit(dispatch(kernel, groups(index) * 64, 64, true,
                            index + 1 == kDispatches ? done : nullptr));
    REQUIRE(fires(done));
    CHECK(wrong == 0);
    for (unsigned index = 0; index < kDispatches; ++index) CHECK(ended[index] == groups(index));
    CHECK(queue.read_index() == kDispatches);
  }
}

TEST_CASE("a dispatch with a barrier bit waits for all earlier ones, not only for the last") {
  DeviceFixture device(with_workers(4));
  ComputeQueue queue(device);
  std::array<std::atomic<bool>, 4> open{};
  std::atomic<unsigned> ended{0}, wrong{0};
  ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
    if (slice.dispatch.dispatch_id >= open.size()) {
      if (ended != 4 * 16) ++wrong;
      return Result::ended;
    }
    if (!open[slice.dispatch.dispatch_id]) return Result::preempted;
    ++ended;
    return Result::ended;
  });
  amd_signal_t* done = device.signal(1);
  for (int index = 0; index < 4; ++index) queue.write(dispatch(kernel, 16 * 64, 64, false));
  queue.write(dispatch(kernel, 16 * 64, 64, true));
  queue.write(dispatch(kernel, 16 * 64, 64, true, done));
  queue.ring();
  for (const unsigned next : {0u, 3u, 1u, 2u}) {
    settle();
    CHECK(DeviceFixture::value(done) == 1);
    open[next] = true;
  }
  REQUIRE(fires(done));
  CHECK(wrong == 0);
}

TEST_CASE("a packet without barrier bit does not pass one that waits") {
  DeviceFixture device(with_workers(3));
  ComputeQueue queue(device);
  std::atomic<bool> open{false};
  std::atomic<unsigned> started{0};
  ScriptedKernel* kernel = gated(device, open, started);
  amd_signal_t* done = device.signal(1);
  queue.write(dispatch(kernel, 64, 64, false));
  queue.write(dispatch(kernel, 64, 64, true));
  queue.write(dispatch(kernel, 64, 64, false));
  queue.write(dispatch(kernel, 64, 64, false, done));
  queue.ring();
  settle();
  CHECK(started == 0);
  open = true;
  REQUIRE(fires(done));
  CHECK(eventually([&] { return started == 3; }));
}

TEST_CASE("a fault in a chain stops the queue: no later dispatch starts") {
  DeviceFixture device(with_workers(3));
  ComputeQueue queue(device);
  std::atomic<unsigned> late{0};
  std::atomic<bool> open{false};
  ScriptedKernel* kernel = device.kernel([&](const Slice& slice) {
    if (slice.dispatch.dispatch_id > 2) ++late;
    if (!open) return Result::preempted;
    if (slice.dispatch.dispatch_id != 2 || slice.id[0] != 7) return Result::ended;
    slice.executor.fault =
        gfx9::Executor::Fault{QueueError::illegal_instruction, std::nullopt, "s_bogus"};
    return Result::faulted;
  });
  amd_signal_t* never = device.signal(1);
  for (int index = 0; index < 20; ++index)
    queue.write(dispatch(kernel, 40 * 64, 64, true, index == 19 ? never : nullptr));
  queue.ring();
  settle();
  open = true;
  REQUIRE(eventually([&] { return queue.error() != 0; }));
  settle();
  CHECK(late == 0);
  CHECK(DeviceFixture::value(never) == 1);
}

TEST_CASE("a suspended queue starts no dispatch of its chain until it continues") {
  DeviceFixture device(with_workers(3));
  ComputeQueue queue(device);
  std::atomic<bool> open{false};
  std::atomic<unsigned> started{0};
  ScriptedKernel* kernel = gated(device, open, started);
  amd_signal_t* done = device.signal(1);
  queue.write(dispatch(kernel, 64, 64, true));
  for (int index = 0; index < 5; ++index)
    queue.write(dispatch(kernel, 10 * 64, 64, true, index == 4 ? done : nullptr));
  queue.ring();
  settle();
  REQUIRE(set_percentage(device, queue, 0));
  open = true;
  settle();
  CHECK(started == 0);
  REQUIRE(set_percentage(device, queue, 100));
  REQUIRE(fires(done));
  CHECK(started == 50);
}

TEST_CASE("a queue with a chain that waits for an endless kernel can be destroyed") {
  DeviceFixture device(with_workers(3));
  ComputeQueue other(device);
  for (int round = 0; round < 10; ++round) {
    ComputeQueue queue(device);
    std::atomic<unsigned> started{0}, late{0};
    ScriptedKernel* endless = device.kernel([&](const Slice& slice) {
      ++(slice.dispatch.dispatch_id == 0 ? started : late);
      return Result::preempted;
    });
    for (int index = 0; index < 30; ++index) queue.write(dispatch(endless, 20 * 64, 64, true));
    queue.ring();
    REQUIRE(eventually([&] { return started > 20; }));
    queue.destroy();
    CHECK(late == 0);
    amd_signal_t* done = device.signal(1);
    other.submit(dispatch(device.kernel(), 640, 64, true, done));
    REQUIRE(fires(done));
  }
}

TEST_CASE("a packet in a chain has its ignored fields named under --verbose, too") {
  const uptempo::test::TemporaryDirectory directory;
  const int terminal = dup(STDERR_FILENO);
  const int file = open(directory.file("err").c_str(), O_WRONLY | O_CREAT, 0600);
  dup2(file, STDERR_FILENO);
  close(file);
  {
    Options options = with_workers(3);
    options.verbose = true;
    DeviceFixture device(options);
    ComputeQueue queue(device);
    std::atomic<bool> gate{false};
    std::atomic<unsigned> started{0};
    ScriptedKernel* kernel = gated(device, gate, started);
    amd_signal_t* done = device.signal(1);
    queue.write(dispatch(kernel, 64, 64, true));
    auto packet = dispatch(kernel, 64, 64, true, done);
    packet.reserved0 = 7;
    queue.write(packet);
    queue.ring();
    settle();
    gate = true;
    CHECK(fires(done));
  }
  dup2(terminal, STDERR_FILENO);
  close(terminal);
  CHECK(uptempo::test::contents_of(directory.file("err")).find("reserved0 should be 0") !=
        std::string::npos);
}
