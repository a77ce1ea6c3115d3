#include "samples/support/sample.hpp"

#include "samples/support/sample.h"

#include <stdexcept>

#include "tools/support/command_line.hpp"
#include "tools/support/program.hpp"

namespace uptempo::support {
namespace {

vgpu::RunningOn choose(const std::string& choice, int argc, char** argv,
                       const std::vector<std::string>& launcher_options) {
  vgpu::DeviceChoice device{};
  try {
    device = vgpu::parse_device(choice);
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
  try {
    return vgpu::choose_device(device, argc, argv, launcher_options);
  } catch (const std::runtime_error& error) {
    throw Unavailable(error.what());
  }
}

}  // namespace

int run_sample(const std::string& name, const std::string& description, int argc, char** argv,
               const std::function<bool(vgpu::RunningOn device)>& body,
               const std::vector<std::string>& launcher_options) {
  CommandLine app(name, description);
  app.footer(
      "Exit code: 0 right results, 1 wrong results or a failed device, 2 usage, 77 no such "
      "device.");
  std::string choice = "auto";
  app.option("device,--device D", choice, "auto, hardware or virtual (auto)");
  return run_program(app, argc, argv, [&] {
    return body(choose(choice, argc, argv, launcher_options)) ? exit_ok : exit_measured_failure;
  });
}

}  // namespace uptempo::support

int uptempo_run_sample(const char* name, const char* description, int argc, char** argv,
                       int (*body)(const char* device)) {
  using namespace uptempo;
  return support::run_sample(name, description, argc, argv, [&](vgpu::RunningOn device) {
    return body(vgpu::label(device).data()) != 0;
  });
}
