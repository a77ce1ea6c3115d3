// The agent of a HIP device.
#include <hip/hip_runtime.h>

#include "engine/hip/device.hpp"
#include "engine/runtime/error.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;

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
