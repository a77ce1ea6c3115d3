// A machine with two GPUs through unmodified ROCr: agents, memory, peer access and its refusal,
// copies, signals and doorbells between them, and a fault of one while the other goes on. Expected
// values are computed on the host.
#include <dlfcn.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <unistd.h>
#include <uptempo/kernels/gpus.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <uptempo/vgpu/query.h>
#include "incoherent/device.hpp"
#include "test/support/catch.hpp"
#include "test/support/hsa_end.hpp"

namespace uptempo::vgpu::test {
namespace {

constexpr uint32_t kItems = 4096;

uint32_t filled(uint32_t index, uint32_t seed) { return index * 2654435761u + seed; }

template <typename T>
T info(hsa_agent_t agent, uint32_t attribute) {
  T value{};
  REQUIRE(hsa_agent_get_info(agent, static_cast<hsa_agent_info_t>(attribute), &value) ==
          HSA_STATUS_SUCCESS);
  return value;
}

struct Machine {
  TestDevice first{kernels::gpus(), 0}, second{kernels::gpus(), 1};

  // Lets both GPUs and the host access memory.
  void share(const void* memory) const {
    const hsa_agent_t all[] = {first.cpu, first.gpu, second.gpu};
    REQUIRE(hsa_amd_agents_allow_access(3, all, nullptr, memory) == HSA_STATUS_SUCCESS);
  }
};

void fill(TestDevice& device, std::span<uint32_t> memory, uint32_t seed) {
  device.dispatch(device.kernel("fill"), static_cast<uint32_t>(memory.size()),
                  device.arguments().add(memory.data()).add(seed), {});
}

bool is_filled(std::span<const uint32_t> memory, uint32_t seed) {
  for (uint32_t i = 0; i < memory.size(); ++i)
    if (memory[i] != filled(i, seed)) return false;
  return true;
}

hsa_signal_t copy(const TestDevice& to, void* destination, const TestDevice& from,
                  const void* source, size_t bytes, std::vector<hsa_signal_t> after = {}) {
  hsa_signal_t done{};
  REQUIRE(hsa_signal_create(1, 0, nullptr, &done) == HSA_STATUS_SUCCESS);
  REQUIRE(hsa_amd_memory_async_copy(
              destination, to.gpu, source, from.gpu, bytes, static_cast<uint32_t>(after.size()),
              after.empty() ? nullptr : after.data(), done) == HSA_STATUS_SUCCESS);
  return done;
}

void wait(hsa_signal_t signal) {
  CHECK(hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                  HSA_WAIT_STATE_BLOCKED) == 0);
}

TEST_CASE("each GPU is an agent with a node, a PCI address and memory of its own",
          "[gpus][address]") {
  Machine machine;
  CHECK(info<uint32_t>(machine.first.gpu, HSA_AMD_AGENT_INFO_DRIVER_NODE_ID) == 1);
  CHECK(info<uint32_t>(machine.second.gpu, HSA_AMD_AGENT_INFO_DRIVER_NODE_ID) == 2);
  CHECK(info<uint32_t>(machine.first.gpu, HSA_AMD_AGENT_INFO_BDFID) == 0x300);
  CHECK(info<uint32_t>(machine.second.gpu, HSA_AMD_AGENT_INFO_BDFID) == 0x2300);
}

// KFD: the partition's number is in the bits of the function (kfd_topology.c,
// kfd_topology_add_device()).
TEST_CASE("partitions share a PCI device, and have nodes of their own", "[.][partitions]") {
  Machine machine;
  std::array<char, 32> ids[2];
  const hsa_agent_t gpus[] = {machine.first.gpu, machine.second.gpu};
  for (uint32_t i = 0; i < 2; ++i) {
    CHECK(info<uint32_t>(gpus[i], HSA_AMD_AGENT_INFO_DRIVER_NODE_ID) == 1 + i);
    CHECK(info<uint32_t>(gpus[i], HSA_AMD_AGENT_INFO_BDFID) == (0x300 | i));
    CHECK(info<uint32_t>(gpus[i], HSA_AMD_AGENT_INFO_DOMAIN) == 0);
    ids[i] = info<std::array<char, 32>>(gpus[i], HSA_AMD_AGENT_INFO_UUID);
  }
  const char* const partitions = std::getenv("UPTEMPO_VGPU_PARTITIONS");
  REQUIRE(partitions != nullptr);
  CHECK((ids[0] == ids[1]) == (std::string(partitions) == "same-id"));
  // One PCI function; the further partition's render node is of a platform device.
  CHECK(access("/sys/bus/pci/devices/0000:03:00.0/drm/renderD128", F_OK) == 0);
  CHECK(access("/sys/bus/pci/devices/0000:03:00.1", F_OK) != 0);
  CHECK(access("/sys/devices/platform/amdgpu_xcp_0/drm/renderD129", F_OK) == 0);
}

TEST_CASE("each GPU runs kernels on its own memory, both at once", "[gpus]") {
  Machine machine;
  const auto one = machine.first.allocate(Memory::local, kItems);
  const auto other = machine.second.allocate(Memory::local, kItems);
  for (uint32_t round = 0; round < 8; ++round) {
    fill(machine.first, one, round);
    fill(machine.second, other, 100 + round);
    machine.first.wait();
    machine.second.wait();
    CHECK(is_filled(one, round));
    CHECK(is_filled(other, 100 + round));
  }
}

TEST_CASE("both GPUs count in the same fine-grained host memory", "[gpus]") {
  Machine machine;
  const auto counter = machine.first.allocate(Memory::host_fine, 1);
  machine.share(counter.data());
  for (TestDevice* device : {&machine.first, &machine.second})
    device->dispatch(device->kernel("count"), kItems, device->arguments().add(counter.data()), {});
  machine.first.wait();
  machine.second.wait();
  CHECK(counter[0] == 2 * kItems);
}

TEST_CASE("copies between GPUs have the source's bytes, in each direction and size", "[gpus]") {
  Machine machine;
  for (const uint32_t items : {1u, 1000u, 300'000u}) {
    const auto one = machine.first.allocate(Memory::local, items);
    const auto other = machine.second.allocate(Memory::local, items);
    machine.share(one.data());
    machine.share(other.data());
    for (uint32_t i = 0; i < items; ++i) one[i] = filled(i, items);
    const hsa_signal_t there =
        copy(machine.second, other.data(), machine.first, one.data(), items * sizeof(uint32_t));
    wait(there);
    CHECK(is_filled(other, items));
    for (uint32_t i = 0; i < items; ++i) other[i] = filled(i, items + 1);
    const hsa_signal_t back =
        copy(machine.first, one.data(), machine.second, other.data(), items * sizeof(uint32_t));
    wait(back);
    CHECK(is_filled(one, items + 1));
    for (const hsa_signal_t signal : {there, back}) hsa_signal_destroy(signal);
  }
}

// With HSA_ENABLE_SDMA=0 kernels copy.
TEST_CASE("xGMI engines of the GPUs copy between them", "[gpus][engines]") {
  Machine machine;
  const auto function =
      reinterpret_cast<uptempo_vgpu_copy_engine_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_copy_engine"));
  REQUIRE(function != nullptr);
  // gfx90a has two engines for the host link and three for xGMI.
  constexpr uint32_t kHostEngines = 2, kEngines = 5;
  const auto copied = [&] {
    uint64_t bytes = 0;
    for (uint32_t engine = 0; engine < 2 * kEngines; ++engine) {
      uptempo_vgpu_copy_engine_counts counts{};
      REQUIRE(function(engine, &counts) == 0);
      if (engine % kEngines >= kHostEngines) bytes += counts.bytes;
    }
    uptempo_vgpu_copy_engine_counts none{};
    CHECK(function(2 * kEngines, &none) == -1);
    return bytes;
  };
  const auto one = machine.first.allocate(Memory::local, kItems);
  const auto other = machine.second.allocate(Memory::local, kItems);
  machine.share(one.data());
  machine.share(other.data());
  const uint64_t before = copied();
  const hsa_signal_t done =
      copy(machine.second, other.data(), machine.first, one.data(), kItems * sizeof(uint32_t));
  wait(done);
  CHECK(copied() - before == kItems * sizeof(uint32_t));
  hsa_signal_destroy(done);
}

TEST_CASE("a kernel reads and writes a peer's memory once it is allowed", "[gpus]") {
  Machine machine;
  const auto one = machine.first.allocate(Memory::local, kItems);
  const auto other = machine.second.allocate(Memory::local, kItems);
  const auto sum = machine.first.allocate(Memory::local, kItems);
  machine.share(one.data());
  machine.share(sum.data());
  fill(machine.first, one, 5);
  machine.first.wait();
  fill(machine.second, other, 6);
  machine.second.dispatch(
      machine.second.kernel("add"), kItems,
      machine.second.arguments().add(sum.data()).add(one.data()).add(other.data()), {});
  machine.second.wait();
  for (uint32_t i = 0; i < kItems; ++i) REQUIRE(sum[i] == filled(i, 5) + filled(i, 6));
}

TEST_CASE("a barrier of one GPU waits for a kernel of the other", "[gpus]") {
  Machine machine;
  const auto flag = machine.first.allocate(Memory::host_fine, 1);
  const auto data = machine.second.allocate(Memory::local, kItems);
  machine.first.dispatch(machine.first.kernel("wait_for"), 64,
                         machine.first.arguments().add(flag.data()), {});
  machine.second.barrier({}, machine.first.signal());
  fill(machine.second, data, 9);
  // The packets behind the barrier cannot complete as long as the kernel spins.
  CHECK(hsa_signal_wait_scacquire(machine.second.signal(), HSA_SIGNAL_CONDITION_LT, 2, 1'000'000,
                                  HSA_WAIT_STATE_ACTIVE) == 2);
  CHECK(data[1] == 0);
  std::atomic_ref(flag[0]).store(1, std::memory_order_release);
  machine.second.wait();
  CHECK(is_filled(data, 9));
  machine.first.wait();
}

TEST_CASE("copies of both GPUs wait for one another, kernels for copies", "[gpus]") {
  Machine machine;
  const TestDevice* const devices[] = {&machine.first, &machine.second};
  const std::span<uint32_t> data[] = {machine.first.allocate(Memory::local, kItems),
                                      machine.second.allocate(Memory::local, kItems)};
  for (const auto& each : data) machine.share(each.data());
  fill(machine.first, data[0], 1);
  // Each copy moves the upper half of one GPU's data to the lower half of the other's, so that
  // every copy shows in the result.
  std::vector<uint32_t> expected[2] = {std::vector<uint32_t>(kItems),
                                       std::vector<uint32_t>(kItems)};
  for (uint32_t i = 0; i < kItems; ++i) expected[0][i] = filled(i, 1);
  std::vector<hsa_signal_t> signals{machine.first.signal()};
  constexpr uint32_t kHops = 21, kHalf = kItems / 2;
  for (uint32_t hop = 0; hop < kHops; ++hop) {
    const uint32_t from = hop % 2, to = 1 - from;
    const uint32_t source = hop / 2 % 2 == 0 ? kHalf : 0, target = hop % 3 == 0 ? kHalf : 0;
    signals.push_back(copy(*devices[to], data[to].data() + target, *devices[from],
                           data[from].data() + source, kHalf * sizeof(uint32_t), {signals.back()}));
    std::copy_n(expected[from].begin() + source, kHalf, expected[to].begin() + target);
  }
  const auto sum = machine.second.allocate(Memory::local, kItems);
  machine.second.barrier({}, signals.back());
  machine.second.dispatch(
      machine.second.kernel("add"), kItems,
      machine.second.arguments().add(sum.data()).add(data[0].data()).add(data[1].data()), {});
  machine.second.wait();
  for (uint32_t i = 0; i < kItems; ++i) REQUIRE(sum[i] == expected[0][i] + expected[1][i]);
  signals.erase(signals.begin());
  for (const hsa_signal_t signal : signals) hsa_signal_destroy(signal);
}

TEST_CASE("a kernel of one GPU rings a doorbell of the other while that sleeps", "[gpus]") {
  Machine machine;
  const auto data = machine.first.allocate(Memory::local, kItems);
  fill(machine.first, data, 1);
  machine.first.wait();
  hsa_queue_t* const queue = machine.first.queue();
  const auto* const doorbell = reinterpret_cast<const amd_signal_t*>(queue->doorbell_signal.handle);
  const uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
  auto& packet = static_cast<hsa_barrier_and_packet_t*>(queue->base_address)[index % queue->size];
  std::memset(reinterpret_cast<std::byte*>(&packet) + 4, 0, sizeof packet - 4);
  hsa_signal_t done{};
  REQUIRE(hsa_signal_create(1, 0, nullptr, &done) == HSA_STATUS_SUCCESS);
  packet.completion_signal = done;
  std::atomic_ref(*reinterpret_cast<uint32_t*>(&packet))
      .store(HSA_PACKET_TYPE_BARRIER_AND | 1u << HSA_PACKET_HEADER_BARRIER,
             std::memory_order_release);
  usleep(20'000);  // gives the first GPU time to fall asleep; the result is the same if it does not
  machine.second.dispatch(
      machine.second.kernel("ring"), 64,
      machine.second.arguments().add(doorbell->hardware_doorbell_ptr).add(uint64_t{index}), {});
  machine.second.wait();
  wait(done);
  hsa_signal_destroy(done);
}

struct SeenError {
  std::atomic<hsa_status_t> status{HSA_STATUS_SUCCESS};
  std::atomic<const hsa_queue_t*> queue{nullptr};
};

void take_error(hsa_status_t status, hsa_queue_t* queue, void* result) {
  auto& error = *static_cast<SeenError*>(result);
  error.status.store(status, std::memory_order_relaxed);
  error.queue.store(queue, std::memory_order_release);
}

TEST_CASE("a kernel that traps stops a queue of its GPU, and the other GPU goes on", "[gpus]") {
  Machine machine;
  SeenError error;
  hsa_queue_t* queue = nullptr;
  REQUIRE(hsa_queue_create(machine.second.gpu, 64, HSA_QUEUE_TYPE_SINGLE, take_error, &error,
                           UINT32_MAX, UINT32_MAX, &queue) == HSA_STATUS_SUCCESS);
  const auto flag = machine.first.allocate(Memory::host_fine, 1);
  machine.first.dispatch(machine.first.kernel("wait_for"), 64,
                         machine.first.arguments().add(flag.data()), {});
  auto& packet = *static_cast<hsa_kernel_dispatch_packet_t*>(queue->base_address);
  std::memset(reinterpret_cast<std::byte*>(&packet) + 4, 0, sizeof packet - 4);
  packet.workgroup_size_x = 64;
  packet.workgroup_size_y = packet.workgroup_size_z = 1;
  packet.grid_size_x = 64;
  packet.grid_size_y = packet.grid_size_z = 1;
  packet.kernel_object = machine.second.kernel("trap").object;
  packet.kernarg_address = machine.second.arguments().address();
  hsa_queue_add_write_index_relaxed(queue, 1);
  std::atomic_ref(*reinterpret_cast<uint32_t*>(&packet))
      .store(HSA_PACKET_TYPE_KERNEL_DISPATCH |
                 1u << (16 + HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS),
             std::memory_order_release);
  hsa_signal_store_screlease(queue->doorbell_signal, 0);
  while (error.queue.load(std::memory_order_acquire) == nullptr) usleep(1000);
  CHECK(error.queue.load() == queue);
  CHECK(error.status.load() == HSA_STATUS_ERROR_EXCEPTION);
  std::atomic_ref(flag[0]).store(1, std::memory_order_release);
  machine.first.wait();
  // The GPU's other queue goes on, too.
  const auto data = machine.second.allocate(Memory::local, kItems);
  fill(machine.second, data, 2);
  machine.second.wait();
  CHECK(is_filled(data, 2));
  CHECK(hsa_queue_destroy(queue) == HSA_STATUS_SUCCESS);
}

TEST_CASE("queues of all GPUs are numbered together", "[gpus]") {
  Machine machine;
  const auto function =
      reinterpret_cast<uptempo_vgpu_queue_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_queue"));
  REQUIRE(function != nullptr);
  uint32_t first = 0, second = 0;
  REQUIRE(function(machine.first.queue()->base_address, &first) == 0);
  REQUIRE(function(machine.second.queue()->base_address, &second) == 0);
  CHECK(first != second);
}

TEST_CASE("the trace names the GPU of each packet and doorbell", "[.][trace]") {
  {
    Machine machine;
    const auto one = machine.first.allocate(Memory::local, 64);
    const auto other = machine.second.allocate(Memory::local, 64);
    machine.share(one.data());
    machine.share(other.data());
    fill(machine.first, one, 1);
    fill(machine.second, other, 1);
    machine.first.wait();
    const hsa_signal_t done = copy(machine.second, other.data(), machine.first, one.data(), 64);
    wait(done);
    machine.second.wait();
    hsa_signal_destroy(done);
  }
  const char* const name = std::getenv("UPTEMPO_VGPU_TRACE");
  REQUIRE(name != nullptr);
  std::ifstream trace(name);
  std::set<std::string> seen;
  for (std::string line; std::getline(trace, line);) {
    const size_t gpu = line.find("\"gpu\":");
    REQUIRE(gpu != std::string::npos);
    for (const char* type : {"kernel_dispatch", "doorbell", "sdma"})
      if (line.find("\"type\":\"" + std::string(type)) != std::string::npos)
        seen.insert(type + line.substr(gpu + 6, 1));
  }
  for (const char* line : {"kernel_dispatch0", "kernel_dispatch1", "doorbell0", "doorbell1"})
    CHECK(seen.contains(line));
  CHECK((seen.contains("sdma0") || seen.contains("sdma1")));
}

TEST_CASE("ROCR_VISIBLE_DEVICES selects the second GPU", "[.][visible]") {
  const char* const visible = std::getenv("ROCR_VISIBLE_DEVICES");
  REQUIRE(visible != nullptr);
  REQUIRE(std::string(visible) == "1");
  TestDevice only(kernels::gpus());
  CHECK(info<uint32_t>(only.gpu, HSA_AMD_AGENT_INFO_BDFID) == 0x2300);
  const auto data = only.allocate(Memory::local, kItems);
  fill(only, data, 3);
  only.wait();
  CHECK(is_filled(data, 3));
  uint32_t gpus = 0;
  const auto add_gpu = [](hsa_agent_t agent, void* number) {
    if (info<hsa_device_type_t>(agent, HSA_AGENT_INFO_DEVICE) == HSA_DEVICE_TYPE_GPU)
      ++*static_cast<uint32_t*>(number);
    return HSA_STATUS_SUCCESS;
  };
  CHECK(hsa_iterate_agents(add_gpu, &gpus) == HSA_STATUS_SUCCESS);
  CHECK(gpus == 1);
}

struct SeenFault {
  std::atomic<bool> seen{false};
  uint64_t agent = 0, address = 0;
};

hsa_status_t take_fault(const hsa_amd_event_t* event, void* result) {
  auto& fault = *static_cast<SeenFault*>(result);
  if (event->event_type != HSA_AMD_GPU_MEMORY_FAULT_EVENT) return HSA_STATUS_ERROR;
  fault.agent = event->memory_fault.agent.handle;
  fault.address = event->memory_fault.virtual_address;
  fault.seen.store(true, std::memory_order_release);
  return HSA_STATUS_SUCCESS;
}

// In a process of its own, because ROCr watches for one memory fault.
TEST_CASE(
    "access to a peer's memory without permission is a fault of the GPU that tried, and the "
    "other goes on",
    "[.][refused]") {
  REQUIRE(hsa_init() == HSA_STATUS_SUCCESS);
  SeenFault fault;
  REQUIRE(hsa_amd_register_system_event_handler(take_fault, &fault) == HSA_STATUS_SUCCESS);
  {
    Machine machine;
    const auto flag = machine.first.allocate(Memory::host_fine, 1);
    const auto data = machine.first.allocate(Memory::local, kItems);
    // Runs while the other GPU fails.
    machine.first.dispatch(machine.first.kernel("wait_for"), 64,
                           machine.first.arguments().add(flag.data()), {});
    fill(machine.second, data, 7);
    while (!fault.seen.load(std::memory_order_acquire)) usleep(1000);
    CHECK(fault.agent == machine.second.gpu.handle);
    CHECK(fault.address >= reinterpret_cast<uint64_t>(data.data()));
    CHECK(fault.address < reinterpret_cast<uint64_t>(data.data() + data.size()));
    CHECK(std::ranges::all_of(data, [](uint32_t value) { return value == 0; }));
    CHECK(hsa_signal_load_scacquire(machine.second.signal()) == 1);  // not completed
    std::atomic_ref(flag[0]).store(1, std::memory_order_release);
    machine.first.wait();
    for (uint32_t round = 0; round < 4; ++round) {
      fill(machine.first, data, round);
      machine.first.wait();
      CHECK(is_filled(data, round));
    }
  }
  CHECK(uptempo::test::end_hsa() == HSA_STATUS_SUCCESS);
}

// Run it with the other tests, under --check fences.
TEST_CASE("the fence checker finds nothing in these programs", "[.][checked]") {
  const auto query =
      reinterpret_cast<uptempo_vgpu_findings_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_findings"));
  REQUIRE(query != nullptr);
  uptempo_vgpu_finding_counts found{};
  REQUIRE(query(&found) == 0);
  CHECK(found.unordered == 0);
  CHECK(found.stale == 0);
  CHECK(found.unreleased == 0);
}

}  // namespace
}  // namespace uptempo::vgpu::test
