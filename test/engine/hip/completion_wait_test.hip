// HIP streams wait for single completions and events: on the device, and through the completion
// thread where that is impossible.
#include <hip/hip_runtime.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/hip/completed_signal.hpp>
#include <uptempo/hip/device_waits.hpp>
#include <uptempo/hip/wait.hpp>
#include <uptempo/hip/words.hpp>
#include <uptempo/uptempo.hpp>
#include "test/engine/hip/wait_world.hpp"
#include "test/support/catch.hpp"
#include "test/support/eventually.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

uint64_t handed_back() { return Counters::now().completions_handed_back; }

// Keeps the completion thread inside a call.
class BusyCompletionThread : detail::Awaited {
 public:
  explicit BusyCompletionThread(const Completion& complete) {
    on_finished = [](detail::Awaited& awaited) noexcept {
      auto& self = static_cast<BusyCompletionThread&>(awaited);
      self.is_inside_ = true;
      self.may_leave_.wait(false);
      self.has_left_ = true;
    };
    detail::CompletedSignal::await(complete, *this);
    REQUIRE(eventually([&] { return is_inside_.load(); }));
  }
  ~BusyCompletionThread() {
    may_leave_ = true;
    may_leave_.notify_all();
    (void)eventually([&] { return has_left_.load(); });
  }

 private:
  std::atomic<bool> is_inside_{false}, may_leave_{false}, has_left_{false};
};

// A word that a packet of the library decrements after the completion.
struct DeviceWait {
  explicit DeviceWait(const Completion& awaited)
      : word(hip::Words::of(0).take(0)), packet(hip::DeviceWaits::of(0).decrement(word, awaited)) {}
  ~DeviceWait() {
    if (packet) packet->wait();
    hip::Words::of(0).give_back(word);
  }
  DeviceWait(const DeviceWait&) = delete;
  DeviceWait& operator=(const DeviceWait&) = delete;
  bool is_over() const { return aql::load_acquire(word.signal()) == -1; }

  hip::Word word;
  std::optional<Completion> packet;
};

// Creates the library's queues, which live as long as the Runtime.
void open_library_queues(const World& world) {
  std::array<Gate, hip::DeviceWaits::kQueues> gates;
  std::vector<Queue> queues;
  std::vector<std::unique_ptr<DeviceWait>> waits;
  for (const Gate& gate : gates) {
    gate.put_in(queues.emplace_back(world.gpu));
    waits.push_back(std::make_unique<DeviceWait>(queues.back().last_submitted()));
    REQUIRE(waits.back()->packet);
  }
  for (const Gate& gate : gates) gate.open();
}

}  // namespace

TEST_CASE("HIP streams and events wait for completions and events") {
  World world;
  Queue queue{world.gpu};
  Streams streams{world.gpu};
  Stream mine{streams};
  HipStream stream, other;
  Chain chain;
  uint32_t* host = nullptr;
  ok(hipHostMalloc(&host, kLength * sizeof(uint32_t), hipHostMallocDefault));
  hipEvent_t event = nullptr;
  ok(hipEventCreateWithFlags(&event, hipEventDisableTiming));
  hip::after(stream, Completion{});
  hip::after(stream, Event{});
  hip::record(event, Completion{});
  ok(hipEventSynchronize(event));
  for (uint32_t i = 0; i < 20; ++i) {
    chain.hip(stream, i, 10);
    hip::after(queue, stream);
    world.launch(queue, chain, 2);
    const Completion batch = queue.last_submitted();
    if (i % 2 == 0) {
      hip::after(other, batch);
    } else {
      hip::record(event, batch);
      ok(hipStreamWaitEvent(other, event, 0));
    }
    chain.hip(other, 3);
    hip::after(mine, other);
    mine.launch(world.link, world.grid, chain.data(), i);
    chain.uptempo(i);
    if (i % 4 < 2) {
      constexpr size_t kBytes = kLength * sizeof(uint32_t);
      mine.copy(CopyTarget::pinned(host, kBytes), CopySource::device(chain.data(), kBytes),
                CopyPath::engine);
      mine.copy(CopyTarget::device(chain.data(), kBytes), CopySource::pinned(host, kBytes),
                CopyPath::engine);
    }
    const Event done = mine.record();
    if (i % 2 == 0) {
      hip::after(i % 4 == 0 ? hipStreamPerThread : stream, done);
      if (i % 4 == 0) {
        ok(hipEventRecord(event, hipStreamPerThread));
        ok(hipStreamWaitEvent(stream, event, 0));
      }
    } else {
      hip::record(event, done);
      ok(hipStreamWaitEvent(stream, event, 0));
    }
  }
  ok(hipStreamSynchronize(stream));
  chain.check();
  ok(hipEventDestroy(event));
  ok(hipHostFree(host));
}

TEST_CASE("a HIP stream waits for a completion and an event without the completion thread") {
  World world;
  Queue queue{world.gpu}, ready{world.gpu};
  Streams streams{world.gpu};
  Stream mine{streams};
  HipStream stream;
  Chain chain;
  world.launch(ready, chain, 1);
  ready.wait();
  const BusyCompletionThread busy(ready.last_submitted());
  const uint64_t before = handed_back();
  for (int i = 0; i < 3; ++i) {
    const Gate gate;
    gate.put_in(queue);
    world.launch(queue, chain, 2);
    hip::after(stream, queue.last_submitted());
    chain.hip(stream, 3);
    CHECK(hipStreamQuery(stream) == hipErrorNotReady);
    gate.open();
    hip::after(mine, stream);
    mine.launch(world.link, world.grid, chain.data(), 4);
    chain.uptempo(4);
    hip::after(stream, mine.record());
    chain.hip(stream, 5);
    hip::after(queue, stream);
  }
  queue.wait();
  CHECK(handed_back() == before);
  chain.check();
}

TEST_CASE("the completion thread serves a batch with the caller's own signal") {
  World world;
  Queue queue{world.gpu};
  HipStream stream;
  Chain chain;
  const Gate gate;
  Signal own;
  gate.put_in(queue);
  BatchSubmitter batch{queue};
  batch.dispatch(world.link, world.grid, chain.data(), 2u);
  chain.uptempo(2);
  batch.complete_with(own);
  const uint64_t before = handed_back();
  const Completion done = batch.submit();
  CHECK_FALSE(DeviceWait(done).packet);
  hip::after(stream, done);
  chain.hip(stream, 3);
  gate.open();
  ok(hipStreamSynchronize(stream));
  CHECK(handed_back() == before + 1);
  chain.check();
}

TEST_CASE("a wait is not held up by another queue's work") {
  World world;
  constexpr size_t kQueues = hip::DeviceWaits::kQueues;
  std::vector<Queue> queues;
  std::array<Gate, kQueues + 1> gates;
  std::vector<std::unique_ptr<DeviceWait>> waits;
  for (size_t i = 0; i <= kQueues; ++i) {
    queues.emplace_back(world.gpu);
    gates[i].put_in(queues[i]);
    waits.push_back(std::make_unique<DeviceWait>(queues[i].last_submitted()));
  }
  CHECK_FALSE(waits.back()->packet);  // the completion thread takes it
  waits.pop_back();
  const Completion first = queues[0].last_submitted();
  gates[kQueues].put_in(queues[0]);
  {
    const DeviceWait same(queues[0].last_submitted());
    CHECK(same.packet);
    const DeviceWait earlier(first);  // it would follow the later one
    CHECK_FALSE(earlier.packet);
    for (size_t i = kQueues; i-- > 0;) {
      CHECK_FALSE(waits[i]->is_over());
      gates[i].open();
      CHECK(eventually([&] { return waits[i]->is_over(); }));
    }
    CHECK_FALSE(same.is_over());
    gates[kQueues].open();
    CHECK(eventually([&] { return same.is_over(); }));
  }
}

TEST_CASE("a queue may go on at once: its signals are reused after the waits") {
  World world;
  // Each wait and each batch need one of two signals.
  Queue queue{world.gpu, {.publications = 2}};
  HipStream stream;
  Chain of_queue, of_stream;
  for (uint32_t i = 0; i < 100; ++i) {
    world.launch(queue, of_queue, i);
    hip::after(stream, queue.last_submitted());
    of_stream.hip(stream, i);
  }
  ok(hipStreamSynchronize(stream));
  CHECK(queue.last_submitted().ready());
  of_queue.check();
  of_stream.check();
}

TEST_CASE("a queue is destroyed at once after a HIP stream was told to wait for it") {
  World world;
  HipStream stream, other;
  Chain chain;
  open_library_queues(world);
  const uint32_t signals = signal_use().in_use;
  for (uint32_t i = 0; i < 12; ++i) {
    chain.hip(stream, i, 20);
    {
      Queue queue{world.gpu};
      hip::after(queue, stream);
      world.launch(queue, chain, i);
      hip::after(other, queue.last_submitted());
    }
    chain.hip(other, i);
    hipEvent_t event = nullptr;
    ok(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    ok(hipEventRecord(event, other));
    ok(hipStreamWaitEvent(stream, event, 0));
    ok(hipEventDestroy(event));
    ok(hipStreamSynchronize(other));
    CHECK(signal_use().in_use == signals);  // none is left to the session
  }
  chain.check();
}

TEST_CASE("a HIP stream goes on when the publication that it waits for is lost") {
  std::optional<World> world{std::in_place};
  HipStream stream;
  Chain chain;
  std::optional<Gate> gate{std::in_place};
  std::optional<Queue> queue{Queue{world->gpu, {.drain_timeout = std::chrono::milliseconds(1)}}};
  gate->put_in(*queue);
  SECTION("by its queue's destruction") {
    hip::after(stream, queue->last_submitted());
    queue.reset();
  }
  SECTION("by an invalid packet") {
    submit_invalid(*queue);
    hip::after(stream, queue->last_submitted());
    gate->open();
  }
  SECTION("by the end of the Runtime") {
    hip::after(stream, queue->last_submitted());
    gate.reset();
    world.reset();
  }
  chain.hip(stream, 3);
  ok(hipStreamSynchronize(stream));
  chain.check();

  // Later waits happen on the device again.
  queue.reset();
  gate.reset();
  world.reset();
  world.emplace();
  queue.emplace(world->gpu);
  gate.emplace();
  gate->put_in(*queue);
  {
    const DeviceWait wait(queue->last_submitted());
    CHECK(wait.packet);
    gate->open();
    CHECK(eventually([&] { return wait.is_over(); }));
  }
}

TEST_CASE("the library's queue is replaced after it has failed with another queue") {
  World world;
  const Gate gate;
  Queue next{world.gpu};
  {
    Queue queue{world.gpu, {.drain_timeout = std::chrono::milliseconds(1)}};
    gate.put_in(queue);
    const hip::Word word = hip::Words::of(0).take(0);
    uptempo::detail::CompletedSignal::Place place;
    const auto lost = hip::DeviceWaits::of(0).decrement(word, queue.last_submitted());
    REQUIRE(lost);
    hip::Words::of(0).expect_ack(word, *lost, std::move(place));
  }
  Chain chain;
  world.launch(next, chain, 1);
  next.wait();
  const Gate other;
  other.put_in(next);
  std::vector<std::unique_ptr<DeviceWait>> waits;
  for (size_t i = 0; i < 2 * hip::DeviceWaits::kQueues; ++i) {
    waits.push_back(std::make_unique<DeviceWait>(next.last_submitted()));
    CHECK(waits.back()->packet);
  }
  other.open();
  for (const auto& wait : waits) CHECK(eventually([&] { return wait->is_over(); }));
}

TEST_CASE("many threads wait for one completion, with the library's queues full or not") {
  World world;
  Queue queue{world.gpu};
  Chain of_queue;
  const Gate gate;
  gate.put_in(queue);
  world.launch(queue, of_queue, 1);
  const Completion done = queue.last_submitted();
  std::vector<std::unique_ptr<DeviceWait>> waits;
  const uint64_t before = handed_back();
  const bool full = GENERATE(false, true);
  if (full) {
    do waits.push_back(std::make_unique<DeviceWait>(done));
    while (waits.back()->packet);
    waits.pop_back();
  }
  std::array<Chain, 4> chains;
  std::vector<std::thread> threads;
  std::atomic<size_t> ready{0};
  constexpr uint32_t kWaits = 5;  // few: HIP blocks once its queues are full
  for (Chain& chain : chains) {
    threads.emplace_back([&] {
      HipStream stream;
      for (uint32_t i = 0; i < kWaits; ++i) {
        hip::after(stream, done);
        chain.hip(stream, i);
      }
      ++ready;
      ok(hipStreamSynchronize(stream));
    });
  }
  CHECK(eventually([&] { return ready == chains.size(); }));
  gate.open();
  for (std::thread& thread : threads) thread.join();
  for (const Chain& chain : chains) chain.check();
  for (const auto& wait : waits) CHECK(eventually([&] { return wait->is_over(); }));
  CHECK(handed_back() == before + (full ? chains.size() * kWaits : 0));
  of_queue.check();
}
