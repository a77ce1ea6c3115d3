// Batches on a real HSA queue: order, completion, waiting, errors, and the cost of a submission.
#include <hsa/hsa_ext_amd.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/bitonic_sort.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "test/engine/error_code.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/support/own_process.hpp"
#include "tools/support/command.hpp"
#include "tools/support/cost_meter.hpp"

using namespace uptempo;
using namespace std::chrono_literals;

namespace {

using uptempo::test::code_of;
using uptempo::test::download;
using uptempo::test::soon;

using uptempo::test::contains;
using uptempo::test::error_of;
using uptempo::test::in_own_process;
using uptempo::test::OnDevice;

}  // namespace

TEST_CASE_METHOD(OnDevice, "120 dispatches sort 32768 keys with one doorbell and one signal",
                 "[dispatch]") {
  const Program program{gpu, builtin_kernels::bitonic_sort()};
  const auto sort = program.kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("bitonic_sort");
  Queue queue{gpu};
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> keys{gpu, 32768};
  std::vector<uint32_t> host(32768);
  std::mt19937 random(1);
  std::generate(host.begin(), host.end(), random);
  copier.copy(keys, host);

  const Counters before = Counters::now();
  BatchSubmitter batch{queue};
  for (uint32_t stage = 0; stage < 15; ++stage)
    for (uint32_t pass = 0; pass <= stage; ++pass)
      batch.dispatch(sort, Grid{16384}.by(256), keys.data(), stage, pass, 1u);
  batch.submit().wait();
  const Counters spent = Counters::now() - before;

  std::sort(host.begin(), host.end());
  CHECK(download(copier, keys) == host);
  CHECK(spent.packets == 120);
  CHECK(spent.doorbells == 1);
  CHECK(spent.completion_signals == 1);
  CHECK(spent.signals_created == 0);
  CHECK(spent.kernarg_allocations == 0);
}

TEST_CASE_METHOD(
    OnDevice,
    "a chain of dependent dispatches keeps its order, also across batches longer than the ring",
    "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto increment = program.kernel<uint32_t*, uint32_t>("chain_increment");
  Queue queue{gpu, {.packets = 256}};
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> values{gpu, 256};
  copier.fill(values, 5);
  uint32_t expected = 5;
  BatchSubmitter batch{queue};
  for (const uint32_t length : {1u, 248u, 249u, 256u, 257u, 600u}) {
    for (uint32_t i = 0; i < length; ++i) {
      batch.dispatch(increment, Grid{256}.by(64), values.data(), i);
      expected = expected * 3 + i;
    }
    batch.submit().wait();
    const auto host = download(copier, values);
    CHECK(std::count(host.begin(), host.end(), expected) == 256);
  }
}

TEST_CASE_METHOD(OnDevice, "declared, disjoint dispatches give the same results as ordered ones",
                 "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto iota = program.kernel<uint32_t*, uint32_t, uint32_t>("iota");
  const auto increment = program.kernel<uint32_t*, uint32_t>("chain_increment");
  Queue queue{gpu};
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> values{gpu, 1024};
  const Counters before = Counters::now();
  BatchSubmitter batch{queue};
  for (uint32_t part = 0; part < 4; ++part) {
    uint32_t* const data = values.data() + part * 256;
    batch.dispatch(iota, Grid{256}.by(64), data, part * 1000, 1u).writes(data, 256);
  }
  for (uint32_t part = 0; part < 4; ++part) {
    uint32_t* const data = values.data() + part * 256;
    batch.dispatch(increment, Grid{256}.by(64), data, 1u).writes(data, 256);
  }
  batch.submit().wait();
  // the first, the first that conflicts, the last
  CHECK((Counters::now() - before).barrier_bits == 3);
  const auto host = download(copier, values);
  for (uint32_t i = 0; i < 1024; ++i) {
    if (host[i] != (i / 256 * 1000 + i % 256) * 3 + 1) FAIL("element " << i << " is " << host[i]);
  }
}

TEST_CASE_METHOD(OnDevice,
                 "Invariant 5 on the device: completion covers a long kernel without barrier bit",
                 "[dispatch]") {
  const Program program{gpu, builtin_kernels::probes()};
  const Program basics{gpu, builtin_kernels::basics()};
  const auto spin = program.kernel<uint32_t*, uint32_t, uint32_t>("spin");
  const auto empty = basics.kernel<>("empty");
  Queue queue{gpu};
  const PinnedBuffer<uint32_t> out{gpu, 2};
  for (uint32_t round = 1; round <= 3; ++round) {
    BatchSubmitter batch{queue};
    batch.dispatch(empty, Grid{64});
    batch.dispatch(spin, Grid{64}, out.data(), 200000u, round).without_barrier();
    batch.dispatch(empty, Grid{64}).without_barrier();
    batch.submit().wait();
    CHECK(out[0] == round);
  }
}

TEST_CASE_METHOD(OnDevice, "each wait mode returns, from several threads at once", "[dispatch]") {
  const Program program{gpu, builtin_kernels::probes()};
  const auto spin = program.kernel<uint32_t*, uint32_t, uint32_t>("spin");
  const uint32_t before = signal_use().in_use;
  Queue queue{gpu};
  CHECK(signal_use().in_use == before + QueueOptions{}.publications);
  const PinnedBuffer<uint32_t> out{gpu, 2};
  BatchSubmitter batch{queue};
  for (int round = 0; round < 10; ++round) {
    batch.dispatch(spin, Grid{64}, out.data(), 20000u, 1u);
    const Completion completion = batch.submit();
    std::vector<std::thread> threads;
    std::atomic<int> done{0};
    for (const WaitPolicy mode : {WaitPolicy::active(), WaitPolicy::blocked(),
                                  WaitPolicy::blocked(), WaitPolicy::blocked(), WaitPolicy{}}) {
      threads.emplace_back([&, mode] {
        if (completion.wait(soon(), mode)) ++done;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(done == 5);
  }
}

TEST_CASE_METHOD(OnDevice,
                 "a caller's signal, kernarg blocks and packets replace those of the queue",
                 "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
  Queue queue{gpu};
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> values{gpu, 128};
  const Signal signal;
  const KernargBuffer block{gpu, 320};
  BatchSubmitter batch{queue};
  // the same block and signal again: each dispatch completes before the next
  for (uint32_t i = 1; i <= 5; ++i) {
    const Counters before = Counters::now();
    batch.dispatch_at(block.span(), fill, Grid{128}, values.data(), i);
    batch.complete_with(signal);
    batch.submit().wait();
    CHECK((Counters::now() - before).kernarg_blocks == 0);
    CHECK((Counters::now() - before).signals_pooled == 0);
    CHECK(hsa_signal_load_scacquire(signal.handle()) == 0);
    CHECK(download(copier, values)[127] == i);
  }
  batch.raw(aql::to_packet(aql::BarrierAnd{}));
  CHECK(batch.submit().wait(soon()));
}

TEST_CASE_METHOD(OnDevice, "packet times are in order and inside the wait", "[dispatch]") {
  const Program program{gpu, builtin_kernels::probes()};
  const auto spin = program.kernel<uint32_t*, uint32_t, uint32_t>("spin");
  Queue queue{gpu};
  const PinnedBuffer<uint32_t> out{gpu, 2};
  for (const Timing timing : {Timing::batch, Timing::each}) {
    BatchSubmitter batch{queue, {.timing = timing}};
    for (uint32_t i = 0; i < 4; ++i) batch.dispatch(spin, Grid{64}, out.data(), 5000u, i);
    const Completion completion = batch.submit();
    completion.wait();
    const auto times = completion.times();
    REQUIRE(times.size() == (timing == Timing::each ? 4 : 2));
    for (size_t i = 0; i < times.size(); ++i) {
      CHECK(times[i].duration() > 0ns);
      CHECK(times[i].duration() < 20s);
      // a clock tick of rounding
      if (i > 0) CHECK(times[i].start_ns + 1000 >= times[i - 1].end_ns);
    }
  }
}

TEST_CASE_METHOD(OnDevice, "a thousand batches return every signal and slab", "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto increment = program.kernel<uint32_t*, uint32_t>("chain_increment");
  Queue queue{gpu};
  const DeviceBuffer<uint32_t> values{gpu, 64};
  const Pressure unused = queue.pressure();
  const Counters before = Counters::now();
  {
    BatchSubmitter batch{queue};
    for (uint32_t i = 0; i < 1000; ++i) {
      batch.dispatch(increment, Grid{64}, values.data(), i);
      batch.submit();
    }
    queue.wait();
  }
  queue.reclaim();
  CHECK(queue.pressure().signals.free() == unused.signals.free());
  CHECK(queue.pressure().kernarg_slabs.free() == unused.kernarg_slabs.free());
  const Counters spent = Counters::now() - before;
  CHECK(spent.signals_created == 0);
  CHECK(spent.memory_allocations == 0);
}

TEST_CASE_METHOD(
    OnDevice, "Invariant 9 on the device: a batch costs no allocation, no lock and no system call",
    "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto increment = program.kernel<uint32_t*, uint32_t>("chain_increment");
  Queue queue{gpu};
  const DeviceBuffer<uint32_t> values{gpu, 64};
  BatchSubmitter batch{queue};
  const auto round = [&] {
    for (uint32_t i = 0; i < 20; ++i) batch.dispatch(increment, Grid{64}, values.data(), i);
    return batch.submit(Deadline::never());
  };
  for (int warm_up = 0; warm_up < 70; ++warm_up) round().wait();
  uptempo::support::Cost total;
  for (int n = 0; n < 50; ++n) {
    Completion completion;
    total += uptempo::support::cost_of([&] { completion = round(); });
    completion.wait();
  }
  CHECK(total.allocations == 0);
  CHECK(total.locks == 0);
  CHECK(total.system_calls == 0);
}

TEST_CASE_METHOD(OnDevice, "a borrowed queue to which other code publishes refuses batches",
                 "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto counter = program.kernel<uint32_t*>("count_work_items");
  hsa_queue_t* handle = nullptr;
  REQUIRE(hsa_queue_create(gpu.handle(), 256, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX,
                           UINT32_MAX, &handle) == HSA_STATUS_SUCCESS);
  {
    Queue queue = Queue::borrow(gpu, handle);
    Copier copier{gpu};
    const DeviceBuffer<uint32_t> count{gpu, 1};
    copier.fill(count, 0);
    BatchSubmitter batch{queue};
    batch.dispatch(counter, Grid{64}, count.data());
    CHECK(batch.submit().wait(soon()));

    // Another producer, as HSA programs are: a barrier packet in the next slot.
    const Signal done{SignalKind::interrupt, 1};
    const uint64_t slot = hsa_queue_add_write_index_relaxed(handle, 1);
    auto* const packet = static_cast<hsa_barrier_and_packet_t*>(handle->base_address) + slot;
    packet->completion_signal = done.handle();
    std::atomic_ref(packet->header)
        .store(HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE, std::memory_order_release);
    hsa_signal_store_screlease(handle->doorbell_signal, static_cast<hsa_signal_value_t>(slot));
    CHECK(hsa_signal_wait_scacquire(done.handle(), HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                    HSA_WAIT_STATE_BLOCKED) == 0);

    batch.dispatch(counter, Grid{64}, count.data());
    const std::string refused = error_of([&] { batch.submit(); });
    CHECK(contains(refused, "a submission at index 1"));
    CHECK(contains(refused, "write index 2: other code publishes to this HSA queue, too"));
    CHECK(contains(refused, "submit to a Queue of your own"));
    CHECK(code_of(batch.try_submit()) == "unavailable");
    CHECK(download(copier, count)[0] == 64);
  }
  CHECK(hsa_queue_destroy(handle) == HSA_STATUS_SUCCESS);
}

TEST_CASE_METHOD(OnDevice, "resources that packets of a borrowed queue still use outlive its Queue",
                 "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
  const PinnedBuffer<uint32_t> out{gpu, 64};
  const Signal gate;
  hsa_queue_t* handle = nullptr;
  REQUIRE(hsa_queue_create(gpu.handle(), 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX,
                           UINT32_MAX, &handle) == HSA_STATUS_SUCCESS);
  constexpr uint32_t kernarg_bytes = 1 << 20;
  Completion lost;
  {
    Queue queue = Queue::borrow(gpu, handle, nullptr,
                                {.kernarg_bytes = kernarg_bytes, .drain_timeout = 10ms});
    BatchSubmitter batch{queue};
    batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
    batch.dispatch(fill, Grid{64}, out.data(), 0xfeedu);
    lost = batch.submit();
  }
  CHECK(contains(error_of([&] { (void)lost.ready(); }), "destroyed before the work was complete"));
  // If the kernargs were free, one of these would have the same address.
  for (int i = 0; i < 4; ++i) {
    const KernargBuffer other{gpu, kernarg_bytes};
    std::fill(other.span().begin(), other.span().end(), std::byte{0});
  }
  hsa_signal_store_screlease(gate.handle(), 0);
  {
    Queue after = Queue::borrow(gpu, handle);
    BatchSubmitter batch{after};
    batch.raw(aql::to_packet(aql::BarrierAnd{}));
    CHECK(batch.submit().wait(soon()));
  }
  CHECK(std::count(out.begin(), out.end(), 0xfeedu) == 64);
  CHECK(contains(error_of([&] { (void)lost.ready(); }), "destroyed before the work was complete"));
  CHECK(hsa_queue_destroy(handle) == HSA_STATUS_SUCCESS);
}

TEST_CASE_METHOD(OnDevice,
                 "queues that are created and destroyed one after another share a timeline",
                 "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto empty = program.kernel<>("empty");
  const QueueOptions small{.packets = 64,
                           .publications = 2,
                           .timing_signals = 0,
                           .kernarg_bytes = 4096,
                           .kernarg_slab_bytes = 1024};
  const auto use_one = [&] {
    Queue queue{gpu, small};
    BatchSubmitter batch{queue};
    batch.dispatch(empty, Grid{64});
    return batch.submit();
  };
  const Completion first = use_one();
  const size_t timelines = Timeline::census().all;
  for (int i = 0; i < 50; ++i) use_one();
  CHECK(Timeline::census().all == timelines);
  CHECK(first.ready());
}

TEST_CASE("unread packet times outlive the queue and the runtime", "[dispatch]") {
  std::optional<Runtime> runtime;
  runtime.emplace();
  const Program program{runtime->gpu(), builtin_kernels::basics()};
  const auto empty = program.kernel<>("empty");
  std::optional<Queue> queue;
  queue.emplace(runtime->gpu());
  Completion completion;
  {
    BatchSubmitter batch{*queue, {.timing = Timing::batch}};
    for (int i = 0; i < 3; ++i) batch.dispatch(empty, Grid{64});
    completion = batch.submit();
  }
  SECTION("the queue is destroyed first") { queue.reset(); }
  SECTION("the runtime is destroyed first") {
    completion.wait();
    runtime.reset();
  }
  REQUIRE(completion.ready());
  REQUIRE(completion.times().size() == 2);
  CHECK(completion.times().front().end_ns > 0);
}

TEST_CASE("threads that wait while the runtime is destroyed get an error that says so",
          "[dispatch]") {
  for (int round = 0; round < 5; ++round) {
    std::optional<Runtime> runtime;
    runtime.emplace();
    const Signal gate;
    Queue queue{runtime->gpu()};
    Completion completion;
    {
      BatchSubmitter batch{queue};
      batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
      completion = batch.submit();
    }
    std::vector<std::string> outcome(6);
    std::atomic<unsigned> waiting{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < outcome.size(); ++t) {
      threads.emplace_back([&, t] {
        const WaitPolicy mode = t % 2 == 0 ? WaitPolicy::active() : WaitPolicy::blocked();
        ++waiting;
        outcome[t] = error_of([&] {
          while (t >= 4 && !completion.ready()) std::this_thread::yield();
          completion.wait(mode);
        });
      });
    }
    while (waiting != outcome.size()) std::this_thread::yield();
    std::this_thread::sleep_for(10ms);
    runtime.reset();
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : outcome) CHECK(contains(text, "the Runtime was destroyed"));
  }
}

TEST_CASE_METHOD(
    OnDevice,
    "Invariant 8 on the device: a packet that cannot execute ends the queue with its error",
    "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto empty = program.kernel<>("empty");
  Queue queue{gpu, {.drain_timeout = 100ms}};
  BatchSubmitter batch{queue};
  batch.dispatch(empty, Grid{64});
  const Completion good = batch.submit();
  good.wait();
  // An undefined packet type, so no packet processor can pass it.
  aql::Packet64 broken{};
  broken.word[0] = aql::first_word(static_cast<uint16_t>(0x1400 | 0x77));
  batch.raw(broken);
  const Completion bad = batch.submit();
  const std::string error = error_of([&] {
    if (!bad.wait(soon(), WaitPolicy::blocked())) throw std::runtime_error("timed out");
  });
  CHECK(contains(error, "the packet processor stopped the queue"));
  CHECK(good.ready());
  batch.dispatch(empty, Grid{64});
  CHECK(contains(error_of([&] { batch.submit(); }), "this one takes no more work"));
}

TEST_CASE_METHOD(OnDevice,
                 "a caller's completion signal may be destroyed after its wait has thrown",
                 "[dispatch]") {
  Queue queue{gpu, {.drain_timeout = 100ms}};
  {
    const Signal signal;
    BatchSubmitter batch{queue};
    aql::Packet64 broken{};
    broken.word[0] = aql::first_word(static_cast<uint16_t>(0x1400 | 0x77));
    batch.raw(broken);
    batch.complete_with(signal);
    const Completion bad = batch.submit();
    CHECK(contains(error_of([&] { bad.wait(); }), "the packet processor stopped the queue"));
  }
  // ROCr would abort if either call read the signal.
  CHECK(contains(error_of([&] { queue.wait(); }), "the packet processor stopped the queue"));
  queue.reclaim();
}

TEST_CASE_METHOD(
    OnDevice, "Invariant 8 on the device: a GPU memory fault ends the queue and names the address",
    "[dispatch]") {
  in_own_process("", [&] {
    const Program program{gpu, builtin_kernels::basics()};
    const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
    Queue queue{gpu, {.drain_timeout = 100ms}};
    BatchSubmitter batch{queue};
    batch.dispatch(fill, Grid{64}, reinterpret_cast<uint32_t*>(0x7000), 1u);
    const Completion bad = batch.submit();
    const std::string error = error_of([&] {
      if (!bad.wait(soon(), WaitPolicy::blocked())) throw std::runtime_error("timed out");
    });
    CAPTURE(error);
    CHECK(contains(error, "the GPU accessed address 0x7000"));
  });
}

TEST_CASE_METHOD(OnDevice,
                 "a copy that faults throws and names the address; the next one throws at once",
                 "[memory]") {
  in_own_process("", [&] {
    const PinnedBuffer<uint32_t> pinned{gpu, 16};
    const DeviceBuffer<uint32_t> device{gpu, 16};
    Copier copier{gpu};
    const std::string error = error_of(
        [&] { copier.copy(pinned, CopySource::device(reinterpret_cast<void*>(0x7000), 64)); });
    CAPTURE(error);
    CHECK(contains(error, "the GPU accessed address 0x7000"));
    const uint64_t copied = Counters::now().bytes_to_host;
    CHECK(contains(error_of([&] { copier.copy(pinned, device); }), "0x7000"));
    CHECK(Counters::now().bytes_to_host == copied);  // it has not started
  });
}

TEST_CASE_METHOD(OnDevice, "objects created after a memory fault fail like those created before it",
                 "[dispatch]") {
  in_own_process("", [&] {
    const Program program{gpu, builtin_kernels::basics()};
    const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
    Queue idle{gpu, {.drain_timeout = 100ms}};
    {
      Queue queue{gpu, {.drain_timeout = 100ms}};
      BatchSubmitter batch{queue};
      batch.dispatch(fill, Grid{64}, reinterpret_cast<uint32_t*>(0x7000), 1u);
      const Completion bad = batch.submit();
      CHECK(contains(error_of([&] { (void)bad.wait(soon()); }), "0x7000"));
    }
    Queue later{gpu, {.drain_timeout = 100ms}};
    for (Queue* queue : {&idle, &later}) {
      BatchSubmitter batch{*queue};
      batch.dispatch(program.kernel<>("empty"), Grid{64});
      const std::string error = error_of([&] { batch.submit(); });
      CHECK(contains(error, "0x7000"));
      CHECK(contains(error, "no more work of this Runtime runs on that GPU"));
    }
    Copier copier{gpu};
    const PinnedBuffer<uint32_t> pinned{gpu, 16};
    const DeviceBuffer<uint32_t> device{gpu, 16};
    CHECK(contains(error_of([&] { copier.copy(device, pinned); }), "0x7000"));
    CHECK(contains(error_of([&] { copier.fill(device, 1); }), "0x7000"));
  });
}

// The next test case runs this in a process of its own.
TEST_CASE_METHOD(OnDevice, "child: a fault of a copy without a waiter", "[.child]") {
  const Queue idle{gpu};
  const PinnedBuffer<uint32_t> pinned{gpu, 16};
  const Signal done;
  check(hsa_amd_memory_async_copy(pinned.data(), find_pool(gpu, MemoryKind::pinned).owner,
                                  reinterpret_cast<const void*>(0x7000), gpu.handle(), 64, 0,
                                  nullptr, done.handle()),
        "hsa_amd_memory_async_copy");
  std::this_thread::sleep_for(test::kHang);
}

TEST_CASE("a memory fault without an owner ends the process with ROCr's message", "[dispatch]") {
  const auto result =
      test::run_command({"/proc/self/exe", "child: a fault of a copy without a waiter"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 128 + SIGABRT);
  CHECK(contains(result.err, "Memory access fault by GPU"));
  CHECK(contains(result.err, "0x7000"));
}

TEST_CASE_METHOD(
    OnDevice,
    "Invariant 4 on the device: destroying a queue waits for kernels that use its scratch",
    "[dispatch]") {
  const Program program{gpu, builtin_kernels::probes()};
  const auto probe = program.kernel<uint32_t*, uint32_t>("probe_private");
  REQUIRE(probe.info().private_segment_size > 0);
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> out{gpu, 4096};
  const auto run = [&](uint32_t rotate) {
    copier.fill(out, 0);
    {
      Queue queue{gpu};
      BatchSubmitter batch{queue};
      for (int i = 0; i < 4; ++i) batch.dispatch(probe, Grid{4096}.by(256), out.data(), rotate);
      batch.submit();
    }
    return download(copier, out);
  };
  const auto expected = [](uint32_t item, uint32_t rotate) {
    uint32_t values[96], sum = 0;
    for (uint32_t i = 0; i < 96; ++i) values[i] = item * 97u + i;
    for (uint32_t i = 0; i < 96; ++i) {
      const uint32_t j = (i * 7u + rotate) % 96u;
      values[j] ^= sum;
      sum += values[(j + rotate) % 96u];
    }
    return sum;
  };
  for (const uint32_t rotate : {1u, 5u}) {
    const auto host = run(rotate);
    for (uint32_t i = 0; i < 4096; ++i) {
      if (host[i] != expected(i, rotate)) FAIL("work-item " << i << " got " << host[i]);
    }
  }
}
