// uptempo-lint: runs a program with the lint as a tool of ROCr. It sets HSA_TOOLS_LIB and executes
// the program in its own place.

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "tools/lint/settings.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/launch/launched_program.hpp"
#include "tools/support/program.hpp"
#include "tools/vgpu/launch.hpp"

using namespace uptempo;

namespace {

namespace fs = std::filesystem;

// Before the other tools, so that they see the program's packets as they are, and after the virtual
// GPU's own, which is the innermost.
std::string tools_with(const std::string& library, const std::string& present) {
  if ((' ' + present + ' ').find(' ' + library + ' ') != std::string::npos) return present;
  const std::string first = present.substr(0, present.find(' '));
  if (!first.ends_with("/libuptempo-vgpu.hsa-tool.so"))
    return present.empty() ? library : library + ' ' + present;
  return first + ' ' + library + present.substr(first.size());
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app("uptempo-lint",
                           "Runs a HIP or HSA program and reports what its packets cost for "
                           "nothing.");
  app.runs_a_program();
  app.footer(
      "The report goes to stderr when the program ends. tools/lint/README.md explains it.\n"
      "Exit code: the program's; 2 usage, 77 the device or the library is missing, 1 the program\n"
      "cannot be run.");
  std::string device = "auto";
  app.option("--device D", device, "auto, hardware or virtual (auto)")
      .one_of({"auto", "hardware", "virtual"});
  std::string settings;
  app.option("--settings LIST", settings, "Settings as in UPTEMPO_LINT: format=json,file=lint.json")
      .check([](const std::string& value) -> std::string {
        try {
          (void)lint::parse_settings(value);
        } catch (const std::invalid_argument& error) {
          return error.what();
        }
        return "";
      });

  // Everything after "--" belongs to the program.
  const support::LaunchArguments arguments(argc, argv);
  return support::run_program(app, arguments.own_count, argv, [&]() -> support::ExitCode {
    const std::string path = support::find_program(arguments.program, app.name());
    const fs::path installed = fs::path("..") / UPTEMPO_LINT_LIBRARY_FOLDER;
    const std::string library = support::find_library(
        "libuptempo-lint.so",
        {installed / "uptempo", installed, "../lib"},  // a wheel's, others', a build's
        "HSA_TOOLS_LIB", " ");
    try {
      (void)vgpu::choose_device(vgpu::parse_device(device), argc, argv);
    } catch (const std::runtime_error& error) {
      throw support::Unavailable(error.what());
    }
    const char* const present = std::getenv("HSA_TOOLS_LIB");
    ::setenv("HSA_TOOLS_LIB", tools_with(library, present == nullptr ? "" : present).c_str(), 1);
    if (!settings.empty()) ::setenv("UPTEMPO_LINT", settings.c_str(), 1);
    support::execute(path, arguments.program);
  });
}
