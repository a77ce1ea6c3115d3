// Chooses the device that a program runs on: real hardware or the virtual GPU. For the virtual GPU,
// the program executes itself again under uptempo-vgpu.
//
//   const auto choice = uptempo::vgpu::parse_device("auto");
//   const auto device = uptempo::vgpu::choose_device(choice, argc, argv);
//   std::cout << "device: " << uptempo::vgpu::label(device) << '\n';
//
// Call it first in main(), before threads, output or HSA calls, because it may replace the process
// image (same pid, same arguments). In the second run the call returns RunningOn::virtual_gpu.
// Header only; needs the C++ library and POSIX.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace uptempo::vgpu {

enum class DeviceChoice { automatic, hardware, virtual_gpu };
enum class RunningOn { hardware, virtual_gpu };

// Accepts "auto", "hardware" and "virtual". Throws std::invalid_argument that names the given and
// the accepted values.
inline DeviceChoice parse_device(std::string_view text) {
  if (text == "auto") return DeviceChoice::automatic;
  if (text == "hardware") return DeviceChoice::hardware;
  if (text == "virtual") return DeviceChoice::virtual_gpu;
  throw std::invalid_argument("--device is '" + std::string(text) +
                              "': use auto, hardware or virtual");
}

inline std::string_view label(RunningOn device) {
  return device == RunningOn::hardware ? "hardware" : "virtual GPU";
}

// Whether this process runs under uptempo-vgpu.
inline bool on_virtual_gpu() {
  const char* preloaded = std::getenv("LD_PRELOAD");
  return preloaded != nullptr && std::strstr(preloaded, "libuptempo-vgpu.so") != nullptr;
}

// Whether a kernel driver answers on /dev/kfd. Under uptempo-vgpu the emulated driver answers.
inline bool kfd_answers() {
  const int descriptor = ::open("/dev/kfd", O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return false;
  ::close(descriptor);
  return true;
}

// Whether only the owner can use the permissions of the file's group: the group has the owner's
// name and no other members. useradd(8) creates such a group for each user, and pam_umask(8) then
// makes the user's files writable by it.
inline bool is_private_group(const struct stat& file) {
  std::vector<char> owner_text(1 << 14), group_text(1 << 14);
  passwd owner{}, *found_owner = nullptr;
  group members{}, *found_group = nullptr;
  ::getpwuid_r(file.st_uid, &owner, owner_text.data(), owner_text.size(), &found_owner);
  ::getgrgid_r(file.st_gid, &members, group_text.data(), group_text.size(), &found_group);
  if (found_owner == nullptr || found_group == nullptr ||
      std::strcmp(owner.pw_name, members.gr_name) != 0)
    return false;
  for (char** member = members.gr_mem; *member != nullptr; ++member)
    if (std::strcmp(*member, owner.pw_name) != 0) return false;
  return true;
}

// Why `path` and the folders above it are not trusted, or "". Each must belong to root, to this
// process's user or to the owner of the running program, and no one else may write it. Others may
// write a folder above the last if it is sticky, as /tmp is: they cannot rename its entries
// (inode(7), S_ISVTX).
inline std::string distrust_of(std::filesystem::path path) {
  struct stat program {};
  ::stat("/proc/self/exe", &program);
  struct stat status {};
  for (int above = 0;; ++above, path = path.parent_path()) {
    if (::stat(path.c_str(), &status) != 0)
      return "'" + path.string() + "': " + std::strerror(errno);
    if (status.st_uid != 0 && status.st_uid != ::geteuid() && status.st_uid != program.st_uid)
      return "'" + path.string() + "' belongs to another user";
    const bool by_group = (status.st_mode & S_IWGRP) != 0 && !is_private_group(status);
    const bool is_sticky = above > 1 && (status.st_mode & S_ISVTX) != 0;
    if ((by_group || (status.st_mode & S_IWOTH) != 0) && !is_sticky)
      return "others may write '" + path.string() + "'";
    if (path == path.root_path()) return {};
  }
}

// Returns why a file that was found by its place, relative to the program, must neither be executed
// nor loaded: another user could have put it there. Returns "" if only root, this process's user or
// the owner of the program could. Call it before using any file beside a program.
// Thread safety: any thread.
inline std::string distrust(const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::canonical(file.parent_path(), error);
  const fs::path target = error ? fs::path{} : fs::canonical(file, error);  // of a link
  if (error) return "'" + file.string() + "': " + error.message();
  const std::string reason = distrust_of(folder / file.filename());
  return !reason.empty() || target == folder / file.filename() ? reason : distrust_of(target);
}

// Returns $UPTEMPO_VGPU if it is set. Otherwise searches the program's folder, ../bin and ../../bin
// relative to it, where distrust() has no objection, and PATH. Throws std::runtime_error that lists
// the searched places, and in a program that runs with other rights than its caller's (AT_SECURE,
// getauxval(3)): the caller chooses its environment, and ld.so(8) preloads nothing into it.
inline std::string find_launcher() {
  namespace fs = std::filesystem;
  if (::getauxval(AT_SECURE) != 0)
    throw std::runtime_error(
        "the virtual GPU cannot be preloaded into a set-uid or set-gid program or one with "
        "capabilities: run a copy without them");
  std::string tried;
  const auto is_found = [&tried](const fs::path& candidate, bool by_place) {
    std::error_code ignored;
    tried += (tried.empty() ? "" : ", ") + candidate.string();
    if (!fs::is_regular_file(candidate, ignored) || ::access(candidate.c_str(), X_OK) != 0)
      return false;
    const std::string reason = by_place ? distrust(candidate) : "";
    if (!reason.empty()) tried += " (not trusted: " + reason + ")";
    return reason.empty();
  };
  if (const char* given = std::getenv("UPTEMPO_VGPU"); given != nullptr && *given != '\0') {
    if (is_found(given, false)) return given;
  } else {
    const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
    for (const fs::path& folder :
         {here, here.parent_path() / "bin", here.parent_path().parent_path() / "bin"})
      if (is_found(folder / "uptempo-vgpu", true)) return (folder / "uptempo-vgpu").string();
    const char* variable = std::getenv("PATH");
    std::string_view path = variable == nullptr ? "" : variable;
    while (!path.empty()) {
      const size_t colon = path.find(':');
      const fs::path candidate = fs::path(path.substr(0, colon)) / "uptempo-vgpu";
      if (colon != 0 && is_found(candidate, false)) return candidate.string();
      path = colon == std::string_view::npos ? std::string_view{} : path.substr(colon + 1);
    }
  }
  throw std::runtime_error(
      "uptempo-vgpu was not found (tried " + tried +
      "): build or install it, put its folder into PATH, or name it in UPTEMPO_VGPU");
}

// Returns the device that this process runs on, or executes the program again and does not return.
// `launcher_options` are options of uptempo-vgpu, for example "--trace=t.json". Throws
// std::runtime_error when the choice cannot be met.
inline RunningOn choose_device(DeviceChoice choice, int argc, char** argv,
                               const std::vector<std::string>& launcher_options = {}) {
  if (on_virtual_gpu()) {
    if (choice == DeviceChoice::hardware)
      throw std::runtime_error(
          "--device hardware was asked for, but the program runs under uptempo-vgpu: start it "
          "directly");
    return RunningOn::virtual_gpu;
  }
  const bool hardware = choice != DeviceChoice::virtual_gpu && kfd_answers();
  if (hardware) return RunningOn::hardware;
  if (choice == DeviceChoice::hardware)
    throw std::runtime_error(
        std::string("--device hardware was asked for, but /dev/kfd does not answer (") +
        std::strerror(errno) +
        "): load the amdgpu driver, join the groups render and video, or use --device virtual");
  const std::string launcher = find_launcher();
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::string> arguments{launcher};
  arguments.insert(arguments.end(), launcher_options.begin(), launcher_options.end());
  arguments.insert(arguments.end(), {"--", program});
  for (int i = 1; i < argc; ++i) arguments.emplace_back(argv[i]);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execv(launcher.c_str(), pointers.data());
  throw std::runtime_error("cannot run " + launcher + ": " + std::strerror(errno));
}

}  // namespace uptempo::vgpu
