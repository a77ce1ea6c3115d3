#include "tools/support/launch/rocm_libraries.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

extern char** environ;

namespace uptempo::support {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored);
}

// ROCm runs on Linux on x86-64 alone; the System V ABI names the file.
constexpr const char* kDynamicLinker = "/lib64/ld-linux-x86-64.so.2";

// Folders of ROCm in which the dynamic linker need not search.
std::vector<fs::path> rocm_folders() {
  std::vector<fs::path> folders{"/opt/rocm/lib"};
  const char* const root = std::getenv("ROCM_PATH");
  if (root != nullptr && *root != '\0') folders.insert(folders.begin(), fs::path(root) / "lib");
  return folders;
}

// The output of ldd(1): "\tNAME => PATH (ADDRESS)", or "\tNAME => not found".
std::optional<std::string> list_of_libraries(const std::string& file) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const std::string absolute = fs::absolute(file).string();
  const std::array<const char*, 3> words{kDynamicLinker, absolute.c_str(), nullptr};
  std::string trace = "LD_TRACE_LOADED_OBJECTS=1";  // ld.so(8)
  // With LD_PRELOAD, which may bring the library.
  std::vector<char*> environment;
  for (char** each = environ; *each != nullptr; ++each) environment.push_back(*each);
  environment.insert(environment.end(), {trace.data(), nullptr});
  pid_t child = 0;
  const int error = posix_spawn(&child, kDynamicLinker, &actions, nullptr,
                                const_cast<char**>(words.data()), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t size = 0; error == 0 && (size = ::read(pipe[0], part.data(), part.size())) != 0;) {
    if (size > 0)
      text.append(part.data(), static_cast<size_t>(size));
    else if (errno != EINTR)
      break;
  }
  ::close(pipe[0]);
  if (error != 0) return std::nullopt;
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

}  // namespace

std::string rocm_packages(std::string_view library) {
  constexpr std::string_view kHip = "libamdhip64.so.";
  if (library == kRocr) return std::string(kRocrPackages);
  if (!library.starts_with(kHip)) return {};
  const std::string version(library.substr(kHip.size()));
  return "libamdhip64-" + version + " (Debian) or hip-runtime-amd (AMD's ROCm " + version + ')';
}

bool is_found_by_name(std::string_view library, const char* cache) {
  const char* const variable = std::getenv("LD_LIBRARY_PATH");
  std::string_view folders = variable == nullptr ? "" : variable;
  while (!folders.empty()) {
    const size_t end = folders.find_first_of(":;");  // both separate them (ld.so(8))
    if (is_there(fs::path(folders.substr(0, end)) / library)) return true;
    folders = end == std::string_view::npos ? std::string_view{} : folders.substr(end + 1);
  }
  // The cache holds the paths as strings that end with a zero.
  std::ifstream in(cache, std::ios::binary);
  const std::string paths{std::istreambuf_iterator<char>(in), {}};
  return paths.find('/' + std::string(library) + '\0') != std::string::npos;
}

bool has_rocr() {
  return is_found_by_name(kRocr) || std::ranges::any_of(rocm_folders(), [](const fs::path& folder) {
           return is_there(folder / kRocr);
         });
}

std::string missing_rocm(const std::string& file, const std::vector<std::string>& needed) {
  const auto may_lack = [](const std::string& library) {
    return !rocm_packages(library).empty() && !is_found_by_name(library);
  };
  if (std::ranges::none_of(needed, may_lack)) return {};
  // The file may name folders of its own (DT_RUNPATH).
  const std::optional<std::string> list = list_of_libraries(file);
  if (!list) return {};
  for (const std::string& library : needed) {
    if (!may_lack(library) || list->find('\t' + library + " => not found") == std::string::npos)
      continue;
    for (const fs::path& folder : rocm_folders())
      if (is_there(folder / library))
        return "needs " + library + ", which is in " + folder.string() +
               ", where the dynamic linker does not search: add that folder to LD_LIBRARY_PATH";
    return "needs " + library + ", which this system lacks: install " + rocm_packages(library);
  }
  return {};
}

}  // namespace uptempo::support
