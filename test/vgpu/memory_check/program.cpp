// A program over HSA with one mistake in its use of memory, which the first argument names, or with
// none.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uptempo/kernels/memory_check.hpp>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "incoherent/device.hpp"

namespace {

using namespace uptempo::vgpu::test;

constexpr size_t kPage = 4096;
std::atomic<int> faults{0};

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s does not hold\n", what);
  std::_Exit(4);
}

hsa_amd_memory_pool_t device_pool(hsa_agent_t gpu) {
  hsa_amd_memory_pool_t pool{};
  const auto take = [](hsa_amd_memory_pool_t one, void* to) {
    uint32_t flags = 0;
    hsa_amd_segment_t segment{};
    check(hsa_amd_memory_pool_get_info(one, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment),
          "hsa_amd_memory_pool_get_info");
    if (segment != HSA_AMD_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
    check(hsa_amd_memory_pool_get_info(one, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags),
          "hsa_amd_memory_pool_get_info");
    if ((flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) != 0)
      *static_cast<hsa_amd_memory_pool_t*>(to) = one;
    return HSA_STATUS_SUCCESS;
  };
  check(hsa_amd_agent_iterate_memory_pools(gpu, take, &pool), "hsa_amd_agent_iterate_memory_pools");
  return pool;
}

class Program {
 public:
  // The names of these two appear in findings.
  [[gnu::noinline]] uint32_t* take(size_t bytes) {
    void* address = nullptr;
    check(hsa_amd_memory_pool_allocate(pool_, bytes, 0, &address), "hsa_amd_memory_pool_allocate");
    check(hsa_amd_agents_allow_access(1, &device.cpu, nullptr, address),
          "hsa_amd_agents_allow_access");
    return static_cast<uint32_t*>(address);
  }
  [[gnu::noinline]] hsa_status_t give(uint32_t* address) {
    const hsa_status_t status = hsa_amd_memory_pool_free(address);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // no tail call
    return status;
  }

  void store(uint32_t* out, uint32_t offset) {
    auto arguments = device.arguments();
    arguments.add(out).add(offset);
    device.dispatch(device.kernel("store"), 64, arguments, {});
    device.wait();
  }
  void copy(const uint32_t* in, uint32_t* out) {
    auto arguments = device.arguments();
    arguments.add(in).add(out);
    device.dispatch(device.kernel("copy"), 64, arguments, {});
    device.wait();
  }

  TestDevice device{kernels::memory_check()};

 private:
  const hsa_amd_memory_pool_t pool_ = device_pool(device.gpu);
};

// 256 bytes each, which ROCr takes from one block.
void neighbour(Program& program) {
  uint32_t *const one = program.take(256), *const other = program.take(256);
  program.store(one, 0);
  program.store(other, 0);
  program.store(one, 2);
  program.give(one);
  program.give(other);
}

// The kernel uses the memory while the host frees it.
void in_use(Program& program) {
  // The host releases the kernel with the first, the kernel says with the second that it runs.
  const auto flags = program.device.allocate(Memory::host_fine, 2);
  uint32_t* const data = program.take(256);
  auto arguments = program.device.arguments();
  arguments.add(data).add(flags.data());
  program.device.dispatch(program.device.kernel("hold"), 64, arguments, {});
  while (std::atomic_ref(flags[1]).load() == 0) continue;
  program.give(data);
  std::atomic_ref(flags[0]).store(1);
  program.device.wait();
}

// The block of arguments is used again: an address is left where the kernel has no argument.
void stale_argument(Program& program) {
  const auto flags = program.device.allocate(Memory::host_fine, 2);
  uint32_t *const data = program.take(256), *const other = program.take(256);
  auto arguments = program.device.arguments();
  arguments.add(data).add(flags.data());
  // Three hidden arguments are the grid's offset. The others are not used.
  arguments.add(uint64_t{0}).add(uint64_t{0}).add(uint64_t{0}).add(other);
  const auto hold = program.device.kernel("hold");
  require(hold.kernarg_bytes >= 6 * sizeof(void*), "the kernel declares the last word");
  program.device.dispatch(hold, 64, arguments, {});
  while (std::atomic_ref(flags[1]).load() == 0) continue;
  program.give(other);
  std::atomic_ref(flags[0]).store(1);
  program.device.wait();
  program.give(data);
}

void twice(Program& program) {
  uint32_t* const data = program.take(256);
  require(program.give(data) == HSA_STATUS_SUCCESS, "the first free succeeds");
  require(program.give(data) != HSA_STATUS_SUCCESS, "the second free fails");
}

void copy_beyond(Program& program) {
  uint32_t *const from = program.take(4096), *const to = program.take(1000);
  program.store(from, 0);
  program.device.copy(to, from, 1024);
  program.give(from);
  program.give(to);
}

// Copies pass on which bytes have contents.
void copied_empty(Program& program) {
  uint32_t *const from = program.take(512), *const to = program.take(512);
  program.store(from, 0);
  program.device.copy(to, from, 512);
  const auto out = program.device.allocate(Memory::host_fine, 64);
  program.copy(to, out.data());
  program.copy(to + 64, out.data());
  program.give(from);
  program.give(to);
}

// The host stores to the first page of two only.
void host_stored(Program& program) {
  uint32_t* const data = program.take(8192);
  *static_cast<volatile uint32_t*>(data) = 1;
  const auto out = program.device.allocate(Memory::host_fine, 64);
  program.copy(data, out.data());
  program.copy(data + 1024, out.data());
  program.give(data);
}

void leak(Program& program) {
  for (int i = 0; i < 3; ++i) program.take(1000);
}

// Many small allocations, of which the host stores to each STRIDEth one, from the first on. The
// program's further arguments are their number and STRIDE.
size_t allocations = 2, stride = 1;
void many(Program& program) {
  std::vector<uint32_t*> data(allocations);
  for (size_t i = 0; i < allocations; ++i) {
    data[i] = program.take(256);
    if (i % stride == 0) *static_cast<volatile uint32_t*>(data[i]) = 1;
  }
  const auto out = program.device.allocate(Memory::host_fine, 64);
  for (const size_t i : {size_t{0}, (allocations - 1) / stride * stride}) {
    out[0] = 0;
    program.copy(data[i], out.data());
    require(out[0] == 1, "the kernel reads the value that the host has stored");
  }
  for (uint32_t* const one : data) program.give(one);
}

void clean(Program& program) {
  uint32_t* const data = program.take(8192);
  const auto out = program.device.allocate(Memory::host_fine, 64);
  // A system call stores.
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  require(read(zeros, data + 64, 256) == 256, "a system call can store to device memory");
  close(zeros);
  program.copy(data + 64, out.data());
  // Loads of the host need no contents, and see the kernel's stores.
  program.store(data, 1024);
  require(data[1024] == 1 && data[2047] == 0, "the host reads device memory");
  check(hsa_amd_memory_fill(data, 0, 2048), "hsa_amd_memory_fill");
  program.copy(data + 448, out.data());

  // The program does not see the redzone.
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  check(hsa_amd_pointer_info(data, &info, nullptr, nullptr, nullptr), "hsa_amd_pointer_info");
  require(info.sizeInBytes == 8192 && info.agentBaseAddress == data, "the size is the program's");
  hsa_amd_ipc_memory_t handle;
  check(hsa_amd_ipc_memory_create(data, 8192, &handle), "hsa_amd_ipc_memory_create");
  require(program.give(data) == HSA_STATUS_SUCCESS, "memory is freed");
  check(hsa_amd_pointer_info(data, &info, nullptr, nullptr, nullptr), "hsa_amd_pointer_info");
  require(info.type == HSA_EXT_POINTER_TYPE_UNKNOWN, "freed memory is not known");

  // Freed memory that is not used is no finding, whatever its amount.
  for (int i = 0; i < 200; ++i) program.give(program.take(1 << 20));
  program.give(program.take(100 << 20));

  // Faults on what the program maps where freed memory was are its own.
  uint32_t* const large = program.take(128 << 20);
  require(program.give(large) == HSA_STATUS_SUCCESS, "memory is freed");
  void* const again =
      mmap(large, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  require(again == large, "the address is free again");
  struct sigaction action {};
  action.sa_sigaction = [](int, siginfo_t* fault, void*) {
    ++faults;
    mprotect(fault->si_addr, kPage, PROT_READ | PROT_WRITE);
  };
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  *static_cast<volatile uint32_t*>(again) = 1;
  require(faults == 1, "the program's handler opens its page");
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void(Program&)>> programs{
      {"neighbour", neighbour},
      {"in_use", in_use},
      {"stale_argument", stale_argument},
      {"twice", twice},
      {"copy_beyond", copy_beyond},
      {"copied_empty", copied_empty},
      {"host_stored", host_stored},
      {"leak", leak},
      {"many", many},
      {"clean", clean}};
  const auto found = programs.find(argc >= 2 ? argv[1] : "");
  if (found == programs.end()) return 2;
  if (argc >= 3) allocations = std::strtoull(argv[2], nullptr, 10);
  if (argc >= 4) stride = std::strtoull(argv[3], nullptr, 10);
  Program program;
  found->second(program);
  return 0;
}
