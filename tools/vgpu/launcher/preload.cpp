#include "launcher/preload.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "launch.hpp"
#include "launcher/failure.hpp"

namespace fs = std::filesystem;

namespace uptempo::vgpu {
namespace {

bool is_sanitizer_runtime(const std::string& library) {
  return library.starts_with("libasan.so") || library.starts_with("libtsan.so") ||
         library.starts_with("libubsan.so") || library.starts_with("liblsan.so") ||
         library.starts_with("libclang_rt.");
}

// A library of a check, in the folder of the preloaded one.
std::string beside(const std::string& library, const std::string& name) {
  std::string path =
      (fs::path(library).parent_path() / ("libuptempo-vgpu." + name + ".so")).string();
  if (access(path.c_str(), R_OK) != 0)
    throw Failure{kCannotRun, "--check needs '" + path + "', which is missing"};
  if (const std::string reason = distrust(path); !reason.empty())
    throw Failure{kCannotRun, "'" + path + "' is not trusted: " + reason};
  return path;
}

}  // namespace

std::string find_library() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path candidates[] = {
      here / "libuptempo-vgpu.so",
      here.parent_path() / UPTEMPO_VGPU_LIBDIR / "uptempo" / "libuptempo-vgpu.so"};
  std::string tried;
  for (const fs::path& candidate : candidates) {
    if (access(candidate.c_str(), R_OK) == 0) {
      if (candidate.string().find_first_of(": ") != std::string::npos)
        throw Failure{kCannotRun, "'" + candidate.string() +
                                      "' has a space or colon in its path, which LD_PRELOAD cannot "
                                      "express: install it elsewhere"};
      if (const std::string reason = distrust(candidate); !reason.empty())
        throw Failure{kCannotRun, "'" + candidate.string() + "' is not trusted: " + reason};
      return candidate.string();
    }
    tried += (tried.empty() ? "" : " nor ") + candidate.string();
  }
  throw Failure{kCannotRun, "libuptempo-vgpu.so is neither " + tried +
                                "; build or install it with the launcher"};
}

std::string preload_list(const support::PreloadTarget& program, const std::string& library,
                         bool checks) {
  std::string list;
  for (const std::string& needed : program.needed)
    if (is_sanitizer_runtime(needed)) list += needed + ':';
  list += library;
  const std::string hip = checks ? beside(library, "hip") : std::string();
  if (checks) list += ':' + hip;
  const char* present = std::getenv("LD_PRELOAD");
  std::string_view others = present == nullptr ? "" : present;
  while (!others.empty()) {
    const size_t end = others.find_first_of(": ");
    const std::string_view other = others.substr(0, end);
    others = end == std::string_view::npos ? std::string_view{} : others.substr(end + 1);
    if (!other.empty() && other != library && other != hip) list += ':' + std::string(other);
  }
  return list;
}

std::string tools_list(const std::string& library) {
  const std::string tool = beside(library, "hsa-tool");
  const char* const present = std::getenv("HSA_TOOLS_LIB");
  const std::string_view others = present == nullptr ? "" : present;
  // A launcher around this one has named it already.
  if (others == tool || others.starts_with(tool + ' ')) return std::string(others);
  return others.empty() ? tool : tool + ' ' + std::string(others);
}

}  // namespace uptempo::vgpu
