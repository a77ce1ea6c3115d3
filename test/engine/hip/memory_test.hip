// Memory of HIP in packets of Uptempo: what ROCr says it is, and data in both directions with the
// fences that engine/hip/README.md names.
#include <hip/hip_runtime.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <uptempo/hip/wait.hpp>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/memory/pool.hpp>
#include <uptempo/uptempo.hpp>
#include "test/support/catch.hpp"

using namespace uptempo;

namespace {

constexpr uint32_t kLength = 1024;
constexpr size_t kBytes = kLength * sizeof(uint32_t);

void ok(hipError_t status) {
  INFO(hipGetErrorString(status));
  REQUIRE(status == hipSuccess);
}

// One way to allocate memory with HIP, and what the README says about it.
struct Way {
  const char* name;
  MemoryKind kind;
  bool host_accesses;
  hipMemoryType hip_type;
  hipError_t (*allocate)(void** memory);
  hipError_t (*free)(void* memory);
};

hipError_t free_host(void* memory) { return hipHostFree(memory); }
hipError_t free_device(void* memory) { return hipFree(memory); }
// HIP 5.2 crashes in hipMallocAsync for the default stream.
hipStream_t stream_of_pool() {
  static const hipStream_t stream = [] {
    hipStream_t made = nullptr;
    return hipStreamCreate(&made) == hipSuccess ? made : nullptr;
  }();
  return stream;
}
hipError_t allocate_async(void** memory) {
  const hipError_t status = hipMallocAsync(memory, kBytes, stream_of_pool());
  return status == hipSuccess ? hipStreamSynchronize(stream_of_pool()) : status;
}
hipError_t free_async(void* memory) {
  const hipError_t status = hipFreeAsync(memory, stream_of_pool());
  return status == hipSuccess ? hipStreamSynchronize(stream_of_pool()) : status;
}

const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      {"hipMalloc", MemoryKind::device, false, hipMemoryTypeDevice,
       [](void** memory) { return hipMalloc(memory, kBytes); }, free_device},
      {"hipMallocAsync", MemoryKind::device, false, hipMemoryTypeDevice, allocate_async,
       free_async},
      {"hipHostMalloc", MemoryKind::pinned, true, hipMemoryTypeHost,
       [](void** memory) { return hipHostMalloc(memory, kBytes, hipHostMallocDefault); },
       free_host},
      {"hipHostMalloc, coherent", MemoryKind::pinned, true, hipMemoryTypeHost,
       [](void** memory) { return hipHostMalloc(memory, kBytes, hipHostMallocCoherent); },
       free_host},
      {"hipHostMalloc, non-coherent", MemoryKind::pinned_coarse, true, hipMemoryTypeHost,
       [](void** memory) { return hipHostMalloc(memory, kBytes, hipHostMallocNonCoherent); },
       free_host},
      {"hipMallocManaged", MemoryKind::pinned_coarse, true, hipMemoryTypeHost,
       [](void** memory) { return hipMallocManaged(memory, kBytes, hipMemAttachGlobal); },
       free_device},
  };
  return all;
}

hipMemoryType type_of(const hipPointerAttribute_t& attributes) {
#if HIP_VERSION >= 60000000
  // Managed memory has a type of its own.
  return attributes.type == hipMemoryTypeManaged ? hipMemoryTypeHost : attributes.type;
#else
  // HIP 5.2 has no type of its own for managed memory, later releases do.
  return attributes.isManaged != 0 ? hipMemoryTypeHost : attributes.memoryType;
#endif
}

class Memory {
 public:
  explicit Memory(const Way& way) : way_(way) { ok(way.allocate(&data_)); }
  ~Memory() { (void)way_.free(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  uint32_t* data() const { return static_cast<uint32_t*>(data_); }

 private:
  const Way& way_;
  void* data_ = nullptr;
};

struct World {
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, builtin_kernels::basics()};
  Kernel<uint32_t*, uint32_t> link = program.kernel<uint32_t*, uint32_t>("chain_increment");
  Kernel<uint32_t*, const uint32_t*> copy = program.kernel<uint32_t*, const uint32_t*>("copy");
  Kernel<uint32_t*> count = program.kernel<uint32_t*>("count_work_items");
  Grid grid = Grid{kLength}.by(64);
};

}  // namespace

TEST_CASE("ROCr and HIP say what the table says") {
  World world;
  for (const Way& way : ways()) {
    INFO(way.name);
    const Memory memory(way);
    hsa_amd_pointer_info_t info{};
    info.size = sizeof info;
    REQUIRE(hsa_amd_pointer_info(memory.data(), &info, nullptr, nullptr, nullptr) ==
            HSA_STATUS_SUCCESS);
    const MemoryPool pool = find_pool(world.gpu, way.kind);
    CHECK(info.type == HSA_EXT_POINTER_TYPE_HSA);
    CHECK((info.agentOwner.handle == world.gpu.handle().handle) ==
          (way.kind == MemoryKind::device));
    CHECK(info.agentOwner.handle == pool.owner.handle);
    const uint32_t grain = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED |
                           HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;
    // HIP 5.2 makes managed memory coarse-grained on a GPU without shared virtual memory. Other
    // versions may not; what coarse-grained memory needs suffices for both.
    const bool may_be_finer = way.name == std::string("hipMallocManaged");
    if (may_be_finer && (info.global_flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) != 0)
      continue;
    CHECK((info.global_flags & grain) == (way.kind == MemoryKind::pinned
                                              ? HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED
                                              : HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED));
    hipPointerAttribute_t attributes{};
    ok(hipPointerGetAttributes(&attributes, memory.data()));
    CHECK(type_of(attributes) == way.hip_type);
    CHECK(attributes.devicePointer == memory.data());
  }
}

TEST_CASE("batches read and write each kind of HIP's memory") {
  World world;
  Queue queue{world.gpu};
  for (const Way& way : ways()) {
    INFO(way.name);
    const Memory memory(way), result({ways()[0]});
    std::vector<uint32_t> host(kLength), found(kLength);
    for (uint32_t round = 0; round < 4; ++round) {
      for (uint32_t i = 0; i < kLength; ++i) host[i] = i * 7 + round;
      if (way.host_accesses) {
        std::ranges::copy(host, memory.data());
      } else {
        ok(hipMemcpy(memory.data(), host.data(), kBytes, hipMemcpyHostToDevice));
      }
      BatchSubmitter batch{queue};
      batch.dispatch(world.link, world.grid, memory.data(), 5)
          .reads(memory.data(), kLength)
          .writes(memory.data(), kLength);
      batch.dispatch(world.copy, world.grid, result.data(), memory.data())
          .reads(memory.data(), kLength)
          .writes(result.data(), kLength);
      batch.submit().wait();
      for (uint32_t& word : host) word = word * 3 + 5;
      ok(hipMemcpy(found.data(), result.data(), kBytes, hipMemcpyDeviceToHost));
      CHECK(found == host);
      if (way.host_accesses) CHECK(std::equal(host.begin(), host.end(), memory.data()));
    }
  }
}

TEST_CASE("a stream with work sees the host's stores, after host_wrote() where the table says so",
          "[polls]") {
  World world;
  Streams streams{world.gpu};
  Stream stream{streams};
  const Memory tally(ways()[2]);
  const std::atomic_ref<uint32_t> counter(*tally.data());
  for (const Way& way : ways()) {
    if (!way.host_accesses) continue;
    INFO(way.name);
    const Memory memory(way), results({ways()[0]}), later({ways()[0]});
    for (uint32_t round = 0; round < 4; ++round) {
      for (uint32_t i = 0; i < kLength; ++i) memory.data()[i] = i + round;
      stream.host_wrote();
      stream.launch(world.copy, world.grid, results.data(), memory.data());
      // The host learns from a counter that the kernel has read: that is no wait for the stream.
      counter = 0;
      stream.launch(world.count, Grid{64}.by(64), tally.data());
      while (counter.load(std::memory_order_acquire) != 64) std::this_thread::yield();
      for (uint32_t i = 0; i < kLength; ++i) memory.data()[i] = i * 9 + round;
      if (way.kind == MemoryKind::pinned_coarse) stream.host_wrote();
      stream.launch(world.copy, world.grid, later.data(), memory.data());
      stream.synchronize();
      std::vector<uint32_t> found(kLength), expected(kLength);
      for (uint32_t i = 0; i < kLength; ++i) expected[i] = i * 9 + round;
      ok(hipMemcpy(found.data(), later.data(), kBytes, hipMemcpyDeviceToHost));
      CHECK(found == expected);
    }
  }
}
