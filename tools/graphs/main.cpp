// uptempo-graphs: runs a HIP program with a preloaded library that launches its graphs by Uptempo.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tools/graphs/settings.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/launch/launched_program.hpp"
#include "tools/support/launch/rocm_libraries.hpp"
#include "tools/support/preload_target.hpp"
#include "tools/support/program.hpp"
#include "tools/vgpu/launch.hpp"

using namespace uptempo;

namespace {

namespace fs = std::filesystem;

void set(const char* variable, const std::string& value) { ::setenv(variable, value.c_str(), 1); }

// After the libraries that are preloaded already, so that the virtual GPU's comes first.
void preload(const std::string& library) {
  const char* const present = std::getenv("LD_PRELOAD");
  set("LD_PRELOAD",
      present == nullptr || *present == '\0' ? library : std::string(present) + ':' + library);
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app("uptempo-graphs",
                           "Runs an unchanged HIP program and launches its graphs by Uptempo.");
  app.runs_a_program();
  app.footer(
      "The report goes to stderr when the program ends: launches and nodes that Uptempo took "
      "over,\n"
      "what HIP kept, and why.\n"
      "Exit code: the program's; 2 usage, 77 the device or the library is missing, 1 the program\n"
      "cannot be run.");
  std::string device = "auto";
  app.option("--device D", device, "auto, hardware or virtual (auto)")
      .one_of({"auto", "hardware", "virtual"});
  uint32_t at_least = graphs::kDefaultAtLeast;
  app.option("--at-least N", at_least, "Leave graphs with fewer nodes to HIP").show_default();
  bool times = false;
  app.flag("--times", times, "Report the CPU time of launches, instantiations and imports");
  std::string json;
  app.option("--json FILE", json, "Also write the report to this file").output_file();

  // Everything after "--" belongs to the program.
  const support::LaunchArguments arguments(argc, argv);
  return support::run_program(app, arguments.own_count, argv, [&]() -> support::ExitCode {
    const std::string path = support::find_program(arguments.program, app.name());
    std::error_code ignored;
    if (fs::equivalent(json, path, ignored))
      throw support::UsageError(fmt::format("--json: '{}' is the program", json));
    const std::string library = support::find_library(
        "libuptempo-graphs.so", {".", fs::path("..") / UPTEMPO_GRAPHS_LIBRARY_FOLDER}, "LD_PRELOAD",
        " :");
    if (const std::string missing =
            support::missing_rocm(library, support::inspect_preload_target(library).needed);
        !missing.empty())
      throw support::Unavailable(fmt::format("'{}' {}", library, missing));
    try {
      (void)vgpu::choose_device(vgpu::parse_device(device), argc, argv);
    } catch (const std::runtime_error& error) {
      throw support::Unavailable(error.what());
    }
    preload(library);
    set(graphs::kAtLeastVariable, std::to_string(at_least));
    if (times) {
      set(graphs::kTimesVariable, "1");
    } else {
      ::unsetenv(graphs::kTimesVariable);
    }
    if (json.empty()) {
      ::unsetenv(graphs::kJsonVariable);
    } else {
      set(graphs::kJsonVariable, fs::absolute(json).string());
    }
    set(graphs::kProcessVariable, std::to_string(::getpid()));
    support::execute(path, arguments.program);
  });
}
