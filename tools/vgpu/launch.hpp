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

// Returns $UPTEMPO_VGPU if it is set. Otherwise searches the program's folder, ../bin and ../../bin
// relative to it, and PATH. Throws std::runtime_error that lists the searched places.
inline std::string find_launcher() {
  namespace fs = std::filesystem;
  std::vector<fs::path> candidates;
  if (const char* given = std::getenv("UPTEMPO_VGPU"); given != nullptr && *given != '\0') {
    candidates.emplace_back(given);
  } else {
    const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
    candidates = {here / "uptempo-vgpu", here.parent_path() / "bin" / "uptempo-vgpu",
                  here.parent_path().parent_path() / "bin" / "uptempo-vgpu"};
    const char* variable = std::getenv("PATH");
    std::string_view path = variable == nullptr ? "" : variable;
    while (!path.empty()) {
      const size_t colon = path.find(':');
      if (colon != 0) candidates.push_back(fs::path(path.substr(0, colon)) / "uptempo-vgpu");
      path = colon == std::string_view::npos ? std::string_view{} : path.substr(colon + 1);
    }
  }
  std::string tried;
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored) && ::access(candidate.c_str(), X_OK) == 0)
      return candidate.string();
    tried += (tried.empty() ? "" : ", ") + candidate.string();
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
