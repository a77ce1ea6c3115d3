// uptempo-graphs: runs a HIP program with a preloaded library that launches its graphs by Uptempo.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tools/graphs/settings.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/preload_target.hpp"
#include "tools/support/program.hpp"
#include "tools/vgpu/launch.hpp"

using namespace uptempo;

namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libuptempo-graphs.so";

// The library is beside the launcher in a build, and in a library folder of an installation.
std::string find_library() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  std::string tried;
  for (const fs::path& folder : {here, here.parent_path() / UPTEMPO_GRAPHS_LIBRARY_FOLDER}) {
    const fs::path candidate = folder / kLibrary;
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored)) {
      if (candidate.string().find_first_of(" :") != std::string::npos)
        throw support::Unavailable(fmt::format(
            "'{}' has a space or colon in its path, which LD_PRELOAD cannot express: move it",
            candidate.string()));
      if (const std::string reason = vgpu::distrust(candidate); !reason.empty())
        throw support::Unavailable(
            fmt::format("'{}' is not trusted: {}", candidate.string(), reason));
      return candidate.string();
    }
    tried += (tried.empty() ? "" : ", ") + candidate.string();
  }
  throw support::Unavailable(
      fmt::format("{} was not found (tried {}): install or build it", kLibrary, tried));
}

// Searches PATH as a shell does.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), F_OK) != 0)
      throw support::UsageError(fmt::format("the program '{}' does not exist", name));
    return name;
  }
  const char* const variable = std::getenv("PATH");
  std::string_view path = variable == nullptr ? "" : variable;
  while (!path.empty()) {
    const size_t colon = path.find(':');
    const fs::path candidate = fs::path(path.substr(0, colon)) / name;
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored) && ::access(candidate.c_str(), X_OK) == 0)
      return candidate.string();
    path = colon == std::string_view::npos ? std::string_view{} : path.substr(colon + 1);
  }
  throw support::UsageError(fmt::format("the program '{}' is in no folder of PATH", name));
}

// Refuses what the dynamic linker preloads nothing into.
void require_preloadable(const std::string& program) {
  const std::string obstacle = support::inspect_preload_target(program).obstacle;
  if (!obstacle.empty())
    throw support::UsageError(fmt::format("nothing can be preloaded: '{}' {}", program, obstacle));
}

void set(const char* variable, const std::string& value) { ::setenv(variable, value.c_str(), 1); }

// After the libraries that are preloaded already, so that the virtual GPU's comes first.
void preload(const std::string& library) {
  const char* const present = std::getenv("LD_PRELOAD");
  set("LD_PRELOAD",
      present == nullptr || *present == '\0' ? library : std::string(present) + ':' + library);
}

[[noreturn]] void execute(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  ::execv(path.c_str(), pointers.data());
  throw std::runtime_error(fmt::format("cannot run '{}': {}", path, std::strerror(errno)));
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
  std::string json;
  app.option("--json FILE", json, "Also write the report to this file").output_file();

  // Everything after "--" belongs to the program.
  char** const end = argv + argc;
  char** const separator = std::find_if(
      argv, end, [](const char* argument) { return std::strcmp(argument, "--") == 0; });
  const std::vector<std::string> program(separator == end ? end : separator + 1, end);
  return support::run_program(
      app, static_cast<int>(separator - argv), argv, [&]() -> support::ExitCode {
        if (program.empty())
          throw support::UsageError("no program was given: uptempo-graphs [options] -- program");
        const std::string path = find_program(program.front());
        require_preloadable(path);
        std::error_code ignored;
        if (fs::equivalent(json, path, ignored))
          throw support::UsageError(fmt::format("--json: '{}' is the program", json));
        const std::string library = find_library();
        try {
          (void)vgpu::choose_device(vgpu::parse_device(device), argc, argv);
        } catch (const std::runtime_error& error) {
          throw support::Unavailable(error.what());
        }
        preload(library);
        set(graphs::kAtLeastVariable, std::to_string(at_least));
        if (json.empty()) {
          ::unsetenv(graphs::kJsonVariable);
        } else {
          set(graphs::kJsonVariable, fs::absolute(json).string());
        }
        set(graphs::kProcessVariable, std::to_string(::getpid()));
        execute(path, program);
      });
}
