#include "tools/support/launch/launched_program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "tools/support/preload_target.hpp"
#include "tools/support/program.hpp"
#include "tools/vgpu/launch.hpp"

namespace uptempo::support {

namespace fs = std::filesystem;

LaunchArguments::LaunchArguments(int argc, char** argv) {
  char** const end = argv + argc;
  char** const separator = std::find_if(
      argv, end, [](const char* argument) { return std::strcmp(argument, "--") == 0; });
  own_count = static_cast<int>(separator - argv);
  program.assign(separator == end ? end : separator + 1, end);
}

std::string find_library(const std::string& name, const std::vector<fs::path>& folders,
                         std::string_view variable, std::string_view separators) {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  std::string tried;
  for (const fs::path& folder : folders) {
    const fs::path candidate = (here / folder / name).lexically_normal();
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored)) {
      if (candidate.string().find_first_of(separators) != std::string::npos)
        throw Unavailable(fmt::format("'{}' has a {} in its path, which {} cannot express: move it",
                                      candidate.string(),
                                      separators == " " ? "space" : "space or colon", variable));
      if (const std::string reason = vgpu::distrust(candidate); !reason.empty())
        throw Unavailable(fmt::format("'{}' is not trusted: {}", candidate.string(), reason));
      return candidate.string();
    }
    tried += (tried.empty() ? "" : ", ") + candidate.string();
  }
  throw Unavailable(fmt::format("{} was not found (tried {}): install or build it", name, tried));
}

std::string find_program(const std::vector<std::string>& program, std::string_view command) {
  if (program.empty())
    throw UsageError(fmt::format("no program was given: {} [options] -- program", command));
  const std::string& name = program.front();
  std::string found;
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), F_OK) != 0)
      throw UsageError(fmt::format("the program '{}' does not exist", name));
    found = name;
  }
  const char* const variable = std::getenv("PATH");
  std::string_view path = variable == nullptr ? "" : variable;
  while (found.empty() && !path.empty()) {
    const size_t colon = path.find(':');
    const fs::path candidate = fs::path(path.substr(0, colon)) / name;
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored) && ::access(candidate.c_str(), X_OK) == 0)
      found = candidate.string();
    path = colon == std::string_view::npos ? std::string_view{} : path.substr(colon + 1);
  }
  if (found.empty())
    throw UsageError(fmt::format("the program '{}' is in no folder of PATH", name));
  if (const std::string obstacle = inspect_preload_target(found).obstacle; !obstacle.empty())
    throw UsageError(fmt::format("nothing can be preloaded: '{}' {}", found, obstacle));
  return found;
}

void execute(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  ::execv(path.c_str(), pointers.data());
  throw std::runtime_error(fmt::format("cannot run '{}': {}", path, std::strerror(errno)));
}

}  // namespace uptempo::support
