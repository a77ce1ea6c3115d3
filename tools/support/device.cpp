#include "tools/support/device.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <string_view>

#include "tools/support/command_line.hpp"
#include "tools/support/program.hpp"
#include "tools/vgpu/launch.hpp"

namespace uptempo::support {

namespace {

// Whether Runtime::gpu(std::string_view) may find it. Everything else is a mistake that can be
// named before a device is opened.
bool selects_gpu(const std::string& choice) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return (!choice.empty() && std::ranges::all_of(choice, is_digit)) || choice.starts_with("GPU-") ||
         choice.starts_with("gpu-") || choice.find(':') != std::string::npos;
}

std::string check_device(const std::string& choice) {
  if (choice == "auto" || choice == "hardware" || choice == "virtual" || selects_gpu(choice))
    return {};
  return fmt::format("'{}' is not auto, hardware, virtual, or a GPU's index, UUID or PCI address",
                     choice);
}

}  // namespace

Option add_device_option(CommandLine& command_line, std::string& choice) {
  return command_line
      .option("--device D", choice,
              "auto, hardware, virtual, or a GPU: index, UUID or PCI address (" + choice + ")")
      .check(check_device);
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
    const bool is_named = selects_gpu(choice);
    vgpu::DeviceChoice kind = vgpu::DeviceChoice::hardware;
    if (!is_named) {
      kind = vgpu::parse_device(choice);
    } else if (vgpu::on_virtual_gpu()) {
      kind = vgpu::DeviceChoice::virtual_gpu;
    }
    const bool is_virtual =
        vgpu::choose_device(kind, argc, argv, launcher_options) == vgpu::RunningOn::virtual_gpu;
    Runtime runtime;
    Agent gpu = is_named ? runtime.gpu(std::string_view(choice)) : runtime.gpu();
    return {.runtime = runtime, .gpu = gpu, .is_virtual = is_virtual};
  } catch (const std::runtime_error& error) {
    throw Unavailable(error.what());
  }
}

}  // namespace uptempo::support
