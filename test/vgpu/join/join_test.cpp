// Two processes on one machine through unmodified ROCr: IPC memory and IPC signals, used by kernels
// of both, the death of a neighbour, and the reset of a GPU. A neighbour is this program, started
// again with one of the hidden cases.
#include <fcntl.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <uptempo/kernels/gpus.hpp>
#include <vector>

#include "incoherent/device.hpp"
#include "join/processes.hpp"
#include "test/support/catch.hpp"
#include "test/support/eventually.hpp"
#include "tools/support/command.hpp"

namespace uptempo::vgpu::test {
namespace {

using uptempo::test::eventually;

uint32_t filled(uint32_t index, uint32_t seed) { return index * 2654435761u + seed; }

bool is_filled(std::span<const uint32_t> memory, uint32_t seed) {
  for (uint32_t i = 0; i < memory.size(); ++i)
    if (memory[i] != filled(i, seed)) return false;
  return true;
}

void fill(TestDevice& device, std::span<uint32_t> memory, uint32_t seed) {
  device.dispatch(device.kernel("fill"), static_cast<uint32_t>(memory.size()),
                  device.arguments().add(memory.data()).add(seed), {});
}

// Adds memory to itself with a kernel, because the host may have no access to attached memory.
bool is_twice_filled(TestDevice& device, std::span<const uint32_t> memory, uint32_t seed) {
  const auto sum = device.allocate(Memory::local, memory.size());
  device.dispatch(device.kernel("add"), static_cast<uint32_t>(memory.size()),
                  device.arguments().add(sum.data()).add(memory.data()).add(memory.data()), {});
  device.wait();
  for (uint32_t i = 0; i < sum.size(); ++i)
    if (sum[i] != 2 * filled(i, seed)) return false;
  return true;
}

constexpr const char* kChannel = "UPTEMPO_TEST_CHANNEL";

// Starts this program again with the hidden case `name`.
Child neighbour(const char* name) {
  return Child([name](Channel& channel) {
    const std::string ends = std::to_string(channel.in()) + ' ' + std::to_string(channel.out());
    setenv(kChannel, ends.c_str(), 1);
    execl("/proc/self/exe", "neighbour", name, nullptr);
    return 121;
  });
}

// The connection of a neighbour to the test that started it.
Channel to_test() {
  const char* ends = std::getenv(kChannel);
  REQUIRE(ends != nullptr);
  char* rest = nullptr;
  const auto in = static_cast<int>(std::strtol(ends, &rest, 10));
  return {in, static_cast<int>(std::strtol(rest, nullptr, 10))};
}

struct SharedMemory {
  hsa_amd_ipc_memory_t handle{};
  size_t items = 0;
};

SharedMemory shared(std::span<uint32_t> memory) {
  SharedMemory result{.items = memory.size()};
  REQUIRE(hsa_amd_ipc_memory_create(memory.data(), memory.size_bytes(), &result.handle) ==
          HSA_STATUS_SUCCESS);
  return result;
}

std::span<uint32_t> attached(const TestDevice& device, const SharedMemory& memory) {
  void* address = nullptr;
  REQUIRE(hsa_amd_ipc_memory_attach(&memory.handle, memory.items * sizeof(uint32_t), 1, &device.gpu,
                                    &address) == HSA_STATUS_SUCCESS);
  return {static_cast<uint32_t*>(address), memory.items};
}

void detach(std::span<uint32_t> memory) {
  CHECK(hsa_amd_ipc_memory_detach(memory.data()) == HSA_STATUS_SUCCESS);
}

// A whole block of ROCr, and a part of one. IPC needs sizes of whole pages.
constexpr size_t kItems[] = {4 << 20, 5120};

TEST_CASE("neighbour: adds what it is shown and replaces it", "[.neighbour]") {
  Channel test = to_test();
  const auto number = test.receive<uint32_t>();
  TestDevice device(kernels::gpus(), number);
  for (const size_t items : kItems) {
    const auto theirs = attached(device, test.receive<SharedMemory>());
    CHECK(theirs.size() == items);
    CHECK(is_twice_filled(device, theirs, 7));
    fill(device, theirs, 8);
    device.wait();
    detach(theirs);
    test.send(true);
  }
}

// `theirs`: the number of the neighbour's GPU.
void shares_memory(uint32_t theirs) {
  Child process = neighbour("neighbour: adds what it is shown and replaces it");
  TestDevice device(kernels::gpus());
  process.send(theirs);
  for (const size_t items : kItems) {
    const auto memory = device.allocate(Memory::local, items);
    fill(device, memory, 7);
    device.wait();
    process.send(shared(memory));
    CHECK(process.receive<bool>());
    CHECK(is_filled(memory, 8));
    CHECK(is_twice_filled(device, memory, 8));
  }
  CHECK(process.wait() == 0);
}

TEST_CASE("kernels of two processes use the same memory", "[join]") { shares_memory(0); }
TEST_CASE("a kernel uses another process's memory of another GPU", "[join]") { shares_memory(1); }

TEST_CASE("neighbour: keeps attached memory", "[.neighbour]") {
  Channel test = to_test();
  TestDevice device(kernels::gpus());
  const auto theirs = attached(device, test.receive<SharedMemory>());
  test.send(true);
  (void)test.receive<bool>();
  CHECK(is_twice_filled(device, theirs, 3));
  detach(theirs);
}

TEST_CASE("attached memory outlives its allocation", "[join]") {
  Child process = neighbour("neighbour: keeps attached memory");
  {
    TestDevice device(kernels::gpus());
    const auto memory = device.allocate(Memory::local, 4 << 20);
    fill(device, memory, 3);
    device.wait();
    process.send(shared(memory));
    CHECK(process.receive<bool>());
  }
  process.send(true);
  CHECK(process.wait() == 0);
}

TEST_CASE("neighbour: decrements a signal with its queue", "[.neighbour]") {
  Channel test = to_test();
  TestDevice device(kernels::gpus());
  const auto handle = test.receive<hsa_amd_ipc_signal_t>();
  hsa_signal_t signal{};
  REQUIRE(hsa_amd_ipc_signal_attach(&handle, &signal) == HSA_STATUS_SUCCESS);
  CHECK(hsa_signal_load_scacquire(signal) == 1);
  test.send(true);
  (void)test.receive<bool>();
  const uint64_t index = hsa_queue_add_write_index_screlease(device.queue(), 1);
  auto* const packet = static_cast<hsa_barrier_and_packet_t*>(device.queue()->base_address) +
                       index % device.queue()->size;
  packet->completion_signal = signal;
  __atomic_store_n(
      &packet->header,
      static_cast<uint16_t>(HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE |
                            HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE),
      __ATOMIC_RELEASE);
  hsa_signal_store_screlease(device.queue()->doorbell_signal, static_cast<int64_t>(index));
  CHECK(hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                  HSA_WAIT_STATE_ACTIVE) == 0);
  CHECK(hsa_signal_destroy(signal) == HSA_STATUS_SUCCESS);
}

TEST_CASE("a queue waits for a signal that another process's queue decrements", "[join]") {
  Child process = neighbour("neighbour: decrements a signal with its queue");
  TestDevice device(kernels::gpus());
  hsa_signal_t signal{};
  REQUIRE(hsa_amd_signal_create(1, 0, nullptr, HSA_AMD_SIGNAL_IPC, &signal) == HSA_STATUS_SUCCESS);
  hsa_amd_ipc_signal_t handle{};
  REQUIRE(hsa_amd_ipc_signal_create(signal, &handle) == HSA_STATUS_SUCCESS);
  process.send(handle);
  const auto memory = device.allocate(Memory::host_fine, 1000);
  device.barrier({}, signal);
  fill(device, memory, 5);
  CHECK(process.receive<bool>());
  CHECK(memory[999] == 0);  // the barrier holds it back
  process.send(true);
  device.wait();
  CHECK(is_filled(memory, 5));
  CHECK(process.wait() == 0);
  CHECK(hsa_signal_destroy(signal) == HSA_STATUS_SUCCESS);
}

hsa_status_t take_local_pool(hsa_amd_memory_pool_t pool, void* found) {
  uint32_t flags = 0;
  hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
  if ((flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) == 0) return HSA_STATUS_SUCCESS;
  *static_cast<hsa_amd_memory_pool_t*>(found) = pool;
  return HSA_STATUS_INFO_BREAK;
}

// More than half of the GPU's memory; null if it is not there.
void* most_memory(const TestDevice& device) {
  hsa_amd_memory_pool_t pool{};
  REQUIRE(hsa_amd_agent_iterate_memory_pools(device.gpu, take_local_pool, &pool) ==
          HSA_STATUS_INFO_BREAK);
  size_t bytes = 0;
  REQUIRE(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE, &bytes) ==
          HSA_STATUS_SUCCESS);
  void* memory = nullptr;
  const hsa_status_t status =
      hsa_amd_memory_pool_allocate(pool, bytes / 8 * 5 / 4096 * 4096, 0, &memory);
  return status == HSA_STATUS_SUCCESS ? memory : nullptr;
}

TEST_CASE("neighbour: runs a kernel without end", "[.neighbour]") {
  Channel test = to_test();
  TestDevice device(kernels::gpus());
  REQUIRE(most_memory(device) != nullptr);
  const auto flag = device.allocate(Memory::host_fine, 1);
  device.dispatch(device.kernel("wait_for"), 64 * 100, device.arguments().add(flag.data()), {});
  test.send(true);
  device.wait();
}

TEST_CASE("a neighbour that is killed leaves its memory and disturbs nothing", "[join]") {
  Child process = neighbour("neighbour: runs a kernel without end");
  TestDevice device(kernels::gpus());
  CHECK(process.receive<bool>());
  CHECK(most_memory(device) == nullptr);
  const auto memory = device.allocate(Memory::local, 1000);
  fill(device, memory, 1);
  device.wait();
  process.kill();
  fill(device, memory, 2);
  device.wait();
  CHECK(is_filled(memory, 2));
  void* const most = most_memory(device);
  CHECK(most != nullptr);
  CHECK(hsa_amd_memory_pool_free(most) == HSA_STATUS_SUCCESS);
}

TEST_CASE("neighbour: faults", "[.neighbour]") {
  Channel test = to_test();
  TestDevice device(kernels::gpus());
  REQUIRE(hsa_amd_register_system_event_handler(
              [](const hsa_amd_event_t* event, void*) -> hsa_status_t {
                _exit(event->event_type == HSA_AMD_GPU_MEMORY_FAULT_EVENT ? 7 : 8);
              },
              nullptr) == HSA_STATUS_SUCCESS);
  test.send(true);
  fill(device, {reinterpret_cast<uint32_t*>(0x1000), 64}, 1);
  device.wait();
}

TEST_CASE("a fault of a neighbour disturbs nothing", "[join]") {
  Child process = neighbour("neighbour: faults");
  TestDevice device(kernels::gpus());
  CHECK(process.receive<bool>());
  CHECK(process.wait() == 7);
  const auto memory = device.allocate(Memory::local, 1000);
  fill(device, memory, 2);
  device.wait();
  CHECK(is_filled(memory, 2));
}

// The driver's event of a reset. ROCr 5.2 does not ask for it.
class ResetEvent {
 public:
  ResetEvent() : device_(open("/dev/kfd", O_RDWR | O_CLOEXEC)) {
    kfd_ioctl_create_event_args create{};
    create.event_type = KFD_IOC_EVENT_HW_EXCEPTION;
    REQUIRE(ioctl(device_, AMDKFD_IOC_CREATE_EVENT, &create) == 0);
    id_ = create.event_id;
    // Later releases of ROCr end the process after a reset, unless the program handles it.
    CHECK(hsa_amd_register_system_event_handler(
              [](const hsa_amd_event_t*, void*) { return HSA_STATUS_SUCCESS; }, nullptr) ==
          HSA_STATUS_SUCCESS);
  }
  ~ResetEvent() { close(device_); }
  ResetEvent(const ResetEvent&) = delete;
  ResetEvent& operator=(const ResetEvent&) = delete;
  void wait() const {
    kfd_event_data data{};
    data.event_id = id_;
    kfd_ioctl_wait_events_args args{};
    args.events_ptr = reinterpret_cast<uintptr_t>(&data);
    args.num_events = 1;
    args.timeout = 60'000;
    REQUIRE(ioctl(device_, AMDKFD_IOC_WAIT_EVENTS, &args) == 0);
    REQUIRE(args.wait_result == KFD_IOC_WAIT_RESULT_COMPLETE);
  }

 private:
  const int device_;
  uint32_t id_ = 0;
};

// Runs kernels that wait for `flag` on the first GPU until it is reset, then sees that they never
// end and that the second GPU works.
void survives_reset(TestDevice& first, TestDevice& second, const ResetEvent& reset,
                    std::span<uint32_t> flag) {
  reset.wait();
  flag[0] = 1;
  const auto memory = second.allocate(Memory::host_fine, 1000);
  for (uint32_t round = 1; round < 20; ++round) {
    fill(second, memory, round);
    second.wait();
  }
  CHECK(is_filled(memory, 19));
  fill(first, memory, 20);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(hsa_signal_load_scacquire(first.signal()) == 2);
  CHECK(is_filled(memory, 19));
}

std::span<uint32_t> start_waiting(TestDevice& device) {
  const auto flag = device.allocate(Memory::host_fine, 1);
  device.dispatch(device.kernel("wait_for"), 64 * 100, device.arguments().add(flag.data()), {});
  return flag;
}

TEST_CASE("neighbour: survives the reset of a GPU", "[.neighbour]") {
  Channel test = to_test();
  {
    TestDevice second(kernels::gpus(), 1), first(kernels::gpus(), 0);
    const ResetEvent reset;
    const auto flag = start_waiting(first);
    test.send(true);
    survives_reset(first, second, reset, flag);
  }
}

TEST_CASE("neighbour: has a working GPU", "[.neighbour]") {
  TestDevice device(kernels::gpus(), 0);
  const auto memory = device.allocate(Memory::local, 1000);
  fill(device, memory, 2);
  device.wait();
  CHECK(is_filled(memory, 2));
}

TEST_CASE("a reset stops a GPU for the processes that use it", "[join][reset]") {
  Child process = neighbour("neighbour: survives the reset of a GPU");
  TestDevice second(kernels::gpus(), 1), first(kernels::gpus(), 0);
  const ResetEvent reset;
  const auto flag = start_waiting(first);
  CHECK(process.receive<bool>());
  const auto command = uptempo::test::run_command({UPTEMPO_VGPU_LAUNCHER, "--reset-gpu", "0"});
  CAPTURE(command.err);
  CHECK(command.exit_code == 0);
  survives_reset(first, second, reset, flag);
  CHECK(process.wait() == 0);
  CHECK(neighbour("neighbour: has a working GPU").wait() == 0);
}

TEST_CASE("memory of a process without --join cannot be attached", "[alone]") {
  Child process = neighbour("neighbour: finds no shared memory");
  TestDevice device(kernels::gpus());
  process.send(shared(device.allocate(Memory::local, 4 << 20)));
  CHECK(process.wait() == 0);
}

TEST_CASE("neighbour: finds no shared memory", "[.neighbour]") {
  Channel test = to_test();
  TestDevice device(kernels::gpus());
  const auto memory = test.receive<SharedMemory>();
  void* address = nullptr;
  CHECK(hsa_amd_ipc_memory_attach(&memory.handle, memory.items * sizeof(uint32_t), 1, &device.gpu,
                                  &address) != HSA_STATUS_SUCCESS);
}

}  // namespace
}  // namespace uptempo::vgpu::test
