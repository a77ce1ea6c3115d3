// Effects of --inject that no call reports, over the unmodified runtime: a packet without times, a
// lost flush, and a copy that moves nothing. The rules are in CMakeLists.txt, in this order.
#include <dlfcn.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <bit>
#include <cstdint>

#include <uptempo/vgpu/query.h>
#include "test/support/catch.hpp"
#include "test/support/hsa_end.hpp"

namespace {

enum Rule : uint32_t { kUntimed, kHdpLost, kCopyLost };

uint64_t injected(Rule rule) {
  const auto query =
      reinterpret_cast<uptempo_vgpu_injected_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_injected"));
  REQUIRE(query != nullptr);
  uptempo_vgpu_injection_counts counts;
  REQUIRE(query(rule, &counts) == 0);
  return counts.injected;
}

struct Runtime {
  Runtime() {
    REQUIRE(hsa_init() == HSA_STATUS_SUCCESS);
    hsa_iterate_agents(
        [](hsa_agent_t agent, void* out) {
          hsa_device_type_t type{};
          hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
          if (type == HSA_DEVICE_TYPE_GPU) *static_cast<hsa_agent_t*>(out) = agent;
          return HSA_STATUS_SUCCESS;
        },
        &gpu);
    REQUIRE(gpu.handle != 0);
    hsa_amd_agent_iterate_memory_pools(
        gpu,
        [](hsa_amd_memory_pool_t found, void* out) {
          bool allows = false;
          uint32_t flags = 0;
          hsa_amd_memory_pool_get_info(found, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED,
                                       &allows);
          hsa_amd_memory_pool_get_info(found, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
          if (allows && (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) != 0)
            *static_cast<hsa_amd_memory_pool_t*>(out) = found;
          return HSA_STATUS_SUCCESS;
        },
        &pool);
    REQUIRE(pool.handle != 0);
  }
  ~Runtime() { CHECK(uptempo::test::end_hsa() == HSA_STATUS_SUCCESS); }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Device memory, which the host reaches through the BAR.
  volatile uint32_t* allocate() const {
    void* memory = nullptr;
    REQUIRE(hsa_amd_memory_pool_allocate(pool, 4096, 0, &memory) == HSA_STATUS_SUCCESS);
    return static_cast<volatile uint32_t*>(memory);
  }

  hsa_agent_t gpu{};
  hsa_amd_memory_pool_t pool{};
};

void wait(hsa_signal_t signal) {
  REQUIRE(hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                    HSA_WAIT_STATE_BLOCKED) == 0);
}

}  // namespace

TEST_CASE("a packet of a queue with profiling completes without times") {
  const Runtime runtime;
  hsa_queue_t* queue = nullptr;
  REQUIRE(hsa_queue_create(runtime.gpu, 64, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, 0, 0,
                           &queue) == HSA_STATUS_SUCCESS);
  REQUIRE(hsa_amd_profiling_set_profiler_enabled(queue, 1) == HSA_STATUS_SUCCESS);
  hsa_signal_t done;
  REQUIRE(hsa_signal_create(1, 0, nullptr, &done) == HSA_STATUS_SUCCESS);
  const uint64_t before = injected(kUntimed);
  auto* const packet = static_cast<hsa_barrier_and_packet_t*>(queue->base_address);
  for (hsa_signal_t& dependency : packet->dep_signal) dependency = {0};
  packet->completion_signal = done;
  __atomic_store_n(&packet->header,
                   static_cast<uint16_t>(HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE),
                   __ATOMIC_RELEASE);
  hsa_queue_store_write_index_screlease(queue, 1);
  hsa_signal_store_screlease(queue->doorbell_signal, 0);
  wait(done);
  const auto* const signal = reinterpret_cast<const amd_signal_t*>(done.handle);
  CHECK(signal->start_ts == 0);
  CHECK(signal->end_ts == 0);
  CHECK(injected(kUntimed) == before + 1);
  hsa_signal_destroy(done);
  hsa_queue_destroy(queue);
}

TEST_CASE("flushes and read-backs are lost, and the host sees its own stores") {
  const Runtime runtime;
  hsa_amd_hdp_flush_t registers{};
  constexpr int attribute = HSA_AMD_AGENT_INFO_HDP_FLUSH;  // beyond the enumeration of the call
  REQUIRE(hsa_agent_get_info(runtime.gpu, std::bit_cast<hsa_agent_info_t>(attribute), &registers) ==
          HSA_STATUS_SUCCESS);
  volatile uint32_t* const memory = runtime.allocate();
  const uint64_t before = injected(kHdpLost);
  memory[0] = 7;
  *static_cast<volatile uint32_t*>(registers.HDP_MEM_FLUSH_CNTL) = 1;
  CHECK(injected(kHdpLost) == before + 1);
  memory[0] = 8;
  CHECK(memory[0] == 8);
  CHECK(injected(kHdpLost) == before + 2);
  hsa_amd_memory_pool_free(const_cast<uint32_t*>(memory));
}

TEST_CASE("a copy completes and moves nothing") {
  const Runtime runtime;
  alignas(64) uint32_t source[16] = {9};
  void* locked = nullptr;
  hsa_agent_t gpu = runtime.gpu;
  REQUIRE(hsa_amd_memory_lock(source, sizeof source, &gpu, 1, &locked) == HSA_STATUS_SUCCESS);
  volatile uint32_t* const memory = runtime.allocate();
  memory[0] = 5;
  hsa_signal_t done;
  REQUIRE(hsa_signal_create(1, 0, nullptr, &done) == HSA_STATUS_SUCCESS);
  const uint64_t before = injected(kCopyLost);
  REQUIRE(hsa_amd_memory_async_copy(const_cast<uint32_t*>(memory), gpu, locked, gpu, sizeof source,
                                    0, nullptr, done) == HSA_STATUS_SUCCESS);
  wait(done);
  CHECK(injected(kCopyLost) > before);
  CHECK(memory[0] == 5);
  hsa_signal_destroy(done);
  hsa_amd_memory_pool_free(const_cast<uint32_t*>(memory));
  hsa_amd_memory_unlock(source);
}
