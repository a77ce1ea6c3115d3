// Tests in which buffers, and from when until when, the driver observes the host.
#include <linux/kfd_ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "device/caches/caching.hpp"
#include "device/host/host_pages.hpp"
#include "kfd/buffers.hpp"
#include "kfd/events.hpp"
#include "kfd/queues.hpp"
#include "test/support/catch.hpp"
#include "test/support/posix.hpp"

namespace uptempo::vgpu::kfd {
namespace {

constexpr size_t kPage = 4096;
constexpr uint32_t kWritable = 1u << 31;

using Kind = HostEvent::Kind;

Options options_of_first_device() {
  Options options;
  options.device = &device_descriptions()[0];
  options.gpus = {options.device};
  return options;
}

struct Driver {
  const Options options = options_of_first_device();
  Trace trace{""};
  Events events;
  HostPages host;
  GpuGroup group;
  Machine machine{memory_of(options)};
  Gpu gpu{
      options,
      0,
      {.machine = machine, .trace = trace, .events = events, .group = group, .host_pages = &host}};
  SparseFile kfd_file{"uptempo-vgpu-test-kfd", kfd_file_bytes(1)};
  Buffers buffers{{&gpu}, kfd_file};

  std::vector<HostEvent> taken() {
    std::vector<HostEvent> all;
    for (HostEvent event; host.take(event);) all.push_back(event);
    return all;
  }
};

// Buffers as ROCT creates them: first the addresses, then the buffer, then the program's mapping.
struct Memory {
  Memory(Driver& the_driver, uint32_t flags, size_t page_count = 4,
         int protection = PROT_READ | PROT_WRITE)
      : driver(the_driver), bytes(page_count * kPage) {
    void* const reserved =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    program = static_cast<std::byte*>(reserved);
    if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0)
      mmap(program, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    uint64_t offset = 0;
    REQUIRE(driver.buffers.allocate(
                {.gpu_address = gpu(),
                 .size_bytes = bytes,
                 .flags = flags | kWritable,
                 .program_address = (flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0 ? gpu() : 0},
                handle, offset) == 0);
    if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) == 0) {
      const int file = driver.gpu.render_file.open(true);
      const int sharing = protection == PROT_NONE ? MAP_PRIVATE : MAP_SHARED;
      REQUIRE(mmap(program, bytes, protection, sharing | MAP_FIXED, file,
                   static_cast<off_t>(offset)) == program);
      close(file);
    }
  }
  ~Memory() {
    driver.buffers.unmap(handle, driver.gpu);
    CHECK(driver.buffers.free(handle) == 0);
    munmap(program, bytes);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  GpuAddress gpu() const { return reinterpret_cast<GpuAddress>(program); }
  bool use(size_t page) {
    if (!driver.host.close(gpu() + page * kPage, true)) return false;
    driver.host.device_wrote(gpu() + page * kPage, nullptr);
    return true;
  }
  void store(size_t at, int value) {
    *static_cast<volatile std::byte*>(program + at) = std::byte(value);
  }

  Driver& driver;
  const size_t bytes;
  std::byte* program = nullptr;
  uint64_t handle = 0;
};

TEST_CASE(
    "the host's stores are observed in VRAM that it may access, GTT and system memory of ROCT",
    "[watched_buffers]") {
  Driver driver;
  for (const uint32_t flags : {KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC,
                               KFD_IOC_ALLOC_MEM_FLAGS_GTT, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR}) {
    CAPTURE(flags);
    Memory memory(driver, flags);
    CHECK_FALSE(memory.use(0));
    REQUIRE(driver.buffers.map(memory.handle, driver.gpu) == 0);
    memory.store(100, 1);
    REQUIRE(memory.use(0));
    memory.store(200, 2);
    AddressSpace::Reader reader(driver.gpu.memory);
    reader.enter();
    const std::byte* seen = reader.translate(memory.gpu(), 1000, Access::read);
    REQUIRE(seen != nullptr);
    CHECK(seen != memory.program);
    CHECK(seen[100] == std::byte{1});
    CHECK(seen[200] == std::byte{2});
    reader.leave();
    REQUIRE(memory.use(0));
    const auto events = driver.taken();
    REQUIRE(events.size() == 2);
    CHECK(events[0].kind == Kind::opened);
    CHECK(events[0].address == memory.gpu() + 200);
    CHECK(events[1].kind == Kind::wrote);
    CHECK(events[1].address == memory.gpu() + 200);
    REQUIRE(driver.buffers.unmap(memory.handle, driver.gpu) == 0);
    CHECK_FALSE(memory.use(0));
    memory.store(300, 3);
    CHECK(driver.taken().empty());
  }
}

TEST_CASE("a buffer that is mapped again is watched from its next use", "[watched_buffers]") {
  Driver driver;
  Memory memory(driver, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
  REQUIRE(driver.buffers.map(memory.handle, driver.gpu) == 0);
  REQUIRE(memory.use(0));
  REQUIRE(driver.buffers.unmap(memory.handle, driver.gpu) == 0);
  memory.store(5, 1);
  REQUIRE(driver.buffers.map(memory.handle, driver.gpu) == 0);
  memory.store(6, 1);
  REQUIRE(memory.use(0));
  CHECK(driver.taken().empty());
  memory.store(7, 1);
  CHECK(driver.taken().size() == 1);
}

TEST_CASE("VRAM that the host may not access is not watched", "[watched_buffers]") {
  Driver driver;
  Memory memory(driver, KFD_IOC_ALLOC_MEM_FLAGS_VRAM, 4, PROT_NONE);
  REQUIRE(driver.buffers.map(memory.handle, driver.gpu) == 0);
  CHECK(memory.use(0));
  REQUIRE(driver.buffers.unmap(memory.handle, driver.gpu) == 0);
  CHECK_FALSE(memory.use(0));
  // Still inaccessible: no request has opened it.
  unsigned char present = 0;
  CHECK(mincore(memory.program, kPage, &present) == 0);
  const uptempo::test::Pipe pipe;
  CHECK(write(pipe.write_end(), memory.program, 1) == -1);
}

TEST_CASE("memory that the program has registered stays unchanged and is not watched",
          "[watched_buffers]") {
  Driver driver;
  std::vector<std::byte> memory(4 * kPage, std::byte{5});
  auto* const begin = reinterpret_cast<std::byte*>(
      (reinterpret_cast<uintptr_t>(memory.data()) + kPage - 1) & ~(kPage - 1));
  const auto registered = [&](GpuAddress gpu_address) {
    uint64_t handle = 0;
    uint64_t offset = 0;
    REQUIRE(driver.buffers.allocate({.gpu_address = gpu_address,
                                     .size_bytes = 2 * kPage,
                                     .flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | kWritable,
                                     .program_address = reinterpret_cast<uint64_t>(begin)},
                                    handle, offset) == 0);
    REQUIRE(driver.buffers.map(handle, driver.gpu) == 0);
    CHECK_FALSE(driver.host.close(gpu_address, true));
    AddressSpace::Reader reader(driver.gpu.memory);
    reader.enter();
    CHECK(reader.translate(gpu_address, 1, Access::read) == begin);
    reader.leave();
    CHECK(begin[0] == std::byte{5});
    CHECK(driver.buffers.unmap(handle, driver.gpu) == 0);
    CHECK(driver.buffers.free(handle) == 0);
  };
  SECTION("at a GPU address of its own") { registered(uint64_t{1} << 40); }
  SECTION("at its own address") { registered(reinterpret_cast<uint64_t>(begin)); }
}

TEST_CASE("watched memory that is registered again is no longer watched", "[watched_buffers]") {
  Driver driver;
  Memory memory(driver, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
  REQUIRE(driver.buffers.map(memory.handle, driver.gpu) == 0);
  REQUIRE(memory.use(1));
  REQUIRE(memory.use(3));
  uint64_t handle = 0;
  uint64_t offset = 0;
  REQUIRE(driver.buffers.allocate({.gpu_address = uint64_t{1} << 40,
                                   .size_bytes = 2 * kPage,
                                   .flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | kWritable,
                                   .program_address = memory.gpu()},
                                  handle, offset) == 0);
  CHECK_FALSE(memory.use(1));
  CHECK(memory.use(3));
  CHECK(driver.buffers.free(handle) == 0);
}

TEST_CASE("a ring that is mapped twice is not watched", "[watched_buffers]") {
  Driver driver;
  Memory memory(driver, KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM);
  REQUIRE(driver.buffers.map(memory.handle, driver.gpu) == 0);
  CHECK_FALSE(memory.use(0));
}

TEST_CASE("the ring of a queue and its pointers are not watched while they are in use",
          "[watched_buffers]") {
  Driver driver;
  Memory ring(driver, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR, 4);
  Memory pointers(driver, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR, 3);
  for (const Memory* memory : {&ring, &pointers})
    REQUIRE(driver.buffers.map(memory->handle, driver.gpu) == 0);
  REQUIRE(ring.use(0));
  REQUIRE(pointers.use(0));
  Queues queues({&driver.gpu}, driver.buffers, driver.kfd_file);
  kfd_ioctl_create_queue_args queue{};
  queue.queue_type = KFD_IOC_QUEUE_TYPE_SDMA;
  queue.queue_percentage = 100;
  queue.ring_base_address = ring.gpu();
  queue.ring_size = 4 * kPage;
  queue.read_pointer_address = pointers.gpu();
  queue.write_pointer_address = pointers.gpu() + kPage;
  REQUIRE(queues.create(driver.gpu, queue) == 0);
  for (size_t page = 0; page < 4; ++page) CHECK_FALSE(ring.use(page));
  CHECK_FALSE(pointers.use(0));
  CHECK_FALSE(pointers.use(1));
  CHECK(pointers.use(2));
  CHECK(queues.destroy(queue.queue_id) == 0);
}

// Linux gmc_v9_0.c, gmc_v9_0_get_coherence_flags(): uncached comes first, then extended coherence,
// which is UC up to GC 9.4.0, CC on 9.4.1 and 9.4.2 and, from the second revision on, on 9.4.3.
TEST_CASE("the flags of a request select the memory type of its buffer", "[buffer_kinds]") {
  using enum MemoryType;
  constexpr uint32_t kVram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM, kGtt = KFD_IOC_ALLOC_MEM_FLAGS_GTT,
                     kCoherent = KFD_IOC_ALLOC_MEM_FLAGS_COHERENT,
                     kUncached = KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED, kExtended = 1u << 24;
  struct Row {
    uint32_t flags;
    MemoryType gfx906, gfx90a, gfx942;
  };
  for (const Row& row : {Row{kVram, non_coherent, read_write, probed_read_write},
                         Row{kVram | kCoherent, uncached, coherent, probed_read_write},
                         Row{kVram | kUncached, uncached, uncached, uncached},
                         Row{kVram | kUncached | kCoherent, uncached, uncached, uncached},
                         Row{kVram | kUncached | kExtended, uncached, uncached, uncached},
                         Row{kVram | kExtended, uncached, coherent, coherent},
                         Row{kVram | kExtended | kCoherent, uncached, coherent, coherent},
                         Row{kGtt, non_coherent, non_coherent, uncached},
                         Row{kGtt | kUncached, uncached, uncached, uncached},
                         Row{kGtt | kExtended, uncached, uncached, uncached}}) {
    Driver driver;
    Memory memory(driver, row.flags);
    REQUIRE(driver.buffers.map(memory.handle, driver.gpu) == 0);
    AddressSpace::Reader reader(driver.gpu.memory);
    reader.enter();
    const Mapping* const mapping = reader.find(memory.gpu());
    REQUIRE(mapping != nullptr);
    CAPTURE(row.flags, memory_kind_name(mapping->kind));
    for (const auto& [target, type] : {std::pair{"gfx900", row.gfx906},
                                       {"gfx906", row.gfx906},
                                       {"gfx908", row.gfx90a},
                                       {"gfx90a", row.gfx90a},
                                       {"gfx942", row.gfx942}})
      CHECK(memory_type(target, mapping->kind) == type);
    reader.leave();
  }
}

}  // namespace
}  // namespace uptempo::vgpu::kfd
