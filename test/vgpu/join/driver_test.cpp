// Sharing through ROCT and raw requests: exported and imported buffers, their account and errors,
// DMA-buf descriptors, resets. Runs with and without --join. Children are forked before the parent
// opens the device.
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <fcntl.h>
#include <hsakmt.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "hsakmt_fixture.hpp"
#include "join/processes.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

constexpr HSAuint32 kSecondGpuNode = 2;
constexpr uint64_t kMiB = uint64_t{1} << 20;

bool joined() { return std::getenv("UPTEMPO_VGPU_JOIN") != nullptr; }

HsaMemFlags kernel_host_memory() {
  HsaMemFlags flags = host_memory();
  flags.ui32.NonPaged = 1;  // the driver's (GTT), not the program's
  return flags;
}

struct Handle {
  HsaSharedMemoryHandle words{};  // an array
};

// Memory of a node; freed at the end of its scope.
struct Memory {
  Memory(HSAuint32 node, uint64_t size_bytes, HsaMemFlags flags) : bytes(size_bytes) {
    REQUIRE(hsaKmtAllocMemory(node, bytes, flags, &address) == HSAKMT_STATUS_SUCCESS);
  }
  ~Memory() { free(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void free() {
    if (address != nullptr) CHECK(hsaKmtFreeMemory(address, bytes) == HSAKMT_STATUS_SUCCESS);
    address = nullptr;
  }
  Handle share() const {
    Handle handle;
    REQUIRE(hsaKmtShareMemory(address, bytes, &handle.words) == HSAKMT_STATUS_SUCCESS);
    return handle;
  }
  uint64_t* words() const { return static_cast<uint64_t*>(address); }

  void* address = nullptr;
  const uint64_t bytes;
};

uint64_t* import(const Handle& handle, uint64_t expected_bytes) {
  void* address = nullptr;
  HSAuint64 bytes = 0;
  if (hsaKmtRegisterSharedHandle(&handle.words, &address, &bytes) != HSAKMT_STATUS_SUCCESS)
    return nullptr;
  return bytes == expected_bytes ? static_cast<uint64_t*>(address) : nullptr;
}

bool drop(uint64_t* address) { return hsaKmtDeregisterMemory(address) == HSAKMT_STATUS_SUCCESS; }

TEST_CASE("a process may import what it exports", "[sharing]") {
  const Thunk thunk;
  const auto [node, flags] =
      GENERATE(std::pair{kGpuNode, vram(true)}, std::pair{kSecondGpuNode, vram(true)},
               std::pair{kCpuNode, kernel_host_memory()});
  Memory memory(node, 2 * kMiB, flags);
  memory.words()[5] = 55;
  const Handle handle = memory.share();
  CHECK(std::ranges::equal(handle.words, memory.share().words));
  uint64_t* const same = import(handle, memory.bytes);
  REQUIRE(same != nullptr);
  CHECK(same != memory.words());
  CHECK(same[5] == 55);
  same[6] = 66;
  CHECK(memory.words()[6] == 66);
  HSAuint64 gpu_address = 0;
  CHECK(hsaKmtMapMemoryToGPU(same, memory.bytes, &gpu_address) == HSAKMT_STATUS_SUCCESS);
  CHECK(hsaKmtUnmapMemoryToGPU(same) == HSAKMT_STATUS_SUCCESS);
  // The import keeps the memory.
  memory.free();
  CHECK(same[6] == 66);
  CHECK(drop(same));
  CHECK(import(handle, 2 * kMiB) == nullptr);
}

TEST_CASE("a process imports the memory of another one", "[sharing]") {
  const bool is_vram = GENERATE(true, false);
  Child child([&](Channel& parent) {
    const Thunk thunk;
    parent.send(true);  // Thunk compares the used memory of its begin and end
    uint64_t* const theirs = import(parent.receive<Handle>(), kMiB);
    parent.send(theirs != nullptr);
    if (theirs == nullptr) return 0;
    if (theirs[0] != 1) return 1;
    theirs[1] = 2;
    parent.send(true);
    (void)parent.receive<bool>();  // the exporter has freed it
    if (theirs[1] != 2) return 2;
    return drop(theirs) ? 0 : 3;
  });
  CHECK(child.receive<bool>());
  const Thunk thunk;
  Memory memory(is_vram ? kGpuNode : kCpuNode, kMiB, is_vram ? vram(true) : kernel_host_memory());
  memory.words()[0] = 1;
  child.send(memory.share());
  REQUIRE(child.receive<bool>() == joined());
  if (joined()) {
    CHECK(child.receive<bool>());
    CHECK(memory.words()[1] == 2);
    memory.free();
    child.send(true);
  }
  CHECK(child.wait() == 0);
}

TEST_CASE("the memory of all processes counts", "[sharing]") {
  Child child([](Channel& parent) {
    const Thunk thunk;
    const HSAuint64 before = thunk.available_vram();
    parent.send(before);
    Memory memory(kGpuNode, 1024 * kMiB, vram(false));
    parent.send(thunk.available_vram());
    (void)parent.receive<bool>();
    return 0;  // killed before
  });
  const auto before = child.receive<HSAuint64>();
  CHECK(child.receive<HSAuint64>() == before - 1024 * kMiB);
  {
    const Thunk thunk;
    const HSAuint64 all = expected_device().vram_bytes;
    CHECK(before == all);
    CHECK(thunk.available_vram() == (joined() ? all - 1024 * kMiB : all));
    // More than the neighbour leaves.
    void* rest = nullptr;
    const bool fits = hsaKmtAllocMemory(kGpuNode, all, vram(false), &rest) == HSAKMT_STATUS_SUCCESS;
    CHECK(fits == !joined());
    if (fits) CHECK(hsaKmtFreeMemory(rest, all) == HSAKMT_STATUS_SUCCESS);
  }
  child.kill();
  const Thunk thunk;
  CHECK(thunk.available_vram() == expected_device().vram_bytes);
}

struct IpcExport {
  uint64_t handle = 0;
  uint32_t name[4] = {};
  uint32_t gpu_id = 0, flags = 0;
};
struct IpcImport {
  uint64_t handle = 0, address = 0, mmap_offset = 0;
  uint32_t name[4] = {};
  uint32_t gpu_id = 0, flags = 0;
};
struct DmabufExport {
  uint64_t handle = 0;
  uint32_t flags = 0, descriptor = 0;
};
constexpr unsigned long kIpcExport = _IOWR('K', 0x81, IpcExport);
constexpr unsigned long kIpcImport = _IOWR('K', 0x80, IpcImport);
constexpr unsigned long kDmabufExport = _IOWR('K', 0x24, DmabufExport);

std::vector<uint32_t> gpu_ids() {
  kfd_process_device_apertures all[8];
  kfd_ioctl_get_process_apertures_new_args args{};
  args.kfd_process_device_apertures_ptr = reinterpret_cast<uintptr_t>(all);
  args.num_of_nodes = 8;
  REQUIRE(kfd_request(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args) == 0);
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < args.num_of_nodes; ++i) ids.push_back(all[i].gpu_id);
  return ids;
}

// A buffer made by a raw request, freed at the end of its scope.
struct Buffer {
  Buffer(uint32_t gpu_id, uint32_t flags, uint64_t size = 4 * kPage) {
    args.va_addr = 0x7000'0000'0000 + 16 * kMiB * next++;
    args.size = size;
    args.gpu_id = gpu_id;
    args.flags = flags;
    if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0)
      args.mmap_offset = reinterpret_cast<uintptr_t>(own.data()) & ~uint64_t{kPage - 1};
    REQUIRE(kfd_request(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args) == 0);
  }
  ~Buffer() { free(args.handle); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  static void free(uint64_t handle) {
    kfd_ioctl_free_memory_of_gpu_args request{.handle = handle};
    CHECK(kfd_request(AMDKFD_IOC_FREE_MEMORY_OF_GPU, &request) == 0);
  }
  inline static uint64_t next = 0;
  std::vector<char> own = std::vector<char>(8 * kPage);
  kfd_ioctl_alloc_memory_of_gpu_args args{};
};

TEST_CASE("wrong requests to share are refused as the kernel refuses them", "[sharing]") {
  const std::vector<uint32_t> ids = gpu_ids();
  REQUIRE(ids.size() == 2);
  const Buffer buffer(ids[0], KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC);
  IpcExport good{.handle = buffer.args.handle, .gpu_id = ids[0], .flags = 0x1234};
  REQUIRE(kfd_request(kIpcExport, &good) == 0);

  IpcExport bad{.handle = buffer.args.handle, .gpu_id = 1};
  CHECK(kfd_request(kIpcExport, &bad) == -EINVAL);
  bad = {.handle = buffer.args.handle, .gpu_id = ids[1]};
  CHECK(kfd_request(kIpcExport, &bad) == -EINVAL);
  bad = {.handle = buffer.args.handle + 1000, .gpu_id = ids[0]};
  CHECK(kfd_request(kIpcExport, &bad) == -EINVAL);
  const Buffer own(ids[0], KFD_IOC_ALLOC_MEM_FLAGS_USERPTR);
  bad = {.handle = own.args.handle, .gpu_id = ids[0]};
  CHECK(kfd_request(kIpcExport, &bad) == -EPERM);
  DmabufExport dmabuf{.handle = own.args.handle};
  CHECK(kfd_request(kDmabufExport, &dmabuf) == -EPERM);

  const auto importing = [&](uint32_t gpu_id, uint64_t address) {
    IpcImport args{.address = address, .gpu_id = gpu_id};
    std::memcpy(args.name, good.name, sizeof args.name);
    return args;
  };
  IpcImport import = importing(1, 0x6000'0000'0000);
  CHECK(kfd_request(kIpcImport, &import) == -EINVAL);
  import = importing(ids[1], 0x6000'0000'0000);
  CHECK(kfd_request(kIpcImport, &import) == -EINVAL);
  import = importing(ids[0], 0x6000'0000'0001);
  CHECK(kfd_request(kIpcImport, &import) == -EINVAL);
  import = importing(ids[0], 0x6000'0000'0000);
  import.name[2] ^= 1;
  CHECK(kfd_request(kIpcImport, &import) == -EINVAL);
  import = importing(ids[0], 0x6000'0000'0000);
  REQUIRE(kfd_request(kIpcImport, &import) == 0);
  CHECK(import.flags == 0x1234);
  CHECK(import.mmap_offset == buffer.args.mmap_offset);
  CHECK(import.mmap_offset != 0);
  Buffer::free(import.handle);
}

int exported(const Buffer& buffer, uint32_t flags) {
  DmabufExport args{.handle = buffer.args.handle, .flags = flags};
  REQUIRE(kfd_request(kDmabufExport, &args) == 0);
  return static_cast<int>(args.descriptor);
}

int info_of(int descriptor, kfd_ioctl_get_dmabuf_info_args& info) {
  info = {};
  info.dmabuf_fd = static_cast<uint32_t>(descriptor);
  return kfd_request(AMDKFD_IOC_GET_DMABUF_INFO, &info);
}

TEST_CASE("a DMA-buf descriptor stands for a buffer", "[dmabuf]") {
  const uint32_t gpu_id = gpu_ids()[1];
  const Buffer buffer(gpu_id, KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC);
  const int descriptor = exported(buffer, O_CLOEXEC | O_RDWR);
  CHECK((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(lseek(descriptor, 0, SEEK_END) == 4 * kPage);
  CHECK(mmap(nullptr, kPage, PROT_READ, MAP_SHARED, descriptor, 0) == MAP_FAILED);
  CHECK(pwrite(descriptor, "x", 1, 0) == -1);
  const int copy = dup(descriptor);
  close(descriptor);
  kfd_ioctl_get_dmabuf_info_args info;
  REQUIRE(info_of(copy, info) == 0);
  CHECK(info.size == 4 * kPage);
  CHECK(info.gpu_id == gpu_id);
  CHECK(info.flags == (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC));
  CHECK(info.metadata_size == 0);
  kfd_ioctl_import_dmabuf_args import{};
  import.gpu_id = gpu_id;
  import.dmabuf_fd = static_cast<uint32_t>(copy);
  REQUIRE(kfd_request(AMDKFD_IOC_IMPORT_DMABUF, &import) == 0);  // without an address
  kfd_ioctl_map_memory_to_gpu_args map{};
  map.handle = import.handle;
  map.device_ids_array_ptr = reinterpret_cast<uintptr_t>(&gpu_id);
  map.n_devices = 1;
  CHECK(kfd_request(AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map) == -EINVAL);
  Buffer::free(import.handle);
  close(copy);
}

TEST_CASE("libdrm imports and maps a DMA-buf descriptor", "[dmabuf]") {
  const Buffer buffer(gpu_ids()[1], KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT);
  const int descriptor = exported(buffer, O_CLOEXEC);
  const int node = open("/dev/dri/renderD129", O_RDWR | O_CLOEXEC);
  REQUIRE(node >= 0);
  uint32_t major = 0, minor = 0;
  amdgpu_device_handle device = nullptr;
  REQUIRE(amdgpu_device_initialize(node, &major, &minor, &device) == 0);
  amdgpu_bo_import_result imported{};
  REQUIRE(amdgpu_bo_import(device, amdgpu_bo_handle_type_dma_buf_fd,
                           static_cast<uint32_t>(descriptor), &imported) == 0);
  close(descriptor);
  CHECK(imported.alloc_size == 4 * kPage);
  void* address = nullptr;
  REQUIRE(amdgpu_bo_cpu_map(imported.buf_handle, &address) == 0);
  void* const original = mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, node,
                              static_cast<off_t>(buffer.args.mmap_offset));
  REQUIRE(original != MAP_FAILED);
  *static_cast<int*>(address) = 12345;
  CHECK(*static_cast<int*>(original) == 12345);
  const auto va = reinterpret_cast<uint64_t>(address);
  const auto change = [&](uint64_t offset, uint64_t bytes, uint32_t operation) {
    return amdgpu_bo_va_op(imported.buf_handle, offset, bytes, va, 0, operation);
  };
  CHECK(change(0, 4 * kPage, AMDGPU_VA_OP_UNMAP) == -ENOENT);
  CHECK(change(kPage, kPage, AMDGPU_VA_OP_MAP) == -EINVAL);
  CHECK(change(0, 4 * kPage, AMDGPU_VA_OP_MAP) == 0);
  CHECK(change(0, 4 * kPage, AMDGPU_VA_OP_MAP) == -EINVAL);
  CHECK(change(0, 4 * kPage, AMDGPU_VA_OP_UNMAP) == 0);
  CHECK(change(0, 4 * kPage, AMDGPU_VA_OP_MAP) == 0);  // ends with the object
  CHECK(amdgpu_bo_free(imported.buf_handle) == 0);
  drm_gem_close unknown{.handle = 77, .pad = 0};
  CHECK(ioctl(node, DRM_IOCTL_GEM_CLOSE, &unknown) == -1);
  CHECK(errno == EINVAL);
  CHECK(amdgpu_device_deinitialize(device) == 0);
  munmap(original, 4 * kPage);
  close(node);
}

TEST_CASE("descriptors that are no DMA-buf are refused", "[dmabuf]") {
  kfd_ioctl_get_dmabuf_info_args info;
  CHECK(info_of(-1, info) == -EBADF);
  CHECK(info_of(STDIN_FILENO, info) == -EINVAL);
  const int other = memfd_create("other", 0);
  CHECK(info_of(other, info) == -EINVAL);
  close(other);
  int freed = -1;
  {
    const Buffer buffer(gpu_ids()[0], KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
    freed = exported(buffer, 0);
    CHECK((fcntl(freed, F_GETFD) & FD_CLOEXEC) == 0);
  }
  CHECK(info_of(freed, info) == -EINVAL);
  close(freed);
}

TEST_CASE("a DMA-buf descriptor goes to another process over a socket", "[dmabuf]") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  Child child([&](Channel& parent) {
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(ends[1], &message, 0) != 1) return 1;
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    const Thunk thunk;
    HsaGraphicsResourceInfo info{};
    HSAuint32 node = kGpuNode;
    const bool registered =
        hsaKmtRegisterGraphicsHandleToNodes(static_cast<HSAuint64>(descriptor), &info, 1, &node) ==
        HSAKMT_STATUS_SUCCESS;
    close(descriptor);
    parent.send(registered);
    if (!registered) return 0;
    if (info.SizeInBytes != kMiB) return 2;
    HSAuint64 gpu_address = 0;
    if (hsaKmtMapMemoryToGPU(info.MemoryAddress, kMiB, &gpu_address) != HSAKMT_STATUS_SUCCESS)
      return 3;
    (void)hsaKmtUnmapMemoryToGPU(info.MemoryAddress);
    return hsaKmtDeregisterMemory(info.MemoryAddress) == HSAKMT_STATUS_SUCCESS ? 0 : 4;
  });
  const Buffer buffer(gpu_ids()[0], KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC,
                      kMiB);
  const int descriptor = exported(buffer, O_CLOEXEC);
  char byte = 1;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  REQUIRE(sendmsg(ends[0], &message, 0) == 1);
  close(descriptor);
  CHECK(child.receive<bool>() == joined());
  CHECK(child.wait() == 0);
  for (const int end : ends) close(end);
}

TEST_CASE("a reset sets the hardware exception events of every process", "[reset]") {
  const auto await_reset = [](const Thunk&) {
    HsaEventDescriptor descriptor{};
    descriptor.EventType = HSA_EVENTTYPE_HW_EXCEPTION;
    HsaEvent* event = nullptr;
    REQUIRE(hsaKmtCreateEvent(&descriptor, true, false, &event) == HSAKMT_STATUS_SUCCESS);
    return event;
  };
  const auto id_of = [](HsaEvent* event) { return event->EventId; };
  // ROCT 5.2.3 copies the data of memory events only.
  const auto exception_of = [](uint32_t event_id) {
    kfd_event_data data{};
    data.event_id = event_id;
    kfd_ioctl_wait_events_args wait{};
    wait.events_ptr = reinterpret_cast<uintptr_t>(&data);
    wait.num_events = 1;
    wait.timeout = 60'000;
    REQUIRE(kfd_request(AMDKFD_IOC_WAIT_EVENTS, &wait) == 0);
    REQUIRE(wait.wait_result == KFD_IOC_WAIT_RESULT_COMPLETE);
    kfd_hsa_hw_exception_data exception{};
    std::memcpy(&exception, &data.memory_exception_data, sizeof exception);
    return exception;
  };
  Child child([&](Channel& parent) {
    const Thunk thunk;
    HsaEvent* const event = await_reset(thunk);
    parent.send(true);
    if (!joined()) return 0;
    const kfd_hsa_hw_exception_data exception = exception_of(id_of(event));
    if (exception.gpu_id != gpu_ids()[1] || exception.memory_lost != 1) return 1;
    return hsaKmtDestroyEvent(event) == HSAKMT_STATUS_SUCCESS ? 0 : 2;
  });
  CHECK(child.receive<bool>());
  const Thunk thunk;
  HsaEvent* const event = await_reset(thunk);
  CHECK(reset_gpu(2) == -1);
  CHECK(reset_gpu(1) == 0);
  const kfd_hsa_hw_exception_data exception = exception_of(id_of(event));
  CHECK(exception.gpu_id == gpu_ids()[1]);
  CHECK(exception.reset_type == KFD_HW_EXCEPTION_WHOLE_GPU_RESET);
  CHECK(exception.reset_cause == KFD_HW_EXCEPTION_GPU_HANG);
  CHECK(exception.memory_lost == 1);
  CHECK(hsaKmtDestroyEvent(event) == HSAKMT_STATUS_SUCCESS);
  CHECK(child.wait() == 0);
}

}  // namespace
}  // namespace uptempo::vgpu
