// The agent of a HIP device.
#include <hip/hip_runtime.h>
#include <hsa/hsa_ext_amd.h>

#include <cstdint>
#include <set>
#include <string>

#include <uptempo/hip/hip.hpp>
#include <uptempo/uptempo.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;

__global__ void store(uint32_t* word, uint32_t value) { *word = value; }

namespace {

uint64_t owner_of(const void* memory) {
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  REQUIRE(hsa_amd_pointer_info(memory, &info, nullptr, nullptr, nullptr) == HSA_STATUS_SUCCESS);
  return info.agentOwner.handle;
}

// HIP's memory on the device tells its agent, and other agents have no access to it.
void check_every_device() {
  const Runtime runtime;
  int count = 0;
  REQUIRE(hipGetDeviceCount(&count) == hipSuccess);
  std::set<uint64_t> agents;
  for (int device = 0; device < count; ++device) {
    CAPTURE(device);
    REQUIRE(hipSetDevice(device) == hipSuccess);
    uint32_t* word = nullptr;
    REQUIRE(hipMalloc(&word, sizeof *word) == hipSuccess);
    const Agent gpu = hip::agent(runtime);
    CHECK(gpu.handle().handle == owner_of(word));
    agents.insert(gpu.handle().handle);
    Queue queue{gpu};
    BatchSubmitter batch{queue};
    const uint32_t expected = 40 + static_cast<uint32_t>(device);
    batch.dispatch(hip::kernel(store), Grid{1}.by(1), word, expected);
    batch.submit().wait();
    uint32_t stored = 0;
    REQUIRE(hipMemcpy(&stored, word, sizeof stored, hipMemcpyDeviceToHost) == hipSuccess);
    CHECK(stored == expected);
    REQUIRE(hipFree(word) == hipSuccess);
  }
  CHECK(agents.size() == static_cast<size_t>(count));
}

}  // namespace

TEST_CASE("a HIP device is the agent at its PCI address") {
  hipDeviceProp_t properties{};
  REQUIRE(hipGetDeviceProperties(&properties, 0) == hipSuccess);
  const Runtime runtime;
  const Agent gpu = hip::agent(runtime);
  CHECK(gpu == hip::agent(runtime, 0));
  CHECK(gpu.is_gpu());
  CHECK((gpu.properties().bdf_id >> 8) == static_cast<uint32_t>(properties.pciBusID));
  CHECK(gpu.properties().compute_units == static_cast<uint32_t>(properties.multiProcessorCount));
}

TEST_CASE("a HIP device that does not exist is refused by its number") {
  const Runtime runtime;
  CHECK(test::error_of<Error>([&] {
          hip::agent(runtime, 7);
        }).starts_with("hipDeviceGetPCIBusId: HIP device 7"));
}

TEST_CASE("each HIP device is the agent of its partition", "[.partitions]") {
  check_every_device();
}

// HIP before 6.2 gives each partition the same address (hip_device_runtime.cpp).
TEST_CASE("partitions of one UUID are told apart, or all are named", "[.same_id]") {
#if HIP_VERSION >= 60200000
  check_every_device();
#else
  const Runtime runtime;
  for (int device = 0; device < 3; ++device) {
    const std::string error = test::error_of<Error>([&] { hip::agent(runtime, device); });
    CAPTURE(error);
    for (uint32_t node = 1; node <= 3; ++node)
      CHECK(test::contains(error, "(node " + std::to_string(node) + ") (0000:03:00." +
                                      std::to_string(node - 1) + ", GPU-"));
  }
#endif
}
