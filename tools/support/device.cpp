#include "tools/support/device.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>

#include "tools/support/program.hpp"
#include "tools/vgpu/launch.hpp"

namespace uptempo::support {

void add_device_option(CLI::App& app, std::string& choice) {
  app.add_option("--device", choice, "auto, hardware or virtual (" + choice + ")")
      ->check(CLI::IsMember({"auto", "hardware", "virtual"}).description(""))
      ->type_name("D");
}

uint32_t usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<uint32_t>(CPU_COUNT(&set));
}

std::string Device::name() const {
  const std::string& product = gpu.properties().product_name;
  return product.empty() ? gpu.name() : fmt::format("{} ({})", product, gpu.name());
}

std::string Device::line() const {
  return is_virtual ? fmt::format("Device: virtual GPU, {}; times are the virtual GPU's\n", name())
                    : fmt::format("Device: {}\n", name());
}

Device open_device(const std::string& choice, int argc, char** argv,
                   const std::vector<std::string>& launcher_options) {
  try {
    const bool is_virtual = vgpu::choose_device(vgpu::parse_device(choice), argc, argv,
                                                launcher_options) == vgpu::RunningOn::virtual_gpu;
    Runtime runtime;
    Agent gpu = runtime.gpu();
    return {.runtime = runtime, .gpu = gpu, .is_virtual = is_virtual};
  } catch (const std::runtime_error& error) {
    throw Unavailable(error.what());
  }
}

}  // namespace uptempo::support
