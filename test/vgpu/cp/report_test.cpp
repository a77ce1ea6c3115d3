// Hang reports of queues in each state. A test waits until the report says what it should, because
// queues come to their states at their own time, and then lets the queue go on.
#include "cp/report/hang_report.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device_fixture.hpp"
#include "sdma_ring.hpp"
#include "test/support/catch.hpp"
#include "test/support/text.hpp"

namespace uptempo::vgpu::test {
namespace {

using uptempo::test::contains;

std::string hex(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx",
                static_cast<unsigned long long>(reinterpret_cast<uint64_t>(address)));
  return text;
}

std::string raw_report(DeviceFixture& device, std::chrono::milliseconds limit) {
  const ReportedGpu gpu{
      .snapshot = device.processor->snapshot(CommandProcessor::SnapshotDepth::waves, limit),
      .memory = &device.memory};
  return hang_report("test", {&gpu, 1}, false, nullptr);
}

// The report's words, with single spaces.
std::string report(DeviceFixture& device,
                   std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  std::string words;
  for (const char letter : raw_report(device, limit)) {
    const bool space = letter == ' ' || letter == '\n';
    if (!space || (!words.empty() && words.back() != ' ')) words.push_back(space ? ' ' : letter);
  }
  return words;
}

// Returns the first report that holds the words, or the last one.
std::string report_with(DeviceFixture& device, const std::vector<std::string>& parts) {
  std::string text;
  const auto holds = [&](const std::string& part) { return contains(text, part); };
  eventually([&] {
    text = report(device);
    return std::ranges::all_of(parts, holds);
  });
  INFO(text);
  for (const std::string& part : parts) CHECK(holds(part));
  return text;
}
std::string report_with(DeviceFixture& device, const std::string& words) {
  return report_with(device, std::vector{words});
}

// A kernel that runs until `release` is set. It may still run when this object is gone.
struct Spinning {
  explicit Spinning(DeviceFixture& device)
      : kernel(device.kernel([flag = flag](const Slice&) {
          return flag->load() ? Result::ended : Result::preempted;
        })) {}
  const std::shared_ptr<std::atomic<bool>> flag = std::make_shared<std::atomic<bool>>(false);
  std::atomic<bool>& release = *flag;
  ScriptedKernel* kernel;
};

}  // namespace

TEST_CASE("a report of an idle device gives the indices of its queues", "[report]") {
  DeviceFixture device;
  ComputeQueue first(device), queue(device, 128);
  amd_signal_t* const done = device.signal(1);
  queue.submit(barrier_and({}, false, done));
  REQUIRE(fires(done));
  const std::string text = report(device);
  INFO(text);
  CHECK(contains(text,
                 "queue 0, compute (the runtime's): idle read 0, write 0, doorbell never rung"));
  CHECK(
      contains(text, "queue 1, compute: idle read 1, write 1, doorbell 0, ring of 128 packets at " +
                         hex(queue.slot(0)) + ", priority 7"));
}

TEST_CASE("no line of a report is longer than 100 columns", "[report]") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* const never = device.signal(1);
  queue.submit(barrier_and({never, device.signal(2)}, true, device.signal(3)));
  report_with(device, hex(never));
  const std::string text = raw_report(device, std::chrono::seconds(60));
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1)
    CHECK(end - begin <= 100);
}

TEST_CASE("a report names the signals of a barrier-AND that are not 0, and who completes them",
          "[report]") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* const never = device.signal(3);
  amd_signal_t* const zero = device.signal(0);
  amd_signal_t* const done = device.signal(1);
  queue.submit(barrier_and({zero, never}, false, done));
  const std::string text = report_with(device, "waits until signal " + hex(never) +
                                                   " is 0; it is 3 no packet on this device "
                                                   "completes it; only the host or a kernel can");
  CHECK(contains(text, "queue 0, compute (the runtime's): waiting at packet 0"));
  CHECK(contains(text,
                 "packet 0: barrier_and no barrier bit, acquire none, release none, completion "
                 "signal " +
                     hex(done) + " = 1"));
  CHECK(!contains(text, "signal " + hex(zero)));
  CHECK(!contains(text, "deadlock"));
  DeviceFixture::set(never, 0);
  CHECK(fires(done));
}

TEST_CASE("a report names the conditions of barrier-OR and barrier-value packets", "[report]") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* const one = device.signal(1);
  amd_signal_t* const two = device.signal(2);
  amd_signal_t* const done = device.signal(2);
  queue.submit(barrier_or({one, two}, false, done));
  const std::string text = report_with(
      device, "waits for one of these signals: waits until signal " + hex(one) + " is 0; it is 1");
  CHECK(contains(text, "waits until signal " + hex(two) + " is 0; it is 2"));
  queue.submit(barrier_value(two, HSA_SIGNAL_CONDITION_GTE, 8, 0xff, done));
  DeviceFixture::set(one, 0);
  report_with(device,
              "packet 1: barrier_value no barrier bit, acquire none, release none, "
              "completion signal " +
                  hex(done) + " = 1 waits until signal " + hex(two) + " & 0xff is >= 8; it is 2");
  DeviceFixture::set(two, 9);
  CHECK(fires(done));
}

TEST_CASE("a report names queues that wait for one another as a deadlock", "[report]") {
  DeviceFixture device;
  ComputeQueue first(device), second(device), third(device);
  amd_signal_t* const left = device.signal(1);
  amd_signal_t* const right = device.signal(1);
  amd_signal_t* const done = device.signal(1);
  first.submit(barrier_and({left}));
  first.submit(barrier_and({}, false, right));
  second.submit(barrier_and({right}, false, left));
  third.submit(barrier_and({right}, false, done));
  const std::string text = report_with(
      device,
      "deadlock: 2 queues wait in a circle; only the host or a kernel can end it "
      "queue 0 packet 0 waits until signal " +
          hex(left) +
          " is 0; it is 1; queue 1 "
          "packet 0 completes it queue 1 packet 0 waits until signal " +
          hex(right) + " is 0; it is 1; queue 0 packet 1 completes it, after queue 0 packet 0");
  // The third queue waits for the circle and is not of it.
  CHECK(text.find("deadlock") == text.rfind("deadlock"));
  DeviceFixture::set(left, 0);
  CHECK(fires(done));
}

TEST_CASE("a report names a packet that waits for a later one of its queue as a deadlock",
          "[report]") {
  DeviceFixture device;
  ComputeQueue queue(device);
  amd_signal_t* const later = device.signal(1);
  amd_signal_t* const itself = device.signal(1);
  queue.submit(barrier_and({later}));
  queue.submit(barrier_and({}, false, later));
  report_with(device,
              "deadlock: a packet waits for itself or for a later one of its queue; only "
              "the host or a kernel can end it queue 0 packet 0 waits until signal " +
                  hex(later) +
                  " is 0; it is 1; queue 0 packet 1 completes it, after queue 0 "
                  "packet 0");
  DeviceFixture::set(later, 0);
  CHECK(eventually([&] { return queue.read_index() == 2; }));
  queue.submit(barrier_and({itself}, false, itself));
  report_with(device, hex(itself) + " is 0; it is 1; it completes that signal itself");
  DeviceFixture::set(itself, 0);
  CHECK(eventually([&] { return queue.read_index() == 3; }));
}

TEST_CASE("a report names a deadlock of a compute queue and an SDMA queue", "[report]") {
  DeviceFixture device;
  ComputeQueue queue(device);
  SdmaRing copies(device);
  amd_signal_t* const copied = device.signal(1);
  amd_signal_t* const ready = device.signal(1);
  copies.write(poll(const_cast<int64_t*>(&ready->value), 0));
  copies.write(decrement(const_cast<int64_t*>(&copied->value)));
  copies.ring();
  queue.submit(barrier_and({copied}, false, ready));
  report_with(device,
              "deadlock: 2 queues wait in a circle; only the host or a kernel can end it "
              "queue 0 packet 0 waits until signal " +
                  hex(copied) +
                  " is 0; it is 1; "
                  "queue 1 offset 24 completes it, after queue 1 offset 0");
  DeviceFixture::set(ready, 0);
  CHECK(fires(copied));
}

TEST_CASE("waits that a running packet, a doorbell or a producer can end are no deadlock",
          "[report]") {
  DeviceFixture device;
  ComputeQueue waits(device), other(device);
  amd_signal_t* const left = device.signal(1);
  amd_signal_t* const right = device.signal(1);
  amd_signal_t* const done = device.signal(1);
  SECTION("a running kernel completes the signal") {
    Spinning spin(device);
    waits.submit(barrier_and({left}, false, done));
    other.submit(dispatch(spin.kernel, 1, 1, false, left));
    const std::string text = report_with(
        device, "queue 1 packet 0 completes it: kernel_dispatch " + hex(spin.kernel) + ", running");
    CHECK(!contains(text, "deadlock"));
    spin.release = true;
  }
  SECTION("the doorbell was not rung for the other queue's packet") {
    waits.submit(barrier_and({left}, false, done));
    other.write(barrier_and({}, false, left));
    const std::string text =
        report_with(device, "queue 1 packet 0 completes it: barrier_and, not launched");
    CHECK(
        contains(text, "packet 0 is before the write index, but the doorbell was not rung for it"));
    CHECK(contains(text, "queue 1, compute: waiting for its doorbell"));
    CHECK(!contains(text, "deadlock"));
    other.ring();
  }
  SECTION("the other queue waits for a signal that nobody completes") {
    waits.submit(barrier_and({left}, false, done));
    other.submit(barrier_and({right}, false, left));
    const std::string text = report_with(device, "waits until signal " + hex(right));
    CHECK(!contains(text, "deadlock"));
    DeviceFixture::set(right, 0);
  }
  CHECK(fires(done));
}

TEST_CASE("a report names a slot that is reserved and not published", "[report]") {
  DeviceFixture device;
  ComputeQueue queue(device);
  queue.set_write_index(2);
  queue.ring(1);
  report_with(device,
              "packet 0 (slot 0) is reserved and not published: its header is still "
              "INVALID, but the write index and the doorbell are beyond it");
}

TEST_CASE("a report shows the workgroups of a running dispatch and what its barrier bit keeps back",
          "[report]") {
  DeviceFixture device(with_workers(2));
  ComputeQueue queue(device);
  std::atomic<bool> release{false};
  ScriptedKernel* const kernel = device.kernel([&](const Slice& slice) {
    return slice.id[0] == 2 && !release ? Result::preempted : Result::ended;
  });
  amd_signal_t* const first = device.signal(1);
  amd_signal_t* const second = device.signal(1);
  queue.submit(dispatch(kernel, 4 * 64, 64, false, first));
  queue.submit(dispatch(kernel, 64, 64, true, second));
  const std::string text =
      report_with(device, std::vector<std::string>{"running packet 0; waiting at packet 1",
                                                   "workgroups: 3 done, 1 running, 0 not started"});
  CHECK(
      contains(text, "packet 0: kernel_dispatch " + hex(kernel) +
                         ", grid 256x1x1, workgroup 64x1x1 no barrier bit, acquire agent, release "
                         "agent, kernarg 0x0, completion signal " +
                         hex(first)));
  CHECK(contains(text, "wave 0 of workgroup (2,0,0): "));
  CHECK(contains(text, "EXEC 0xffffffffffffffff"));
  CHECK(contains(text, "waits for all packets before it, because of its barrier bit: 0"));
  release = true;
  CHECK(fires(first));
  CHECK(fires(second));
}

TEST_CASE("a report says that the compute units hold no more workgroups", "[report]") {
  DeviceFixture device(with_workers(2));
  ComputeQueue first(device), second(device);
  Spinning spin(device);
  amd_signal_t* const done = device.signal(2);
  hsa_kernel_dispatch_packet_t all_lds = dispatch(spin.kernel, 208 * 64, 64, false, done);
  all_lds.group_segment_size = 65536;
  first.submit(all_lds);
  report_with(
      device,
      "workgroups: 0 done, 104 running, 104 not started all that fit are running: 1 on each "
      "of 104 compute units (LDS: 64 of 64 KiB each); another one starts when one of them "
      "ends");
  SECTION("also for another queue") {
    hsa_kernel_dispatch_packet_t some_lds = dispatch(spin.kernel, 5 * 64, 64, false, done);
    some_lds.group_segment_size = 512;
    second.submit(some_lds);
    report_with(device,
                "workgroups: 0 done, 0 running, 5 not started no compute unit has room for another "
                "one (wave slots: 1 of 32 each) beside those of queue 0 packet 0; one starts when "
                "others end");
  }
  SECTION("but a kernel without LDS fits beside them") {
    second.submit(dispatch(spin.kernel, 5 * 64, 64, false, done));
    report_with(device, "workgroups: 0 done, 5 running, 0 not started");
  }
  spin.release = true;
  CHECK(fires(done));
}

TEST_CASE("waves at one place share a line of a report", "[report]") {
  DeviceFixture device(with_workers(3));
  ComputeQueue queue(device);
  Spinning spin(device);
  amd_signal_t* const done = device.signal(1);
  queue.submit(dispatch(spin.kernel, 20 * 256, 256, false, done));
  report_with(device, "waves 0-3 of 20 workgroups, first (0,0,0): ");
  spin.release = true;
  CHECK(fires(done));
}

TEST_CASE("a report names a worker that does not answer", "[report]") {
  DeviceFixture device(with_workers(2));
  ComputeQueue queue(device);
  std::atomic<bool> blocked{false}, release{false};
  ScriptedKernel* const kernel = device.kernel([&](const Slice&) {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (std::strcmp(name, "vgpu-worker") == 0) {
      blocked = true;
      while (!release) sched_yield();
    }
    return release ? Result::ended : Result::preempted;
  });
  // A kernel that computes. A worker wakes no other one for workgroups that only wait.
  kernel->instructions_per_slice = 8192;
  amd_signal_t* const done = device.signal(1);
  queue.submit(dispatch(kernel, 8, 1, false, done));
  REQUIRE(eventually([&] { return blocked.load(); }));
  // The worker's limit is a tenth of it.
  const std::string text = report(device, std::chrono::seconds(60));
  INFO(text);
  CHECK(contains(text, "worker 1 did not answer in time"));
  release = true;
  CHECK(fires(done));
}

TEST_CASE("a report says that a command processor does not answer", "[report]") {
  DeviceFixture device(with_workers(1));
  ComputeQueue queue(device);
  std::atomic<bool> blocked{false}, release{false};
  ScriptedKernel* const kernel = device.kernel([&](const Slice&) {
    blocked = true;
    while (!release) sched_yield();
    return Result::ended;
  });
  amd_signal_t* const done = device.signal(1);
  queue.submit(dispatch(kernel, 1, 1, false, done));
  REQUIRE(eventually([&] { return blocked.load(); }));
  const std::string text = report(device, std::chrono::milliseconds(20));
  INFO(text);
  CHECK(contains(text, "its command processor did not answer in time"));
  release = true;
  CHECK(fires(done));
}

TEST_CASE("a report shows what an SDMA queue waits for", "[report]") {
  DeviceFixture device;
  SdmaRing copies(device);
  auto* const word = device.allocate_object<uint32_t>();
  auto* const after = device.allocate_object<uint32_t>();
  copies.write(poll(word, 7));
  copies.write(fence(after, 1));
  copies.ring();
  const std::string text = report_with(device, "waits until the word at " + hex(word) +
                                                   " is 0x7; it is 0x0 only the "
                                                   "host, a copy or a kernel");
  CHECK(contains(text, "queue 0, SDMA engine 0: waiting at offset 0 get 0, put 40, doorbell 40"));
  CHECK(contains(text, "offset 0: poll_regmem"));
  std::atomic_ref<uint32_t>(*word).store(7, std::memory_order_release);
  CHECK(eventually([&] { return std::atomic_ref<uint32_t>(*after).load() == 1; }));
}

TEST_CASE("packets behind an error have work left, and a report says that they will not run",
          "[report]") {
  DeviceFixture device;
  ComputeQueue queue(device);
  const auto has_work = [&] {
    const DeviceSnapshot snapshot = device.processor->snapshot(
        CommandProcessor::SnapshotDepth::queues, std::chrono::seconds(60));
    return std::ranges::any_of(snapshot.queues, &QueueSnapshot::has_work);
  };
  CHECK_FALSE(has_work());
  auto malformed = dispatch(device.kernel());
  malformed.workgroup_size_x = 0;
  queue.write(malformed);
  queue.write(barrier_and({}, false, device.signal(1)));
  queue.ring();
  report_with(device, "stopped by an error");
  report_with(device, "packets 0 to 1 will not run");
  CHECK(has_work());
}

TEST_CASE("a report names packets that have not run and store what is waited for", "[report]") {
  DeviceFixture device;
  ComputeQueue queue(device);
  SdmaRing copies(device);
  auto* const word = device.allocate_object<uint32_t>();
  amd_signal_t* const stored = device.signal(5);
  amd_signal_t* const done = device.signal(1);
  queue.submit(barrier_and({stored}, false, done));
  copies.write(poll(word, 7));
  copies.write(fence(word, 7));
  copies.write(fence(reinterpret_cast<uint32_t*>(const_cast<int64_t*>(&stored->value)), 0));
  copies.ring();
  report_with(device, std::vector<std::string>{
                          "waits until the word at " + hex(word) +
                              " is 0x7; it is 0x0 queue 1 offset 24 stores there: fence, not "
                              "executed; the queue is at 0",
                          "waits until signal " + hex(stored) +
                              " is 0; it is 5 queue 1 offset 40 stores there: fence, not "
                              "executed; the queue is at 0"});
  std::atomic_ref<uint32_t>(*word).store(7, std::memory_order_release);
  CHECK(fires(done));
}

TEST_CASE("reports disturb no dispatch that runs meanwhile", "[report]") {
  DeviceFixture device(with_workers(3));
  ComputeQueue queue(device);
  constexpr uint32_t kGroups = 64;
  std::vector<std::atomic<uint32_t>> ran(kGroups);
  ScriptedKernel* const kernel = device.kernel([&](const Slice& slice) {
    if (slice.turn < 2) return Result::preempted;
    ++ran[slice.id[0]];
    return Result::ended;
  });
  for (uint32_t round = 1; round <= 20; ++round) {
    amd_signal_t* const done = device.signal(1);
    queue.submit(dispatch(kernel, kGroups, 1, true, done));
    report(device);
    REQUIRE(fires(done));
    CHECK(std::ranges::all_of(ran, [&](const auto& count) { return count == round; }));
  }
}

}  // namespace uptempo::vgpu::test
