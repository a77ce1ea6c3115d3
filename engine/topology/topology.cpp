// KFD's topology in sysfs. Source: Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c. The numbering
// of nodes follows ROCT, libhsakmt/src/topology.c, topology_sysfs_check_node_supported.
#include <uptempo/topology/topology.hpp>

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include <uptempo/runtime/driver/driver_file.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

using detail::contents_of;

[[noreturn]] void unreadable(const std::string& file, std::string why) {
  throw Error({.code = ErrorCode::unavailable,
               .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
               .call = "read_gpu_topology",
               .asked = "the driver's topology",
               .found = fmt::format("{}: {}", file, std::move(why)),
               .remedy =
                   "check that the amdgpu driver runs and /dev/kfd is accessible, or run under "
                   "uptempo-vgpu"});
}

std::string required_contents(const std::string& file) {
  std::optional<std::string> text = contents_of(file);
  if (!text) unreadable(file, std::generic_category().message(errno));
  return *std::move(text);
}

uint64_t number_in(const std::string& file, std::string_view text) {
  uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{})
    unreadable(file, fmt::format("'{}' is not a number", text));
  return number;
}

// A file of lines "name value". A driver that is too old to report a property leaves it 0.
class Properties {
 public:
  explicit Properties(const std::string& file) : lines_('\n' + required_contents(file)) {}

  // Some values are lists or negative; none of them is used here.
  uint64_t value(std::string_view name) const {
    const std::string key = fmt::format("\n{} ", name);
    const size_t at = lines_.find(key);
    uint64_t value = 0;
    if (at != std::string::npos)
      std::from_chars(lines_.data() + at + key.size(), lines_.data() + lines_.size(), value);
    return value;
  }
  uint32_t value32(std::string_view name) const { return static_cast<uint32_t>(value(name)); }

 private:
  std::string lines_;
};

GpuTopology describe(const std::string& folder, uint32_t node, const Properties& properties) {
  const std::string name = required_contents(folder + "/name");
  GpuTopology gpu{.node = node,
                  .device_id = properties.value32("device_id"),
                  .bdf_id = properties.value32("location_id"),
                  .unique_id = properties.value("unique_id"),
                  .name = name.substr(0, name.find('\n')),
                  .gfx_version = properties.value32("gfx_target_version"),
                  .sdma_engines = properties.value32("num_sdma_engines"),
                  .sdma_xgmi_engines = properties.value32("num_sdma_xgmi_engines"),
                  .sdma_queues_per_engine = properties.value32("num_sdma_queues_per_engine"),
                  .compute_queues = properties.value32("num_cp_queues"),
                  // HSA_CAP_DOORBELL_TYPE_TOTALBITS: bits 12 and 13.
                  .doorbell = static_cast<DoorbellType>(properties.value("capability") >> 12 & 3),
                  .lds_kib = properties.value32("lds_size_in_kb"),
                  .simds = properties.value32("simd_count")};
  const uint64_t banks = properties.value("mem_banks_count");
  for (uint64_t i = 0; i < banks; ++i) {
    const Properties bank(fmt::format("{}/mem_banks/{}/properties", folder, i));
    constexpr uint64_t kPublicFrameBuffer = 1;
    constexpr uint64_t kPrivateFrameBuffer = 2;
    const uint64_t heap = bank.value("heap_type");
    if (heap != kPublicFrameBuffer && heap != kPrivateFrameBuffer) continue;
    gpu.local_memory_bytes += bank.value("size_in_bytes");
    gpu.host_visible_memory = heap == kPublicFrameBuffer;
  }
  return gpu;
}

std::vector<GpuTopology> gpus_in(const std::string& topology, const std::string& render_nodes) {
  std::vector<GpuTopology> gpus;
  uint32_t node = 0;
  for (uint32_t number = 0;; ++number) {
    const std::string folder = fmt::format("{}/nodes/{}", topology, number);
    const std::string id_file = folder + "/gpu_id";
    const std::optional<std::string> id = contents_of(id_file);
    if (!id) {
      if (errno == ENOENT && number > 0) return gpus;  // past the last node
      if (errno == EPERM) continue;                    // a control group denies the device
      unreadable(id_file, std::generic_category().message(errno));
    }
    if (number_in(id_file, *id) != 0) {
      const Properties properties(folder + "/properties");
      const std::string render_node =
          fmt::format("{}/renderD{}", render_nodes, properties.value("drm_render_minor"));
      const detail::Descriptor device(render_node, O_RDWR);
      if (device.get() < 0) {
        if (errno != ENOENT && errno != EPERM)
          unreadable(render_node, std::generic_category().message(errno));
        continue;
      }
      gpus.push_back(describe(folder, node, properties));
    }
    ++node;
  }
}

}  // namespace

std::vector<GpuTopology> detail::read_topology(const std::string& topology,
                                               const std::string& render_nodes) {
  // The driver counts changes: a read in the middle of one is repeated.
  const std::string generation = topology + "/generation_id";
  for (;;) {
    const std::string before = required_contents(generation);
    std::vector<GpuTopology> gpus = gpus_in(topology, render_nodes);
    if (required_contents(generation) == before) return gpus;
  }
}

std::vector<GpuTopology> read_gpu_topology() {
  return detail::read_topology("/sys/devices/virtual/kfd/kfd/topology", "/dev/dri");
}

}  // namespace uptempo
