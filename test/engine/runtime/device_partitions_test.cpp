// Partitions of one card, as an MI300 has them in CPX mode: agents with nodes of their own at one
// place on the PCI bus, with one UUID or one each (uptempo-vgpu --partitions).
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <uptempo/topology/topology.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

using uptempo::test::contains;
using uptempo::test::download;
using uptempo::test::error_of;
using uptempo::test::OnDevice;

constexpr uint32_t kPartitions = 3;

bool have_one_uuid() {
  const char* const ids = std::getenv("UPTEMPO_VGPU_PARTITIONS");
  REQUIRE(ids != nullptr);
  return std::string(ids) == "same-id";
}

}  // namespace

TEST_CASE_METHOD(OnDevice, "each partition is selected by its index and its address",
                 "[partitions]") {
  REQUIRE(runtime.gpus().size() == kPartitions);
  for (uint32_t i = 0; i < kPartitions; ++i) {
    CAPTURE(i);
    const std::string number = std::to_string(i);
    // The nodes follow the host's.
    CHECK(runtime.gpu(number).properties().node == 1 + i);
    CHECK(runtime.gpu("0000:03:00." + number).properties().node == 1 + i);
    CHECK(runtime.gpu("03:00." + number).properties().node == 1 + i);
  }
}

TEST_CASE_METHOD(OnDevice, "a UUID selects the only partition that has it, else all are named",
                 "[partitions]") {
  REQUIRE(runtime.gpus().size() == kPartitions);
  const bool is_one = have_one_uuid();
  for (const Agent& agent : runtime.gpus()) {
    const std::string& uuid = agent.properties().uuid;
    REQUIRE(uuid.starts_with("GPU-"));
    if (!is_one) {
      CHECK(runtime.gpu(uuid) == agent);
      continue;
    }
    const std::string error = error_of<Error>([&] { runtime.gpu(uuid); });
    CAPTURE(error);
    for (uint32_t i = 0; i < kPartitions; ++i) {
      const std::string number = std::to_string(i);
      CHECK(contains(error, "GPU " + number + " (" + runtime.gpu().name() + ", " + uuid +
                                ", 0000:03:00." + number + ")"));
    }
  }
}

TEST_CASE_METHOD(OnDevice, "the driver's topology describes each partition", "[partitions]") {
  std::set<uint64_t> ids;
  std::set<uint32_t> places;
  const std::vector<GpuTopology> all = read_gpu_topology();
  for (const Agent& agent : runtime.gpus()) {
    const auto found = std::ranges::find(all, agent.properties().node, &GpuTopology::node);
    REQUIRE(found != all.end());
    const GpuTopology& topology = *found;
    CHECK(topology.bdf_id == agent.properties().bdf_id);
    CHECK(topology.unique_id == std::stoull(agent.properties().uuid.substr(4), nullptr, 16));
    ids.insert(topology.unique_id);
    places.insert(topology.bdf_id);
  }
  CHECK(ids.size() == (have_one_uuid() ? 1 : kPartitions));
  CHECK(places.size() == kPartitions);
}

// The partitions have no access to each other's memory.
TEST_CASE_METHOD(OnDevice, "kernels run on the partition that was selected", "[partitions]") {
  for (uint32_t i = 0; i < kPartitions; ++i) {
    const Agent partition = runtime.gpu("0000:03:00." + std::to_string(i));
    const Program program{partition, builtin_kernels::basics()};
    const DeviceBuffer<uint32_t> words{partition, 256};
    Queue queue{partition};
    BatchSubmitter batch{queue};
    batch.dispatch(program.kernel<uint32_t*, uint32_t>("fill"), Grid{256}.by(64), words.data(),
                   40 + i);
    batch.submit().wait();
    Copier copier{partition};
    CHECK(download(copier, words) == std::vector<uint32_t>(256, 40 + i));
  }
}
