// HIP streams and queues wait for each other on the device.
#include <hip/hip_runtime.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <uptempo/hip/wait.hpp>
#include <uptempo/hip/words.hpp>
#include <uptempo/uptempo.hpp>
#include "test/engine/hip/wait_world.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

size_t words() { return hip::Words::of(0).size(); }

__global__ void store_when_released(const uint32_t* released, uint32_t* words) {
  while (__hip_atomic_load(released, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM) == 0)
    __builtin_amdgcn_s_sleep(1);
  words[threadIdx.x] = 1;
}

}  // namespace

TEST_CASE("a queue follows a HIP stream, and a HIP stream follows a queue") {
  World world;
  Queue queue{world.gpu};
  HipStream stream;
  Chain chain;
  chain.hip(stream, 1, 100);
  hip::after(queue, stream);
  world.launch(queue, chain, 2);
  hip::after(stream, queue);
  chain.hip(stream, 3);
  ok(hipStreamSynchronize(stream));
  chain.check();
}

TEST_CASE("a wait does not block the host, and HIP's copies are covered") {
  World world;
  Queue queue{world.gpu};
  HipStream stream;
  Chain chain;
  uint32_t* host = nullptr;
  ok(hipHostMalloc(&host, kLength * sizeof(uint32_t), hipHostMallocDefault));
  for (uint32_t i = 0; i < kLength; ++i) host[i] = 0;
  const Gate gate;
  gate.put_in(queue);
  world.launch(queue, chain, 7);
  hip::after(stream, queue);
  chain.hip(stream, 3);
  ok(hipMemcpyAsync(host, chain.data(), kLength * sizeof(uint32_t), hipMemcpyDeviceToHost, stream));
  ok(hipMemsetAsync(chain.data(), 0, kLength * sizeof(uint32_t), stream));
  hip::after(queue, stream);
  world.launch(queue, chain, 9);
  const Completion end = queue.last_submitted();
  CHECK_FALSE(end.ready());
  CHECK(hipStreamQuery(stream) == hipErrorNotReady);
  gate.open();
  end.wait();
  CHECK(host[0] == 7 * 5 + 3);
  CHECK(host[kLength - 1] == 7 * 5 + 3);
  uint32_t last = 0;
  ok(hipMemcpy(&last, chain.data(), sizeof last, hipMemcpyDeviceToHost));
  CHECK(last == 9);
  ok(hipHostFree(host));
}

TEST_CASE("waits in random order give the results of one thread") {
  // Actors: queues and HIP streams. Each link of a chain follows the chain's last one.
  World world;
  std::array<Queue, 2> queues{Queue{world.gpu}, Queue{world.gpu}};
  HipStream a, b, blocking(hipStreamDefault), other_blocking(hipStreamDefault);
  const std::array<hipStream_t, 5> streams{a, b, blocking, other_blocking, nullptr};
  const auto is_legacy = [](size_t stream) { return stream >= 2; };
  constexpr size_t kChains = 3;
  std::array<Chain, kChains> chains;
  struct Actor {
    bool is_queue = false;
    size_t number = 0;
    bool operator==(const Actor&) const = default;
  };
  const uint32_t seed = GENERATE(1u, 2u, 3u, 4u, 5u, 6u);
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  INFO("seed " << seed);
  std::array<std::optional<Actor>, kChains> last;
  for (int step = 0; step < 60; ++step) {
    const size_t c = below(kChains);
    const bool is_queue = below(2) == 0;
    const Actor actor{is_queue, below(is_queue ? queues.size() : streams.size())};
    if (last[c] && *last[c] != actor) {
      const Actor before = *last[c];
      if (actor.is_queue && before.is_queue) {
        hip::after(a, queues[before.number]);
        hip::after(queues[actor.number], a);
      } else if (actor.is_queue) {
        // the legacy default stream stands for every blocking stream
        const bool through_default = is_legacy(before.number) && below(2) == 0;
        hip::after(queues[actor.number], through_default ? nullptr : streams[before.number]);
      } else if (before.is_queue) {
        hip::after(streams[actor.number], queues[before.number]);
      } else if (!is_legacy(actor.number) || !is_legacy(before.number) ||
                 (streams[actor.number] != nullptr && streams[before.number] != nullptr)) {
        hipEvent_t event = nullptr;
        ok(hipEventCreateWithFlags(&event, hipEventDisableTiming));
        ok(hipEventRecord(event, streams[before.number]));
        ok(hipStreamWaitEvent(streams[actor.number], event, 0));
        ok(hipEventDestroy(event));
      }
    }
    const auto addend = static_cast<uint32_t>(below(1000));
    if (actor.is_queue) {
      world.launch(queues[actor.number], chains[c], addend);
    } else {
      chains[c].hip(streams[actor.number], addend, static_cast<uint32_t>(below(20)));
    }
    last[c] = actor;
  }
  for (Queue& queue : queues) queue.wait();
  ok(hipDeviceSynchronize());
  for (const Chain& chain : chains) chain.check();
}

TEST_CASE("words are reused: thousands of waits need few") {
  World world;
  Queue queue{world.gpu};
  HipStream stream;
  Chain chain;
  for (int i = 0; i < 1000; ++i) {
    chain.hip(stream, 1);
    hip::after(queue, stream);
    world.launch(queue, chain, 2);
    hip::after(stream, queue);
    if (i % 20 == 19) ok(hipStreamSynchronize(stream));
  }
  ok(hipStreamSynchronize(stream));
  chain.check();
  CHECK(words() < 300);
}

TEST_CASE("threads wait at once, each with a queue and a stream of its own") {
  World world;
  std::array<Chain, 4> chains;
  std::vector<std::thread> threads;
  for (Chain& chain : chains) {
    threads.emplace_back([&] {
      Queue queue{world.gpu};
      HipStream stream;
      hipEvent_t event = nullptr;
      ok(hipEventCreateWithFlags(&event, hipEventDisableTiming));
      for (uint32_t i = 0; i < 50; ++i) {
        chain.hip(stream, i);
        ok(hipEventRecord(event, stream));
        hip::after(queue, event);
        world.launch(queue, chain, i);
        hip::after(stream, queue.last_submitted());
        chain.hip(stream, i);
        hip::after(queue, stream);
        world.launch(queue, chain, i);
        hip::record(event, queue);
        ok(hipStreamWaitEvent(stream, event, 0));
      }
      ok(hipStreamSynchronize(stream));
      ok(hipEventDestroy(event));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Chain& chain : chains) chain.check();
}

TEST_CASE("nothing is enqueued for work that is known to be complete") {
  World world;
  Queue queue{world.gpu};
  HipStream stream;
  Chain chain;
  chain.hip(stream, 1);
  ok(hipStreamSynchronize(stream));
  const Completion before = queue.last_submitted();
  hip::after(queue, stream);
  CHECK(queue.last_submitted() == before);
  world.launch(queue, chain, 1);
  queue.wait();
  hip::after(stream, queue);
  CHECK(hipStreamQuery(stream) == hipSuccess);
  chain.check();
}

TEST_CASE("the legacy default stream stands for all blocking streams") {
  World world;
  Queue queue{world.gpu};
  HipStream blocking(hipStreamDefault);
  Chain chain;
  SECTION("a queue waits for it") {
    chain.hip(blocking, 1, 200);
    hip::after(queue, hipStream_t{});
    world.launch(queue, chain, 2);
  }
  SECTION("a queue waits for a blocking stream that follows it") {
    chain.hip(nullptr, 1, 200);
    hip::after(queue, blocking);
    world.launch(queue, chain, 2);
  }
  SECTION("it waits for a queue") {
    HipStream slow;
    chain.hip(slow, 1, 200);
    hip::after(queue, slow);
    world.launch(queue, chain, 2);
    hip::after(hipStream_t{}, queue);
    chain.hip(blocking, 3);
  }
  queue.wait();
  ok(hipDeviceSynchronize());
  chain.check();
}

TEST_CASE("queues and HIP events wait for each other") {
  World world;
  Queue queue{world.gpu}, other{world.gpu};
  HipStream stream;
  Chain chain;
  hipEvent_t event = nullptr;
  ok(hipEventCreate(&event));
  hip::after(queue, event);  // never recorded: complete
  CHECK(queue.last_submitted().ready());
  for (int i = 0; i < 20; ++i) {
    chain.hip(stream, 1, 20);
    ok(hipEventRecord(event, stream));
    hip::after(queue, event);
    world.launch(queue, chain, 2);
    hip::record(event, queue);
    ok(hipStreamWaitEvent(stream, event, 0));
    chain.hip(stream, 3);
    ok(hipEventRecord(event, stream));
    hip::after(other, event);
    world.launch(other, chain, 4);
    hip::record(event, other);
    ok(hipStreamWaitEvent(stream, event, 0));
  }
  ok(hipEventSynchronize(event));
  CHECK(other.last_submitted().ready());
  chain.check();
  ok(hipEventDestroy(event));
}

TEST_CASE("many unfinished events are waited for at once") {
  World world;
  HipStream stream;
  constexpr size_t kEvents = 8;  // more than the library has streams
  std::array<Chain, kEvents> chains;
  std::array<hipEvent_t, kEvents> events{};
  std::vector<Queue> queues;
  for (size_t i = 0; i < kEvents; ++i) {
    ok(hipEventCreateWithFlags(&events[i], hipEventDisableTiming));
    queues.emplace_back(world.gpu);
    chains[i].hip(stream, 1, 20);
    ok(hipEventRecord(events[i], stream));
    hip::after(queues[i], events[i]);
    world.launch(queues[i], chains[i], 2);
    hip::record(events[i], queues[i]);
  }
  for (size_t i = kEvents; i-- > 0;) {
    ok(hipEventSynchronize(events[i]));
    chains[i].check();
    ok(hipEventDestroy(events[i]));
  }
}

TEST_CASE("the thread's own default stream waits and is waited for") {
  World world;
  Queue queue{world.gpu};
  Chain chain;
  for (int i = 0; i < 5; ++i) {
    chain.hip(hipStreamPerThread, 1, 50);
    hip::after(queue, hipStreamPerThread);
    world.launch(queue, chain, 2);
    hip::after(hipStreamPerThread, queue);
  }
  ok(hipStreamSynchronize(hipStreamPerThread));
  chain.check();
}

TEST_CASE("Uptempo's streams and HIP's streams and events wait for each other") {
  World world;
  Streams streams{world.gpu, {.hardware_queues = 2}};
  std::array<Stream, 3> mine{Stream{streams}, Stream{streams}, Stream{streams}};
  std::array<HipStream, 3> theirs;
  Chain chain;
  uint32_t* host = nullptr;
  ok(hipHostMalloc(&host, kLength * sizeof(uint32_t), hipHostMallocDefault));
  hipEvent_t event = nullptr;
  ok(hipEventCreateWithFlags(&event, hipEventDisableTiming));
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    HipStream& hip_stream = theirs[random() % theirs.size()];
    Stream& stream = mine[random() % mine.size()];
    const uint32_t addend = random() % 100;
    chain.hip(hip_stream, addend, random() % 20);
    if (random() % 2 == 0) {
      hip::after(stream, hip_stream);
    } else {
      ok(hipEventRecord(event, hip_stream));
      hip::after(stream, event);
    }
    stream.launch(world.link, world.grid, chain.data(), addend);
    chain.uptempo(addend);
    if (random() % 4 == 0) {  // a copy engine writes what HIP's kernels have in their caches
      constexpr size_t kBytes = kLength * sizeof(uint32_t);
      stream.copy(CopyTarget::pinned(host, kBytes), CopySource::device(chain.data(), kBytes),
                  CopyPath::engine);
      stream.copy(CopyTarget::device(chain.data(), kBytes), CopySource::pinned(host, kBytes),
                  CopyPath::engine);
    }
    HipStream& next = theirs[random() % theirs.size()];
    for (HipStream& each : theirs) hip::after(each, stream);
    if (random() % 2 == 0) {
      hip::record(event, stream);
      ok(hipStreamWaitEvent(next, event, 0));
    }
    chain.hip(next, 1);
    for (Stream& each : mine) hip::after(each, next);
    for (HipStream& each : theirs) hip::after(each, mine[0]);
  }
  ok(hipDeviceSynchronize());
  streams.synchronize();
  chain.check();
  CHECK(streams.hardware_queues() == 2);
  ok(hipEventDestroy(event));
  ok(hipHostFree(host));
}

TEST_CASE("waits through streams that share a hardware queue do not deadlock") {
  // HIP has four hardware queues, so some of these streams share one with the first.
  World world;
  Queue queue{world.gpu}, other{world.gpu};
  std::array<HipStream, 10> streams;
  Chain chain;
  for (int round = 0; round < 3; ++round) {
    for (HipStream& stream : streams) {
      chain.hip(stream, 1, 10);
      hip::after(queue, stream);
      world.launch(queue, chain, 2);
      hip::after(stream, queue);
      hip::after(other, stream);
      world.launch(other, chain, 3);
      for (HipStream& each : streams) hip::after(each, other);
    }
  }
  ok(hipDeviceSynchronize());
  chain.check();
}

TEST_CASE("a HIP stream goes on when the queue that it waits for fails") {
  World world;
  HipStream stream;
  Chain chain;
  const Gate gate;
  Queue next{world.gpu};
  {
    Queue queue{world.gpu, {.drain_timeout = std::chrono::milliseconds(1)}};
    gate.put_in(queue);
    hip::after(stream, queue);
    chain.hip(stream, 3);
    SECTION("by an invalid packet") {
      submit_invalid(queue);
      gate.open();
      CHECK_THROWS_AS(queue.wait(), Error);
      CHECK_THROWS_AS(hip::after(stream, queue), Error);
      chain.hip(stream, 4);
      CHECK_THROWS_AS(hip::after(queue, stream), Error);
    }
    SECTION("by its destruction") {}
  }
  ok(hipStreamSynchronize(stream));
  chain.check();
  // Other queues are not affected.
  hip::after(next, stream);
  world.launch(next, chain, 5);
  hip::after(stream, next);
  ok(hipStreamSynchronize(stream));
  chain.check();
}

TEST_CASE("what cannot wait is refused by name") {
  World world;
  Queue queue{world.gpu};
  HipStream stream;
  SECTION("a captured stream") {
    ok(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
    const std::string to = test::error_of<Error>([&] { hip::after(queue, stream); });
    const std::string from = test::error_of<Error>([&] { hip::after(stream, queue); });
    hipGraph_t graph = nullptr;
    ok(hipStreamEndCapture(stream, &graph));
    ok(hipGraphDestroy(graph));
    CHECK(to.find("the stream is being captured") != std::string::npos);
    CHECK(from == to);
  }
  SECTION("no event") {
    CHECK(test::error_of<Error>([&] {
            hip::after(queue, hipEvent_t{});
          }).starts_with("hipEventQuery: a HIP event"));
  }
  SECTION("a destroyed stream") {
    hipStream_t gone = nullptr;
    ok(hipStreamCreate(&gone));
    ok(hipStreamDestroy(gone));
    CHECK(test::error_of<Error>([&] { hip::after(queue, gone); }).starts_with("hipStreamGetFlags"));
  }
  SECTION("a queue that was moved from") {
    const Queue moved = std::move(queue);
    CHECK_THROWS_AS(hip::after(queue, stream), Error);
    CHECK_THROWS_AS(hip::after(stream, queue), Error);
  }
}

// The following need an environment of their own: CMakeLists.txt.

TEST_CASE("HIP that submits later than it is called is refused", "[.deferred]") {
  World world;
  Queue queue{world.gpu};
  HipStream stream;
  Chain chain;
  world.launch(queue, chain, 1);
  chain.hip(stream, 2, 100'000);  // not finished before the next call
  CHECK(test::error_of<Error>([&] { hip::after(queue, stream); }).find("AMD_DIRECT_DISPATCH=0") !=
        std::string::npos);
  ok(hipStreamSynchronize(stream));
}

TEST_CASE("work that waits for what is submitted behind it hangs until the host helps",
          "[.one_queue]") {
  // Both HIP streams share the only hardware queue. The queue's work needs the second stream's
  // write, which is behind the first stream's wait for that work: the first case in wait.hpp.
  World world;
  Queue queue{world.gpu};
  HipStream first, second;
  Chain chain;
  void* memory = nullptr;
  ok(hipExtMallocWithFlags(&memory, sizeof(int64_t), hipMallocSignalMemory));
  const hip::Word word{static_cast<int64_t*>(memory)};  // holds 1
  {
    BatchSubmitter batch{queue};
    batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {word.signal()}}));
    batch.submit();
  }
  world.launch(queue, chain, 1);
  hip::after(first, queue);
  ok(hipStreamWriteValue64(second, memory, 0, 0));
  chain.hip(first, 2);
  const Completion work = queue.last_submitted();
  CHECK_FALSE(work.wait(Deadline::after(std::chrono::milliseconds(50))));
  hsa_signal_store_screlease(word.signal(), 0);
  ok(hipStreamSynchronize(first));
  ok(hipStreamSynchronize(second));
  chain.check();
  ok(hipFree(memory));
}

// Without hip::after, on purpose: for the fence checker's remedy. The stream's kernel ends only after
// the queue's, so the order is always missing.
TEST_CASE("a HIP stream and a queue that do not wait for each other", "[.unordered]") {
  World world;
  Queue queue{world.gpu};
  HipStream stream;
  Chain chain;
  uint32_t* released = nullptr;
  ok(hipHostMalloc(&released, sizeof *released, hipHostMallocDefault));
  *released = 0;
  store_when_released<<<1, 64, 0, stream>>>(released, chain.data());
  world.launch(queue, chain, 2);
  queue.wait();
  __atomic_store_n(released, 1u, __ATOMIC_SEQ_CST);
  ok(hipStreamSynchronize(stream));
  ok(hipHostFree(released));
}
