// Queues under a tool that interposes HSA. UPTEMPO_TEST_TOOL names the tool that HSA_TOOLS_LIB has
// loaded:
//   shadow     shadow_profiler.cpp
//   dormant    the same, passing every call on
//   intercept  intercept_profiler.cpp
//   none       no tool
#include <dlfcn.h>
#include <hsa/hsa.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <uptempo/vgpu/query.h>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/support/profilers/report.hpp"

using namespace uptempo;

namespace {

using uptempo::test::contains;
using uptempo::test::download;
using uptempo::test::error_of;
using uptempo::test::OnDevice;
using uptempo::test::ProfilerCounts;
using uptempo::test::soon;

std::string_view tool() {
  const char* const name = std::getenv("UPTEMPO_TEST_TOOL");
  REQUIRE(name != nullptr);
  return name;
}
bool interposes() { return tool() != "none"; }
bool observes() { return tool() == "shadow" || tool() == "intercept"; }

// A ring that these tests fill several times. The interceptor of ROCr 5.2.3 takes packets out of
// the producers' ring before the device's ring has room, and asserts that it does so once
// (intercept_queue.cpp:149).
uint32_t small_ring() { return tool() == "intercept" ? 4096 : 64; }

// Packets that the tool has seen so far; nothing without a tool.
ProfilerCounts seen() {
  ProfilerCounts counts{};
  const char* const file = std::getenv("HSA_TOOLS_LIB");
  REQUIRE((file != nullptr) == interposes());
  if (file == nullptr) return counts;
  void* const library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  reinterpret_cast<test::ProfilerCountsFunction>(dlsym(library, "uptempo_profiler_counts"))(
      &counts);
  dlclose(library);
  return counts;
}

uptempo_vgpu_packet_counts executed() {
  uptempo_vgpu_packet_counts counts{};
  const auto ask =
      reinterpret_cast<uptempo_vgpu_packets_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_packets"));
  REQUIRE(ask != nullptr);
  REQUIRE(ask(&counts) == 0);
  return counts;
}

// Checks at its end that the device has executed `dispatches` kernels since its construction, and
// that the tool, if it observes, has seen each packet that the device executed exactly once.
class SeenOnce {
 public:
  explicit SeenOnce(uint64_t dispatches)
      : dispatches_(dispatches), seen_(seen()), executed_(executed()) {}
  ~SeenOnce() {
    const ProfilerCounts now = seen();
    const uptempo_vgpu_packet_counts there = executed();
    CAPTURE(tool());
    CHECK(there.dispatches - executed_.dispatches == dispatches_);
    CHECK(now.dispatches - seen_.dispatches == (observes() ? dispatches_ : 0));
    CHECK(now.others - seen_.others == (observes() ? there.others - executed_.others : 0));
    CHECK(now.problems == seen_.problems);
  }
  SeenOnce(const SeenOnce&) = delete;
  SeenOnce& operator=(const SeenOnce&) = delete;

 private:
  const uint64_t dispatches_;
  const ProfilerCounts seen_;
  const uptempo_vgpu_packet_counts executed_;
};

hsa_queue_t* make_queue(const Agent& gpu, uint32_t packets) {
  hsa_queue_t* queue = nullptr;
  REQUIRE(hsa_queue_create(gpu.handle(), packets, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr,
                           UINT32_MAX, UINT32_MAX, &queue) == HSA_STATUS_SUCCESS);
  return queue;
}

// A producer that knows HSA and not this library: publishes barrier packets one by one, each with
// `done`.
void publish_by_hsa(hsa_queue_t* queue, uint32_t packets, hsa_signal_t done) {
  auto* const ring = static_cast<hsa_barrier_and_packet_t*>(queue->base_address);
  for (uint32_t i = 0; i < packets; ++i) {
    const uint64_t index = hsa_queue_add_write_index_scacq_screl(queue, 1);
    while (index - hsa_queue_load_read_index_scacquire(queue) >= queue->size)
      std::this_thread::yield();
    hsa_barrier_and_packet_t& slot = ring[index & (queue->size - 1)];
    hsa_barrier_and_packet_t packet{};
    packet.completion_signal = done;
    std::memcpy(reinterpret_cast<char*>(&slot) + 4, reinterpret_cast<const char*>(&packet) + 4,
                sizeof(packet) - 4);
    std::atomic_ref(*reinterpret_cast<uint32_t*>(&slot))
        .store(HSA_PACKET_TYPE_BARRIER_AND, std::memory_order_release);
    hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  }
}

void await_zero(const Signal& signal) {
  CHECK(hsa_signal_wait_scacquire(signal.handle(), HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
                                  HSA_WAIT_STATE_BLOCKED) == 0);
}

}  // namespace

TEST_CASE_METHOD(OnDevice, "a tool sees each packet exactly once, however it is published",
                 "[profiled]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto counter = program.kernel<uint32_t*>("count_work_items");
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> items{gpu, 1};
  copier.fill(items, 0);
  const auto expected = interposes() ? aql::RingAccess::hsa_calls : aql::RingAccess::direct;

  SECTION("by batches on a queue, some longer than the ring") {
    {
      Queue queue{gpu, {.packets = small_ring()}};
      CHECK(queue.pressure().access == expected);
      const SeenOnce once(1 + 64 + 200 + 3 * 7);
      BatchSubmitter batch{queue};
      for (const int count : {1, 64, 200, 7, 7, 7}) {
        for (int i = 0; i < count; ++i) batch.dispatch(counter, Grid{64}, items.data());
        CHECK(batch.submit().wait(soon()));
      }
    }
    CHECK(download(copier, items)[0] == 286 * 64);
  }
  SECTION("by HSA calls on request") {
    Queue queue{gpu, {.access = RingAccessMode::hsa_calls}};
    CHECK(queue.pressure().access == aql::RingAccess::hsa_calls);
    const SeenOnce once(10);
    BatchSubmitter batch{queue};
    for (int i = 0; i < 10; ++i) batch.dispatch(counter, Grid{64}, items.data());
    CHECK(batch.submit().wait(soon()));
  }
  SECTION("by replays of a recording") {
    Queue queue{gpu};
    Recording recording{queue};
    for (int i = 0; i < 5; ++i) recording.dispatch(counter, Grid{64}, items.data());
    const SeenOnce once(20 * 5);
    for (int i = 0; i < 20; ++i) recording.replay(queue);
    queue.wait();
  }
  SECTION("by threads over one HSA queue") {
    SharedQueue shared{gpu, {.packets = small_ring()}};
    std::vector<std::unique_ptr<Queue>> queues;
    for (int i = 0; i < 3; ++i) queues.push_back(std::make_unique<Queue>(shared.producer()));
    for (const auto& queue : queues) CHECK(queue->pressure().access == expected);
    const SeenOnce once(3 * 100 * 3);
    std::vector<std::thread> threads;
    for (const auto& queue : queues)
      threads.emplace_back([&, mine = queue.get()] {
        BatchSubmitter batch{*mine};
        for (int i = 0; i < 100; ++i) {
          for (int k = 0; k < 3; ++k) batch.dispatch(counter, Grid{64}, items.data());
          batch.submit();
        }
        mine->wait();
      });
    for (std::thread& thread : threads) thread.join();
  }
  SECTION("by launches of streams") {
    Streams streams{gpu, {.hardware_queues = 2, .queue = {.packets = small_ring()}}};
    Stream one{streams}, two{streams};
    const SeenOnce once(2 * 150);
    for (int i = 0; i < 150; ++i) {
      one.launch(counter, Grid{64}, items.data());
      two.launch(counter, Grid{64}, items.data());
      if (i % 10 == 0) two.after(one.record());
    }
    streams.synchronize();
  }
}

TEST_CASE("direct access on request bypasses a tool", "[profiled]") {
  REQUIRE(hsa_init() == HSA_STATUS_SUCCESS);  // keeps the tool loaded
  const ProfilerCounts before = seen();
  {
    const Runtime runtime;
    const Program program{runtime.gpu(), builtin_kernels::basics()};
    const auto empty = program.kernel<>("empty");
    const uint64_t ran = executed().dispatches;
    Queue queue{runtime.gpu(), {.access = RingAccessMode::direct}};
    CHECK(queue.pressure().access == aql::RingAccess::direct);
    BatchSubmitter batch{queue};
    for (int i = 0; i < 3; ++i) batch.dispatch(empty, Grid{64});
    CHECK(batch.submit().wait(soon()));
    CHECK(executed().dispatches - ran == 3);
  }
  // An intercepted queue has no hardware doorbell, so the tool cannot be bypassed.
  const ProfilerCounts after = seen();
  CHECK(after.dispatches - before.dispatches == (tool() == "intercept" ? 3 : 0));
  // Seen when the queue is destroyed, by the end of the Runtime.
  CHECK(after.problems - before.problems == (tool() == "shadow" ? 1 : 0));
  CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
}

TEST_CASE_METHOD(OnDevice, "the shadow tool reports a doorbell beyond its write index",
                 "[profiled]") {
  hsa_queue_t* const handle = make_queue(gpu, small_ring());
  const Signal done{SignalKind::interrupt, 2};
  publish_by_hsa(handle, 1, done.handle());
  const uint64_t problems = seen().problems;
  if (tool() == "shadow") {
    hsa_signal_store_screlease(handle->doorbell_signal, 5);
    CHECK(seen().problems - problems == 1);
  }
  publish_by_hsa(handle, 1, done.handle());
  await_zero(done);
  CHECK(hsa_queue_destroy(handle) == HSA_STATUS_SUCCESS);
}

TEST_CASE_METHOD(OnDevice, "the finding names the tool's function and library", "[profiled]") {
  const detail::Interposition found = detail::find_interposition();
  CHECK(found.none == !interposes());
  if (interposes()) {
    CHECK(found.finding == "a tool interposes: hsa_queue_create leads to " +
                               std::string(std::getenv("HSA_TOOLS_LIB")));
  } else {
    CHECK(found.finding == "no tool interposes");
  }
}

TEST_CASE_METHOD(OnDevice, "queues that ROCr emulates by PM4 are written by HSA calls, always",
                 "[profiled]") {
  CHECK_FALSE(gpu.properties().pm4_emulation);
  const Queue queue{gpu, {.access = RingAccessMode::direct}};
  for (const RingAccessMode wish :
       {RingAccessMode::automatic, RingAccessMode::direct, RingAccessMode::hsa_calls}) {
    const RingAccessChoice choice = choose_ring_access(queue.handle(), true, wish);
    CHECK(choice.access == aql::RingAccess::hsa_calls);
    CHECK(choice.reason == "ROCr emulates the agent's queues by PM4");
  }
}
