// Two threads write device memory without order. ThreadSanitizer must report it: the suppressions
// for the preloaded library must not hide races of a program that uses it.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstdint>
#include <cstdlib>
#include <thread>

#include "test/support/hsa_end.hpp"

namespace {

void require(hsa_status_t status) {
  if (status != HSA_STATUS_SUCCESS && status != HSA_STATUS_INFO_BREAK) std::abort();
}

hsa_status_t choose_gpu(hsa_agent_t agent, void* chosen) {
  hsa_device_type_t type{};
  require(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
  if (type != HSA_DEVICE_TYPE_GPU) return HSA_STATUS_SUCCESS;
  *static_cast<hsa_agent_t*>(chosen) = agent;
  return HSA_STATUS_INFO_BREAK;
}

hsa_status_t choose_pool(hsa_amd_memory_pool_t pool, void* chosen) {
  bool allocates = false;
  require(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED,
                                       &allocates));
  if (!allocates) return HSA_STATUS_SUCCESS;
  *static_cast<hsa_amd_memory_pool_t*>(chosen) = pool;
  return HSA_STATUS_INFO_BREAK;
}

void count_up(volatile uint32_t* word) { *word = *word + 1; }

}  // namespace

int main() {
  require(hsa_init());
  hsa_agent_t gpu{};
  require(hsa_iterate_agents(choose_gpu, &gpu));
  hsa_amd_memory_pool_t pool{};
  require(hsa_amd_agent_iterate_memory_pools(gpu, choose_pool, &pool));
  void* memory = nullptr;
  require(hsa_amd_memory_pool_allocate(pool, 4096, 0, &memory));
  auto* const word = static_cast<volatile uint32_t*>(memory);
  std::thread other(count_up, word);
  count_up(word);
  other.join();
  require(hsa_amd_memory_pool_free(memory));
  return uptempo::test::end_hsa() == HSA_STATUS_SUCCESS ? 0 : 1;
}
