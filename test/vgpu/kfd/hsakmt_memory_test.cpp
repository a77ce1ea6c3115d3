#include <linux/kfd_ioctl.h>
#include <sys/mman.h>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "hsakmt_fixture.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

uint64_t shared_memory_kilobytes() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    uint64_t kilobytes = 0;
    if (word == "RssShmem:" && file >> kilobytes) return kilobytes;
  }
  return 0;
}

uint32_t gpu_id() {
  kfd_process_device_apertures gpu{};
  kfd_ioctl_get_process_apertures_new_args apertures{};
  apertures.kfd_process_device_apertures_ptr = reinterpret_cast<uintptr_t>(&gpu);
  apertures.num_of_nodes = 1;
  REQUIRE(kfd_request(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &apertures) == 0);
  return gpu.gpu_id;
}

// A reserved address range with a VRAM buffer, created by raw requests.
struct RawBuffer {
  void* address = nullptr;
  kfd_ioctl_alloc_memory_of_gpu_args args{};
  explicit RawBuffer(uint64_t size = kPage, uint32_t flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM) {
    address = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(address != MAP_FAILED);
    args.va_addr = reinterpret_cast<uintptr_t>(address);
    args.size = size;
    args.gpu_id = gpu_id();
    args.flags = flags;
    REQUIRE(kfd_request(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args) == 0);
  }
  ~RawBuffer() { munmap(address, args.size); }
  int free() {
    kfd_ioctl_free_memory_of_gpu_args request{};
    request.handle = args.handle;
    return kfd_request(AMDKFD_IOC_FREE_MEMORY_OF_GPU, &request);
  }
  int map(bool map_it, uint32_t devices = 1, uint32_t* success = nullptr, uint32_t first_id = 0) {
    uint32_t ids[2] = {first_id == 0 ? args.gpu_id : first_id, 0xdead};
    kfd_ioctl_map_memory_to_gpu_args request{};
    request.handle = args.handle;
    request.device_ids_array_ptr = reinterpret_cast<uintptr_t>(ids);
    request.n_devices = devices;
    const int result = kfd_request(
        map_it ? AMDKFD_IOC_MAP_MEMORY_TO_GPU : AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &request);
    if (success != nullptr) *success = request.n_success;
    return result;
  }
};

TEST_CASE("host memory is allocated, mapped, unmapped and freed", "[memory]") {
  const Thunk thunk;
  void* memory = nullptr;
  REQUIRE(hsaKmtAllocMemory(kCpuNode, 64 * kPage, host_memory(), &memory) == HSAKMT_STATUS_SUCCESS);
  std::memset(memory, 0x7e, 64 * kPage);
  HSAuint64 alternate = 0;
  CHECK(hsaKmtMapMemoryToGPU(memory, 64 * kPage, &alternate) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtUnmapMemoryToGPU(memory) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtFreeMemory(memory, 64 * kPage) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("VRAM that the host may access starts as zeros and keeps stored data", "[memory]") {
  const Thunk thunk;
  for (int round = 0; round < 2; ++round) {  // the second round gets the same pages
    void* memory = nullptr;
    REQUIRE(hsaKmtAllocMemory(kGpuNode, kMiB, vram(true), &memory) == HSAKMT_STATUS_SUCCESS);
    const auto* words = static_cast<const uint64_t*>(memory);
    for (size_t i = 0; i < kMiB / 8; i += 64) REQUIRE(words[i] == 0);
    std::memset(memory, 0x5a, kMiB);
    CHECK(words[kMiB / 8 - 1] == 0x5a5a5a5a5a5a5a5a);
    CHECK(hsaKmtFreeMemory(memory, kMiB) == HSAKMT_STATUS_SUCCESS);
  }
}

TEST_CASE("available memory shrinks by allocations and grows by frees", "[memory]") {
  const Thunk thunk;
  const HSAuint64 before = thunk.available_vram();
  CHECK(before == expected_device().vram_bytes);
  void* memory = nullptr;
  REQUIRE(hsaKmtAllocMemory(kGpuNode, 8 * kMiB, vram(false), &memory) == HSAKMT_STATUS_SUCCESS);
  CHECK(thunk.available_vram() == before - 8 * kMiB);
  REQUIRE(hsaKmtFreeMemory(memory, 8 * kMiB) == HSAKMT_STATUS_SUCCESS);
  CHECK(thunk.available_vram() == before);
}

TEST_CASE("VRAM can be allocated up to the last page and not beyond", "[memory]") {
  const Thunk thunk;
  const HSAuint64 all = expected_device().vram_bytes;
  void* memory = nullptr;
  REQUIRE(hsaKmtAllocMemory(kGpuNode, all - kPage, vram(false), &memory) == HSAKMT_STATUS_SUCCESS);
  void* last = nullptr;
  CHECK(hsaKmtAllocMemory(kGpuNode, kPage, vram(false), &last) == HSAKMT_STATUS_SUCCESS);
  CHECK(thunk.available_vram() == 0);
  void* none = nullptr;
  CHECK(hsaKmtAllocMemory(kGpuNode, kPage, vram(false), &none) != HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtFreeMemory(last, kPage) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtFreeMemory(memory, all - kPage) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("a thousand freed allocations hold no memory", "[memory]") {
  const Thunk thunk;
  uint64_t after_first = 0;
  for (int round = 0; round < 1000; ++round) {
    void* memory = nullptr;
    REQUIRE(hsaKmtAllocMemory(kGpuNode, 4 * kMiB, vram(true), &memory) == HSAKMT_STATUS_SUCCESS);
    HSAuint64 alternate = 0;
    REQUIRE(hsaKmtMapMemoryToGPU(memory, 4 * kMiB, &alternate) == HSAKMT_STATUS_SUCCESS);
    for (uint64_t at = 0; at < 4 * kMiB; at += 16 * kPage) static_cast<char*>(memory)[at] = 1;
    REQUIRE(hsaKmtUnmapMemoryToGPU(memory) == HSAKMT_STATUS_SUCCESS);
    REQUIRE(hsaKmtFreeMemory(memory, 4 * kMiB) == HSAKMT_STATUS_SUCCESS);
    if (round == 0) after_first = shared_memory_kilobytes();
  }
  // Less than a page in each round. Some kernels count a process's pages approximately, with an
  // error of some hundred kilobytes for each processor.
  CHECK(shared_memory_kilobytes() < after_first + 4000);
}

TEST_CASE("program memory can be registered at a GPU address of its own", "[memory]") {
  const Thunk thunk;
  std::vector<char> memory(5 * kPage);
  void* start = memory.data() + 100;
  REQUIRE(hsaKmtRegisterMemory(start, 3 * kPage) == HSAKMT_STATUS_SUCCESS);
  HSAuint64 gpu_address = 0;
  REQUIRE(hsaKmtMapMemoryToGPU(start, 3 * kPage, &gpu_address) == HSAKMT_STATUS_SUCCESS);
  CHECK(gpu_address != 0);
  CHECK(gpu_address != reinterpret_cast<HSAuint64>(start));
  CHECK(gpu_address % kPage == reinterpret_cast<HSAuint64>(start) % kPage);
  CHECK(hsaKmtUnmapMemoryToGPU(start) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtDeregisterMemory(start) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("program memory that does not exist cannot be registered", "[memory]") {
  const Thunk thunk;
  void* hole = mmap(nullptr, 4 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(hole != MAP_FAILED);
  munmap(hole, 4 * kPage);
  kfd_ioctl_alloc_memory_of_gpu_args args{};
  args.va_addr = uint64_t{1} << 40;
  args.size = 4 * kPage;
  args.mmap_offset = reinterpret_cast<uintptr_t>(hole);
  args.gpu_id = gpu_id();
  args.flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR;
  CHECK(kfd_request(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args) == -EFAULT);
  args.mmap_offset = 0;
  CHECK(kfd_request(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args) == -EINVAL);
}

TEST_CASE("program memory with a read-only or inaccessible page cannot be registered", "[memory]") {
  const Thunk thunk;
  auto* const pages = static_cast<char*>(
      mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  kfd_ioctl_alloc_memory_of_gpu_args args{};
  args.va_addr = uint64_t{1} << 40;
  args.size = 3 * kPage;
  args.gpu_id = gpu_id();
  args.flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR;  // read-only for the GPU too
  const auto answer = [&] {
    args.mmap_offset = reinterpret_cast<uintptr_t>(pages) + 8;
    return kfd_request(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);
  };
  mprotect(pages + 3 * kPage, kPage, PROT_READ);  // contains its last bytes
  CHECK(answer() == -EPERM);
  mprotect(pages + kPage, kPage, PROT_NONE);
  CHECK(answer() == -EFAULT);
  mprotect(pages, 4 * kPage, PROT_READ | PROT_WRITE);
  REQUIRE(answer() == 0);
  kfd_ioctl_free_memory_of_gpu_args request{};
  request.handle = args.handle;
  CHECK(kfd_request(AMDKFD_IOC_FREE_MEMORY_OF_GPU, &request) == 0);
  munmap(pages, 4 * kPage);
}

TEST_CASE("inconsistent requests are refused", "[memory]") {
  const Thunk thunk;
  kfd_ioctl_alloc_memory_of_gpu_args good{};
  good.va_addr = uint64_t{1} << 40;
  good.size = kPage;
  good.gpu_id = gpu_id();
  good.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
  const auto refused = [](kfd_ioctl_alloc_memory_of_gpu_args args) {
    return kfd_request(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);
  };
  auto bad = good;
  bad.size = 0;
  CHECK(refused(bad) == -EINVAL);
  bad = good;
  bad.gpu_id = 1;
  CHECK(refused(bad) == -EINVAL);
  bad = good;
  bad.va_addr += 1;
  CHECK(refused(bad) == -EINVAL);
  bad = good;
  bad.va_addr = uint64_t{1} << 47;
  CHECK(refused(bad) == -EINVAL);
  bad = good;
  bad.flags = 0;
  CHECK(refused(bad) == -EINVAL);
  bad = good;
  bad.flags = KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL;  // one page too small
  CHECK(refused(bad) == -EINVAL);
}

TEST_CASE("an unknown handle returns KFD's errors", "[memory]") {
  const Thunk thunk;
  RawBuffer buffer;
  REQUIRE(buffer.free() == 0);
  CHECK(buffer.free() == -EINVAL);
  CHECK(buffer.map(true) == -ENOMEM);
  CHECK(buffer.map(false) == -ENODEV);
}

TEST_CASE("a mapped buffer cannot be freed, and an unmapped one cannot be unmapped", "[memory]") {
  const Thunk thunk;
  RawBuffer buffer;
  CHECK(buffer.map(false) == -EINVAL);
  REQUIRE(buffer.map(true) == 0);
  CHECK(buffer.map(true) == 0);  // again: no effect
  CHECK(buffer.free() == -EBUSY);
  REQUIRE(buffer.map(false) == 0);
  CHECK(buffer.map(false) == -EINVAL);
  CHECK(buffer.free() == 0);
}

TEST_CASE("n_success counts the mapped devices", "[memory]") {
  const Thunk thunk;
  RawBuffer buffer;
  uint32_t success = 0;
  CHECK(buffer.map(true, 0, &success) == -EINVAL);
  CHECK(buffer.map(true, 1, &success, 0xbad) == -EINVAL);
  CHECK(success == 0);
  CHECK(buffer.map(true, 2, &success) == -EINVAL);  // the second device does not exist
  CHECK(success == 1);
  CHECK(buffer.map(false, 1, &success) == 0);
  CHECK(success == 1);
  CHECK(buffer.free() == 0);
}

TEST_CASE("two buffers at one GPU address cannot both be mapped", "[memory]") {
  const Thunk thunk;
  RawBuffer one;
  RawBuffer two;
  two.args.va_addr = one.args.va_addr;
  REQUIRE(two.free() == 0);
  REQUIRE(kfd_request(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &two.args) == 0);
  REQUIRE(one.map(true) == 0);
  CHECK(two.map(true) == -EINVAL);
  REQUIRE(one.map(false) == 0);
  CHECK(two.map(true) == 0);
  CHECK(two.map(false) == 0);
  CHECK(one.free() == 0);
  CHECK(two.free() == 0);
}

}  // namespace
}  // namespace uptempo::vgpu
