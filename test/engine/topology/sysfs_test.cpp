// KFD's topology in sysfs, read from folders that the test writes.
#include <filesystem>
#include <fstream>
#include <string>

#include <uptempo/runtime/error.hpp>
#include <uptempo/topology/topology.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/temporary_directory.hpp"

using namespace uptempo;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;

// A host in node 0, and GPUs as a test adds them.
class Sysfs {
 public:
  Sysfs() {
    write("topology/generation_id", "3\n");
    write("topology/nodes/0/gpu_id", "0\n");
    write("topology/nodes/0/properties", "cpu_cores_count 8\nsimd_count 0\n");
    std::filesystem::create_directory(directory_.file("dri"));
  }

  void add_gpu(int node, int render_minor) {
    const std::string folder = "topology/nodes/" + std::to_string(node);
    write(folder + "/gpu_id", "4098\n");
    write(folder + "/name", "aldebaran\n");
    // Lines as of Linux 6.1. The capability has doorbell type 2 in bits 12 and 13.
    write(folder + "/properties",
          "cpu_cores_count 0\nsimd_count 416\nmem_banks_count 3\nlds_size_in_kb 64\n"
          "gfx_target_version 90010\nvendor_id 4098\ndevice_id 29711\nlocation_id 768\n"
          "drm_render_minor " +
              std::to_string(render_minor) +
              "\nnum_sdma_engines 2\nnum_sdma_xgmi_engines 3\nnum_sdma_queues_per_engine 8\n"
              "num_cp_queues 24\ncapability 2221942440\nunique_id 17153818362532396289\n");
    write(folder + "/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 68702699520\n");
    write(folder + "/mem_banks/1/properties", "heap_type 1\nsize_in_bytes 1024\n");
    write(folder + "/mem_banks/2/properties", "heap_type 0\nsize_in_bytes 7\n");
    write("dri/renderD" + std::to_string(render_minor), "");
  }

  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path file = directory_.file(name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void remove(const std::string& name) { std::filesystem::remove_all(directory_.file(name)); }

  std::vector<GpuTopology> read() const {
    return detail::read_topology(directory_.file("topology"), directory_.file("dri"));
  }

 private:
  support::TemporaryDirectory directory_;
};

TEST_CASE("a GPU has the properties of its node and the memory of its banks", "[topology]") {
  Sysfs sysfs;
  sysfs.add_gpu(1, 128);
  const std::vector<GpuTopology> gpus = sysfs.read();
  REQUIRE(gpus.size() == 1);
  const GpuTopology& gpu = gpus[0];
  CHECK(gpu.node == 1);
  CHECK(gpu.device_id == 29711);
  CHECK(gpu.bdf_id == 768);
  CHECK(gpu.unique_id == 17153818362532396289u);
  CHECK(gpu.name == "aldebaran");
  CHECK(gpu.gfx_version == 90010);
  CHECK(gpu.sdma_engines == 2);
  CHECK(gpu.sdma_xgmi_engines == 3);
  CHECK(gpu.sdma_queues_per_engine == 8);
  CHECK(gpu.compute_queues == 24);
  CHECK(gpu.doorbell == DoorbellType::version_2);
  CHECK(gpu.lds_kib == 64);
  CHECK(gpu.simds == 416);
  CHECK(gpu.local_memory_bytes == 68702700544);
  CHECK(gpu.host_visible_memory);
}

TEST_CASE("a property that the driver does not report is 0", "[topology]") {
  Sysfs sysfs;
  sysfs.add_gpu(1, 128);
  sysfs.write("topology/nodes/1/properties", "simd_count 256\ndrm_render_minor 128\n");
  const std::vector<GpuTopology> gpus = sysfs.read();
  REQUIRE(gpus.size() == 1);
  CHECK(gpus[0].simds == 256);
  CHECK(gpus[0].sdma_engines == 0);
  CHECK(gpus[0].unique_id == 0);
  CHECK(gpus[0].local_memory_bytes == 0);
}

TEST_CASE("memory that only the GPU reaches is not host-visible", "[topology]") {
  Sysfs sysfs;
  sysfs.add_gpu(1, 128);
  for (const char* bank : {"0", "1"}) {
    sysfs.write(std::string("topology/nodes/1/mem_banks/") + bank + "/properties",
                "heap_type 2\nsize_in_bytes 4096\n");
  }
  const std::vector<GpuTopology> gpus = sysfs.read();
  REQUIRE(gpus.size() == 1);
  CHECK(gpus[0].local_memory_bytes == 8192);
  CHECK_FALSE(gpus[0].host_visible_memory);
}

TEST_CASE("a GPU without a render node is left out, and later nodes count without it",
          "[topology]") {
  Sysfs sysfs;
  sysfs.add_gpu(1, 128);
  sysfs.add_gpu(2, 129);
  sysfs.remove("dri/renderD128");
  const std::vector<GpuTopology> gpus = sysfs.read();
  REQUIRE(gpus.size() == 1);
  CHECK(gpus[0].node == 1);
}

TEST_CASE("an unreadable file is named", "[topology]") {
  Sysfs sysfs;
  sysfs.add_gpu(1, 128);
  SECTION("no driver") {
    sysfs.remove("topology");
    const std::string error = error_of<Error>([&] { sysfs.read(); });
    CHECK(contains(error, "topology/generation_id: No such file"));
    CHECK(contains(error, "uptempo-vgpu"));
  }
  SECTION("no memory bank") {
    sysfs.remove("topology/nodes/1/mem_banks/2");
    CHECK(contains(error_of<Error>([&] { sysfs.read(); }), "mem_banks/2/properties: No such file"));
  }
  SECTION("no node") {
    sysfs.remove("topology/nodes");
    CHECK(contains(error_of<Error>([&] { sysfs.read(); }), "nodes/0/gpu_id: No such file"));
  }
  SECTION("a gpu_id that is no number") {
    sysfs.write("topology/nodes/1/gpu_id", "x\n");
    CHECK(contains(error_of<Error>([&] { sysfs.read(); }), "nodes/1/gpu_id: 'x"));
  }
}

}  // namespace
