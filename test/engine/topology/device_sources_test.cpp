// hsakmt and sysfs describe the same GPUs. The test runs where the topology uses hsakmt.
#include "engine/topology/sources.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;

namespace {

TEST_CASE("hsakmt and sysfs agree on every GPU", "[topology]") {
  const std::vector<GpuTopology> from_hsakmt = detail::hsakmt_topology();
  const std::vector<GpuTopology> from_sysfs = detail::sysfs_topology();
  REQUIRE(from_hsakmt.size() == from_sysfs.size());
  REQUIRE(!from_sysfs.empty());
  for (size_t i = 0; i < from_sysfs.size(); ++i) {
    const GpuTopology& kmt = from_hsakmt[i];
    const GpuTopology& sysfs = from_sysfs[i];
    CHECK(kmt.node == sysfs.node);
    CHECK(kmt.device_id == sysfs.device_id);
    CHECK(kmt.bdf_id == sysfs.bdf_id);
    CHECK(kmt.unique_id == sysfs.unique_id);
    CHECK(kmt.gfx_version == sysfs.gfx_version);
    CHECK(kmt.sdma_engines == sysfs.sdma_engines);
    CHECK(kmt.sdma_xgmi_engines == sysfs.sdma_xgmi_engines);
    CHECK(kmt.sdma_queues_per_engine == sysfs.sdma_queues_per_engine);
    CHECK(kmt.compute_queues == sysfs.compute_queues);
    CHECK(kmt.doorbell == sysfs.doorbell);
    CHECK(kmt.lds_kib == sysfs.lds_kib);
    CHECK(kmt.simds == sysfs.simds);
    CHECK(kmt.local_memory_bytes == sysfs.local_memory_bytes);
    CHECK(kmt.host_visible_memory == sysfs.host_visible_memory);
    // hsakmt knows the board's name, the driver the chip's.
    CHECK(!kmt.name.empty());
    CHECK(!sysfs.name.empty());
  }
}

}  // namespace
