// Runs under uptempo-vgpu: the sort as a library, in one process.
#include <algorithm>
#include <functional>
#include <thread>

#include "samples/bitonic_sort/sorter.hpp"
#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"
#include "test/support/process_memory.hpp"

using namespace uptempo;
using namespace uptempo::sort;
using uptempo::test::OnDevice;
using uptempo::test::ProcessMemory;

namespace {

// All 32 combinations of the five switches.
std::vector<Switches> every_combination() {
  std::vector<Switches> all;
  for (unsigned bits = 0; bits < 32; ++bits) {
    Switches switches;
    for (size_t i = 0; i < kSwitches.size(); ++i)
      switches.*kSwitches[i].member = (bits >> i & 1) != 0;
    all.push_back(switches);
  }
  return all;
}

// A sorter with keys and their expected order.
struct Case {
  Case(const Runtime& runtime, uint32_t length, bool descending = false, uint64_t seed = 1)
      : sorter(runtime.gpu(), Network(length), descending), expected(random_keys(length, seed)) {
    sorter.set_keys(expected);
    if (descending) {
      std::ranges::sort(expected, std::greater{});
    } else {
      std::ranges::sort(expected);
    }
  }
  bool sorts(const Switches& switches) {
    sorter.run(switches);
    return std::ranges::equal(sorter.output(), expected);
  }

  Sorter sorter;
  std::vector<uint32_t> expected;
};

// Sorts 1,000 times, every tenth time from the baseline and otherwise fully optimised, and checks
// that memory and resources do not grow.
void sort_a_thousand_times(uint32_t length) {
  const Runtime runtime;
  Case sort(runtime, length);
  const auto round = [&](int sorts) {
    int wrong = 0;
    for (int i = 0; i < sorts; ++i)
      wrong += sort.sorts(i % 10 == 0 ? Switches{} : kFullyOptimised) ? 0 : 1;
    return wrong;
  };
  CHECK(round(50) == 0);
  Queue& queue = sort.sorter.queue();
  queue.reclaim();
  const Pressure pressure = queue.pressure();
  const ProcessMemory before = ProcessMemory::now();

  CHECK(round(1000) == 0);

  const ProcessMemory after = ProcessMemory::now();
  queue.reclaim();
  CHECK(queue.pressure().signals.free() == pressure.signals.free());
  CHECK(queue.pressure().kernarg_slabs.free() == pressure.kernarg_slabs.free());
  // Each thread of the device may have had its first workgroup only now.
  const uint64_t threads = std::thread::hardware_concurrency();
  const uint64_t of_threads = (uint64_t{256} << 10) * threads;
  CHECK(after.resident_bytes < before.resident_bytes + test::kResidentNoise + of_threads);
  CHECK(after.virtual_bytes < before.virtual_bytes + test::kVirtualNoise);
  CHECK(after.mappings < before.mappings + 8 + test::kMappingsOfThread * threads);
  CHECK(after.descriptors == before.descriptors);
}

}  // namespace

TEST_CASE_METHOD(OnDevice, "every length from 2 to 2^12 is sorted", "[device]") {
  for (uint32_t length = 2; length <= 4096; length *= 2) {
    CAPTURE(length);
    CHECK(Case(runtime, length).sorts(kFullyOptimised));
  }
}

TEST_CASE_METHOD(OnDevice, "a sort may be descending", "[device]") {
  for (const uint32_t length : {2u, 512u, 4096u}) {
    CAPTURE(length);
    CHECK(Case(runtime, length, true).sorts(kFullyOptimised));
  }
}

TEST_CASE_METHOD(OnDevice, "every combination of the five switches sorts", "[device]") {
  Case sort(runtime, 1024);
  for (const Switches& switches : every_combination()) {
    CAPTURE(name_of(switches));
    CHECK(sort.sorts(switches));
  }
}

TEST_CASE_METHOD(OnDevice, "equal, sorted and reversed keys are sorted", "[device]") {
  Sorter sorter(gpu, Network(1024), false);
  std::vector<uint32_t> keys(1024, 7);
  const auto check = [&] {
    sorter.set_keys(keys);
    sorter.run(kFullyOptimised);
    std::vector<uint32_t> expected = keys;
    std::ranges::sort(expected);
    CHECK(std::ranges::equal(sorter.output(), expected));
  };
  check();
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<uint32_t>(i) << 22;
  check();
  std::ranges::reverse(keys);
  check();
  keys.front() = UINT32_MAX;
  keys.back() = 0;
  check();
}

TEST_CASE_METHOD(OnDevice, "2^20 keys are sorted", "[device]") {
  CHECK(Case(runtime, 1u << 20).sorts(kFullyOptimised));
}

TEST_CASE_METHOD(OnDevice, "each rung of the ladder uses what its switches select, and no more",
                 "[device]") {
  Case sort(runtime, 1024);
  const uint64_t kernels = sort.sorter.network().passes().size();
  REQUIRE(kernels == 55);
  for (const Rung& rung : ladder()) sort.sorter.run(rung.switches);
  for (const Rung& rung : ladder()) {
    CAPTURE(rung.name);
    const Switches& on = rung.switches;
    const Counters spent = sort.sorter.run(on).counts;
    CHECK(spent.packets == kernels);
    CHECK(spent.barrier_bits == kernels);
    CHECK(spent.signals_created == (on.prealloc_signal ? 0 : 1));
    CHECK(spent.kernarg_allocations == (on.prealloc_kernarg ? 0 : 1));
    CHECK(spent.memory_allocations == spent.kernarg_allocations);
    CHECK(spent.host_waits == (on.avoid_host_sync ? 1 : kernels) + 2);  // and for each copy
    CHECK(spent.doorbells == (on.avoid_host_sync ? 1 : kernels));
    CHECK(spent.completion_signals == (on.avoid_host_sync ? 1 : kernels));
    CHECK(spent.system_acquires == (on.fence ? 1 : kernels));
    CHECK(spent.system_releases == (on.fence ? 1 : kernels));
    CHECK(spent.copies_pinned == (on.pinned_host ? 2 : 0));
    CHECK(spent.copies_staged + spent.copies_pinned_for_once == (on.pinned_host ? 0 : 2));
    CHECK(spent.bytes_to_device == 4096);
    CHECK(spent.bytes_to_host == 4096);
    CHECK(spent.pins == spent.unpins);
  }
}

TEST_CASE_METHOD(
    OnDevice,
    "each kernel in flight has its own kernarg block, allocated in the iteration unless "
    "preallocated",
    "[device]") {
  Case sort(runtime, 1024);
  Switches switches;
  switches.avoid_host_sync = true;
  CHECK(sort.sorter.run(switches).counts.kernarg_allocations == 55);
  switches.prealloc_kernarg = true;
  CHECK(sort.sorter.run(switches).counts.kernarg_allocations == 0);
}

TEST_CASE(
    "1,000 sorts in one process leave no memory, mapping, descriptor, signal or kernarg block",
    "[device]") {
  sort_a_thousand_times(1024);
}

TEST_CASE("1,000 sorts of 32,768 keys leave none of these either", "[.long]") {
  sort_a_thousand_times(32768);
}

// The driver has 4096 events per process, and a signal that is not returned keeps one. When none is
// left, signals are created without event.
TEST_CASE_METHOD(OnDevice, "5,000 sorts that create their signal leave all driver events free",
                 "[device]") {
  Case sort(runtime, 2);
  for (int i = 0; i < 5000; ++i) {
    if (!sort.sorts({})) FAIL("sort " << i << " is wrong");
  }
  CHECK(Signal().interrupt());
}

TEST_CASE_METHOD(OnDevice, "a number of keys other than the network's is refused", "[device]") {
  Sorter sorter(gpu, Network(8), false);
  CHECK_THROWS_AS(sorter.set_keys(std::vector<uint32_t>(7)), std::invalid_argument);
}
