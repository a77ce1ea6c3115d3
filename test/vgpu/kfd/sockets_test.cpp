// A machine with two sockets, the GPU at the second one, as ROCT and libnuma see it.
#include <dlfcn.h>
#include <unistd.h>

#include "hsakmt_fixture.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

constexpr HSAuint32 kFar = 0, kNear = 1, kGpu = 2;

TEST_CASE("two nodes are sockets with a share of the host, the third is the GPU", "[sockets]") {
  const Thunk thunk;
  REQUIRE(value(thunk.system().NumNodes) == 3);
  HSAuint32 cores = 0;
  HSAuint64 bytes = 0;
  for (const HSAuint32 node : {kFar, kNear}) {
    const HsaNodeProperties properties = properties_of(node);
    CHECK(properties.NumFComputeCores == 0);
    CHECK(properties.NumCPUCores > 0);
    cores += properties.NumCPUCores;
    HsaMemoryProperties bank{};
    REQUIRE(hsaKmtGetNodeMemoryProperties(node, 1, &bank) == HSAKMT_STATUS_SUCCESS);
    CHECK(bank.HeapType == HSA_HEAPTYPE_SYSTEM);
    bytes += value(bank.SizeInBytes);
  }
  const auto processors = static_cast<HSAuint32>(sysconf(_SC_NPROCESSORS_ONLN));
  CHECK(cores == std::max(processors, 2u));
  CHECK(bytes <= static_cast<HSAuint64>(sysconf(_SC_PHYS_PAGES)) * kPage);
  const HsaNodeProperties gpu = properties_of(kGpu);
  CHECK(gpu.NumFComputeCores > 0);
}

TEST_CASE("the GPU is linked to the second socket, and through it to the first", "[sockets]") {
  const Thunk thunk;
  const auto far = links_of(kFar), near = links_of(kNear), gpu = links_of(kGpu);
  REQUIRE(far.size() == 2);
  REQUIRE(near.size() == 2);
  REQUIRE(gpu.size() == 2);
  CHECK(far.at(kNear).IoLinkType == HSA_IOLINKTYPE_HYPERTRANSPORT);
  CHECK(far.at(kNear).Weight == 32);
  CHECK(near.at(kFar).Weight == 32);
  CHECK(near.at(kGpu).IoLinkType == HSA_IOLINKTYPE_PCIEXPRESS);
  CHECK(near.at(kGpu).Weight == 20);
  CHECK(gpu.at(kNear).Weight == 20);
  CHECK(gpu.at(kNear).MaximumBandwidth > 0);
  CHECK(far.at(kGpu).Weight == 52);
  CHECK(gpu.at(kFar).Weight == 52);
}

TEST_CASE("ROCT allocates memory of either socket", "[sockets]") {
  const Thunk thunk;
  for (const HSAuint32 node : {kFar, kNear}) {
    void* memory = nullptr;
    REQUIRE(hsaKmtAllocMemory(node, kPage, host_memory(), &memory) == HSAKMT_STATUS_SUCCESS);
    HsaPointerInfo info{};
    REQUIRE(hsaKmtQueryPointerInfo(memory, &info) == HSAKMT_STATUS_SUCCESS);
    CHECK(info.Node == node);
    *static_cast<volatile int*>(memory) = 1;
    CHECK(hsaKmtFreeMemory(memory, kPage) == HSAKMT_STATUS_SUCCESS);
  }
}

TEST_CASE("libnuma, which ROCT uses, finds both nodes", "[sockets]") {
  void* const libnuma = dlopen("libnuma.so.1", RTLD_LAZY);
  REQUIRE(libnuma != nullptr);
  const auto function = [&](const char* name) {
    void* const found = dlsym(libnuma, name);
    REQUIRE(found != nullptr);
    return found;
  };
  CHECK(reinterpret_cast<int (*)()>(function("numa_available"))() == 0);
  CHECK(reinterpret_cast<int (*)()>(function("numa_max_node"))() == 1);
  CHECK(reinterpret_cast<int (*)(int, int)>(function("numa_distance"))(0, 1) == 32);
  long long free_bytes = 0;
  CHECK(reinterpret_cast<long long (*)(int, long long*)>(function("numa_node_size64"))(
            1, &free_bytes) > 0);
}

}  // namespace
}  // namespace uptempo::vgpu
