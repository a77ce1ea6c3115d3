// HSA queues outlive the objects that use them, and serve the next ones, until the Runtime ends.
// ROCr gives each queue that it creates the next number, so numbers tell how many were created.
#include <dlfcn.h>
#include <hsa/amd_hsa_queue.h>
#include <hsa/hsa_ext_amd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "test/engine/state_access.hpp"
#include "test/engine/told_masks.hpp"
#include "test/engine/units.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/support/soon.hpp"

using namespace uptempo;
using namespace std::chrono_literals;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;
using uptempo::test::OnDevice;

std::set<uint64_t> destroyed, inactivated;                // numbers of queues
std::map<uint64_t, hsa_amd_queue_priority_t> priorities;  // the last that was set

// As in ROCr 7.0, hsa_amd_queue_cu_get_mask() tells what it told first for a queue.
bool tells_first_mask = false;
std::map<uint64_t, std::vector<uint32_t>> first_masks;

template <typename Function>
Function rocr(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// The number that the next queue gets.
uint64_t next_number(const Agent& gpu) {
  hsa_queue_t* queue = nullptr;
  REQUIRE(hsa_queue_create(gpu.handle(), 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX,
                           UINT32_MAX, &queue) == HSA_STATUS_SUCCESS);
  const uint64_t number = queue->id;
  REQUIRE(hsa_queue_destroy(queue) == HSA_STATUS_SUCCESS);
  return number + 1;
}

bool is_profiled(const hsa_queue_t* queue) {
  return (reinterpret_cast<const amd_queue_t*>(queue)->queue_properties &
          AMD_QUEUE_PROPERTIES_ENABLE_PROFILING) != 0;
}

struct ReusedQueues : OnDevice {
  const Program basics{gpu, builtin_kernels::basics()};
  const Kernel<uint32_t*, uint32_t> fill = basics.kernel<uint32_t*, uint32_t>("fill");
  const PinnedBuffer<uint32_t> words{gpu, 256};
  test::ComputeUnits units{gpu};

  // 100 dispatches, and a look at what each stored.
  bool works(Queue& queue, uint32_t value) {
    std::ranges::fill(words.span(), 0u);
    BatchSubmitter batch{queue};
    for (uint32_t i = 0; i < 100; ++i) batch.dispatch(fill, Grid{1}, words.data() + i, value + i);
    const Completion done = batch.submit();
    if (!done.wait(test::soon())) return false;
    for (uint32_t i = 0; i < 100; ++i)
      if (words.data()[i] != value + i) return false;
    return true;
  }
  bool works(Stream& stream, uint32_t value) {
    std::ranges::fill(words.span(), 0u);
    for (uint32_t i = 0; i < 100; ++i) stream.launch(fill, Grid{1}, words.data() + i, value + i);
    stream.synchronize();
    for (uint32_t i = 0; i < 100; ++i)
      if (words.data()[i] != value + i) return false;
    return true;
  }
};

constexpr QueueOptions kSmall{.packets = 256, .drain_timeout = 100ms};

}  // namespace

// These replace ROCr's functions and call them.
extern "C" hsa_status_t hsa_queue_destroy(hsa_queue_t* queue) {
  static const auto real = rocr<decltype(&hsa_queue_destroy)>("hsa_queue_destroy");
  destroyed.insert(queue->id);
  return real(queue);
}
extern "C" hsa_status_t hsa_queue_inactivate(hsa_queue_t* queue) {
  static const auto real = rocr<decltype(&hsa_queue_inactivate)>("hsa_queue_inactivate");
  inactivated.insert(queue->id);
  return real(queue);
}
extern "C" hsa_status_t hsa_amd_queue_cu_get_mask(const hsa_queue_t* queue, uint32_t bits,
                                                  uint32_t* mask) {
  static const auto real = rocr<decltype(&hsa_amd_queue_cu_get_mask)>("hsa_amd_queue_cu_get_mask");
  const hsa_status_t status = real(queue, bits, mask);
  if (!tells_first_mask || status != HSA_STATUS_SUCCESS) return status;
  const auto& first = first_masks.try_emplace(queue->id, mask, mask + bits / 32).first->second;
  std::ranges::copy(first, mask);
  return status;
}
extern "C" hsa_status_t hsa_amd_queue_set_priority(hsa_queue_t* queue,
                                                   hsa_amd_queue_priority_t priority) {
  static const auto real =
      rocr<decltype(&hsa_amd_queue_set_priority)>("hsa_amd_queue_set_priority");
  priorities[queue->id] = priority;
  return real(queue, priority);
}

TEST_CASE_METHOD(ReusedQueues, "queues of every kind, one after the other, use one HSA queue",
                 "[reuse]") {
  const uint64_t before = next_number(gpu);
  std::set<uint64_t> used;
  // Ten rounds wrap the ring several times.
  for (uint32_t round = 0; round < 10; ++round) {
    {
      Queue queue{gpu, kSmall};
      used.insert(queue.handle()->id);
      CHECK(works(queue, 1000 * round));
      CHECK(contains(queue.report(), "fill"));
    }
    {
      SharedQueue shared{gpu, kSmall};
      used.insert(shared.handle()->id);
      Queue one = shared.producer(), other = shared.producer();
      CHECK(works(one, 1000 * round + 200));
      CHECK(works(other, 1000 * round + 400));
    }
    {
      Streams streams{gpu, {.queue = kSmall}};
      Stream stream{streams};
      CHECK(works(stream, 1000 * round + 600));
    }
  }
  CHECK(used == std::set<uint64_t>{before});
  CHECK(next_number(gpu) == before + 2);
}

TEST_CASE_METHOD(ReusedQueues, "as many HSA queues exist as were in use at a time", "[reuse]") {
  const uint64_t before = next_number(gpu);
  for (uint32_t round = 0; round < 4; ++round) {
    std::vector<Queue> queues;
    for (uint32_t i = 0; i < 3; ++i) queues.emplace_back(gpu, kSmall);
    std::set<uint64_t> numbers;
    for (Queue& queue : queues) {
      numbers.insert(queue.handle()->id);
      CHECK(works(queue, 100 * round));
    }
    CHECK(numbers == std::set<uint64_t>{before, before + 1, before + 2});
  }
  CHECK(next_number(gpu) == before + 4);
}

TEST_CASE_METHOD(ReusedQueues, "a queue of another size or access gets another HSA queue",
                 "[reuse]") {
  const auto number = [&](uint32_t packets, RingAccessMode access) {
    QueueOptions options = kSmall;
    options.packets = packets;
    options.access = access;
    Queue queue{gpu, options};
    CHECK(works(queue, packets));
    CHECK(queue.ring_size() == packets);
    return queue.handle()->id;
  };
  const uint64_t small = number(256, RingAccessMode::automatic);
  const uint64_t large = number(512, RingAccessMode::automatic);
  // A tool may count the packets of a queue itself.
  const uint64_t by_calls = number(256, RingAccessMode::hsa_calls);
  CHECK(std::set{small, large, by_calls}.size() == 3);
  CHECK(number(256, RingAccessMode::hsa_calls) == by_calls);
  CHECK(number(512, RingAccessMode::automatic) == large);
  CHECK(number(256, RingAccessMode::automatic) == small);
}

TEST_CASE_METHOD(ReusedQueues, "a reused HSA queue has the state of a new one", "[reuse]") {
  uint64_t number = 0;
  {
    Queue queue{gpu, kSmall};
    number = queue.handle()->id;
    // The program's own changes.
    if (test::rocr_tells_masks(gpu)) {
      const uint32_t two = 0x3;
      REQUIRE(hsa_amd_queue_cu_set_mask(queue.handle(), 32, &two) == HSA_STATUS_SUCCESS);
      CHECK(units.of(queue) == 2);
    }
    REQUIRE(hsa_amd_queue_set_priority(queue.handle(), HSA_AMD_QUEUE_PRIORITY_LOW) ==
            HSA_STATUS_SUCCESS);
    REQUIRE(hsa_amd_profiling_set_profiler_enabled(queue.handle(), 0) == HSA_STATUS_SUCCESS);
    CHECK(works(queue, 1));
  }
  const auto check_new = [&] {
    Queue queue{gpu, kSmall};
    CHECK(queue.handle()->id == number);
    CHECK(units.of(queue) > gpu.properties().compute_units / 2);
    CHECK(is_profiled(queue.handle()));
    CHECK(priorities[number] == HSA_AMD_QUEUE_PRIORITY_NORMAL);
    BatchSubmitter batch{queue, {.timing = Timing::each}};
    batch.dispatch(fill, Grid{1}, words.data(), 7u);
    const Completion done = batch.submit();
    done.wait();
    CHECK(done.times().size() == 1);
    CHECK(works(queue, 2));
  };
  check_new();
  {
    Streams streams{gpu, {.queue = kSmall}};
    Stream masked{streams, {.priority = StreamPriority::high, .cu_mask = {0x3}}};
    CHECK(units.of(masked) == 2);
    CHECK(works(masked, 3));
    CHECK(priorities[number] == HSA_AMD_QUEUE_PRIORITY_HIGH);
  }
  check_new();
}

TEST_CASE_METHOD(ReusedQueues, "a stream's mask does not outlive it if ROCr does not tell masks",
                 "[reuse]") {
  tells_first_mask = true;
  uint64_t number = 0;
  {
    Streams streams{gpu, {.queue = kSmall}};
    Stream masked{streams, {.cu_mask = {0x3}}};
    CHECK(units.of(masked) == 2);
    CHECK(contains(streams.describe(), "compute units: 0x00000003\n"));
    number = test::hardware_queue(masked)->id;
  }
  {
    Queue queue{gpu, kSmall};
    CHECK(queue.handle()->id == number);
    CHECK(units.of(queue) > gpu.properties().compute_units / 2);
  }
  tells_first_mask = false;
}

TEST_CASE_METHOD(ReusedQueues, "an HSA queue that failed is not used again", "[reuse]") {
  uint64_t failed = 0;
  {
    Queue queue{gpu, kSmall};
    failed = queue.handle()->id;
    CHECK(works(queue, 1));
    BatchSubmitter batch{queue};
    aql::Packet64 broken{};  // of an undefined type
    broken.word[0] = aql::first_word(static_cast<uint16_t>(0x1400 | 0x77));
    batch.raw(broken);
    const Completion bad = batch.submit();
    CHECK(contains(error_of([&] { bad.wait(); }), "stopped the queue"));
  }
  uint64_t other = 0;
  for (uint32_t round = 0; round < 3; ++round) {
    Queue queue{gpu, kSmall};
    CHECK(queue.handle()->id != failed);
    if (round != 0) CHECK(queue.handle()->id == other);
    other = queue.handle()->id;
    CHECK(works(queue, round));
  }
  CHECK_FALSE(destroyed.contains(failed));
}

TEST_CASE_METHOD(ReusedQueues, "an HSA queue with unfinished work is stopped and not used again",
                 "[reuse]") {
  const bool is_shared = GENERATE(false, true);
  const Program probes{gpu, builtin_kernels::probes()};
  const auto wait_for_gate = probes.kernel<uint32_t*, uint32_t, uint32_t*>("wait_for_gate");
  const PinnedBuffer<uint32_t> gate{gpu, 2};
  std::ranges::fill(gate.span(), 0u);
  uint64_t unfinished = 0;
  {
    std::optional<SharedQueue> shared;
    if (is_shared) shared.emplace(gpu, kSmall);
    Queue queue = is_shared ? shared->producer() : Queue{gpu, kSmall};
    unfinished = queue.handle()->id;
    BatchSubmitter batch{queue};
    batch.dispatch(wait_for_gate, Grid{1}, gate.data(), UINT32_MAX, gate.data() + 1);
    batch.submit();
  }
  CHECK(inactivated.contains(unfinished));
  CHECK_FALSE(destroyed.contains(unfinished));
  Queue queue{gpu, kSmall};
  CHECK(queue.handle()->id != unfinished);
  CHECK(works(queue, 1));
}

TEST_CASE_METHOD(ReusedQueues, "an HSA queue with packets of other code is not used again",
                 "[reuse]") {
  uint64_t foreign = 0;
  const Signal never;
  {
    Queue queue{gpu, kSmall};
    foreign = queue.handle()->id;
    CHECK(works(queue, 1));
    hsa_queue_t* const hsa = queue.handle();
    const uint64_t index = hsa_queue_add_write_index_scacq_screl(hsa, 1);
    auto& packet = static_cast<hsa_barrier_and_packet_t*>(hsa->base_address)[index % hsa->size];
    packet = {};
    packet.dep_signal[0] = {never.handle()};
    __atomic_store_n(&packet.header, HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE,
                     __ATOMIC_RELEASE);
    hsa_signal_store_screlease(hsa->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  }
  Queue queue{gpu, kSmall};
  CHECK(queue.handle()->id != foreign);
  CHECK(works(queue, 1));
}

// A batch writes its packets into the ring before it is submitted.
TEST_CASE_METHOD(ReusedQueues, "packets that were never submitted do not run in the next use",
                 "[reuse]") {
  uint64_t number = 0;
  std::ranges::fill(words.span(), 0u);
  {
    Queue queue{gpu, kSmall};
    number = queue.handle()->id;
    BatchSubmitter batch{queue};
    for (uint32_t i = 0; i < 5; ++i) batch.dispatch(fill, Grid{1}, words.data() + i, 1u);
  }
  Queue queue{gpu, kSmall};
  CHECK(queue.handle()->id == number);
  for (uint32_t i = 0; i < 3; ++i) {
    BatchSubmitter batch{queue};
    batch.dispatch(fill, Grid{1}, words.data() + 100, 2u);
    batch.submit().wait();
  }
  CHECK(std::ranges::all_of(words.span().first(5), [](uint32_t word) { return word == 0; }));
}

TEST_CASE("the end of the Runtime destroys every HSA queue, in use or not", "[reuse]") {
  const test::Holdings before = [] {
    { const Runtime first; }
    return test::holdings();
  }();
  for (int round = 0; round < 2; ++round) {
    std::optional<Runtime> runtime(std::in_place);
    const Agent gpu = runtime->gpu();
    std::optional<Queue> in_use(std::in_place, gpu, kSmall);
    std::set<uint64_t> numbers{in_use->handle()->id};
    {
      Queue kept{gpu, kSmall};
      numbers.insert(kept.handle()->id);
    }
    destroyed.clear();
    runtime.reset();
    CHECK(destroyed == numbers);
    CHECK(test::holdings().queues == before.queues);
    in_use.reset();  // nothing is left to do
    CHECK(destroyed == numbers);
  }
}

TEST_CASE_METHOD(ReusedQueues, "the child of a fork leaves the parent's HSA queues alone",
                 "[reuse]") {
  uint64_t number = 0;
  std::optional<Queue> inherited(std::in_place, gpu, kSmall);
  {
    Queue kept{gpu, kSmall};
    number = kept.handle()->id;
  }
  destroyed.clear();
  inactivated.clear();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    inherited.reset();
    const bool refused = contains(error_of([&] { const Queue none{gpu}; }), "child of a fork");
    _exit(refused && destroyed.empty() && inactivated.empty() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(works(*inherited, 1));
  Queue again{gpu, kSmall};
  CHECK(again.handle()->id == number);
  CHECK(works(again, 2));
}
