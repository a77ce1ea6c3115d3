// A CPU agent without memory, nearest to the GPU. This binary replaces ROCr's function that reports
// the sizes of pools.
#include <dlfcn.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <uptempo/kernels/large_arguments.hpp>
#include <uptempo/uptempo.hpp>
#include <vector>

#include <uptempo/memory/pool.hpp>
#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

// Pools that report no memory.
std::vector<uint64_t>& empty_pools() {
  static std::vector<uint64_t> pools;
  return pools;
}

hsa_agent_t owner_of(const void* address) {
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  REQUIRE(hsa_amd_pointer_info(const_cast<void*>(address), &info, nullptr, nullptr, nullptr) ==
          HSA_STATUS_SUCCESS);
  REQUIRE(info.type == HSA_EXT_POINTER_TYPE_HSA);
  return info.agentOwner;
}

struct EmptyHostDevice : OnDevice {
  const Agent nearest{find_pool(gpu, MemoryKind::pinned).owner};
  const size_t hosts = detail::hosts_by_distance(gpu).size();

  EmptyHostDevice() {
    REQUIRE(hsa_amd_agent_iterate_memory_pools(
                nearest.handle(),
                [](hsa_amd_memory_pool_t pool, void*) {
                  empty_pools().push_back(pool.handle);
                  return HSA_STATUS_SUCCESS;
                },
                nullptr) == HSA_STATUS_SUCCESS);
  }
  ~EmptyHostDevice() { empty_pools().clear(); }
};

}  // namespace

// ROCr gives a CPU node without memory pools of size 0, in which allocation is allowed. The maximum
// allocation of a system pool is the sum of all nodes' memory (amd_memory_region.cpp, GetInfo).
extern "C" hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool,
                                                     hsa_amd_memory_pool_info_t attribute,
                                                     void* value) {
  static const auto real = reinterpret_cast<decltype(&hsa_amd_memory_pool_get_info)>(
      dlsym(RTLD_NEXT, "hsa_amd_memory_pool_get_info"));
  const hsa_status_t status = real(pool, attribute, value);
  if (attribute == HSA_AMD_MEMORY_POOL_INFO_SIZE &&
      std::ranges::find(empty_pools(), pool.handle) != empty_pools().end())
    *static_cast<size_t*>(value) = 0;
  return status;
}

TEST_CASE_METHOD(EmptyHostDevice, "host memory comes from a CPU agent without memory only if alone",
                 "[device][memory]") {
  const PinnedBuffer<uint32_t> pinned(gpu, 1000);
  const Agent owner(owner_of(pinned.data()));
  CHECK((owner == nearest) == (hosts == 1));
  const KernargBuffer kernargs(gpu, 256);
  CHECK(Agent(owner_of(kernargs.data())) == owner);
  const std::string placement = detail::host_placement(gpu, owner.handle());
  CAPTURE(placement);
  CHECK(contains(placement, "no memory"));
  const std::string text = Queue(gpu, {.packets = 64}).describe();
  CAPTURE(text);
  CHECK(contains(text,
                 "kernarg memory of node " + std::to_string(owner.properties().node) + ", the"));
}

TEST_CASE_METHOD(EmptyHostDevice,
                 "streams pass large arguments although the nearest CPU agent has no memory",
                 "[device][memory]") {
  using Rest = std::array<uint8_t, 65536 - 16>;
  const Program program{gpu, builtin_kernels::large_arguments()};
  const auto kernel = program.kernel<uint32_t*, uint64_t, Rest>("last_bytes_of_65536");
  Streams streams(gpu, {.queue = {.kernarg_slab_bytes = 64 << 10}});
  Stream stream(streams);
  const PinnedBuffer<uint32_t> out{gpu, 3};
  const auto arguments = std::make_unique<Rest>();
  arguments->back() = 99;
  stream.launch(kernel, Grid{1}, out.data(), uint64_t{0}, *arguments);
  stream.synchronize();
  CHECK(out[1] == 99);
}
