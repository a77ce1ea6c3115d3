#include "tools/bench/vgpu/consume/cores.hpp"

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>

namespace uptempo::vgpu::consume {
namespace {

// The virtual GPU's threads are named vgpu-cp and vgpu-worker.
void for_each_device_thread(
    const std::function<void(const std::filesystem::path& task, const std::string& name)>& visit) {
  bool found = false;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (!name.starts_with("vgpu-")) continue;
    found = true;
    visit(task.path(), name);
  }
  if (!found) throw std::runtime_error("this process runs without the virtual GPU");
}

}  // namespace

void pin(int core, pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  if (sched_setaffinity(thread, sizeof set, &set) != 0)
    throw std::runtime_error("core " + std::to_string(core) + " is not available to this process");
}

Cores pin_host() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2)
    throw std::runtime_error(
        "the program and the device need a core each, but this process may use only one");
  Cores cores{-1, -1};
  for (int core = 0; cores.other < 0; ++core) {
    if (!CPU_ISSET(static_cast<size_t>(core), &set)) continue;
    (cores.host < 0 ? cores.host : cores.other) = core;
  }
  pin(cores.host);
  return cores;
}

void pin_device(int core) {
  for_each_device_thread([core](const std::filesystem::path& task, const std::string& name) {
    if (name == "vgpu-cp") pin(core, static_cast<pid_t>(std::stol(task.filename().string())));
  });
}

double device_cpu_ns() {
  double sum = 0;
  for_each_device_thread([&sum](const std::filesystem::path& task, const std::string&) {
    // the first number of schedstat (Linux, Documentation/scheduler/sched-stats.rst)
    double ran_ns = 0;
    std::ifstream(task / "schedstat") >> ran_ns;
    sum += ran_ns;
  });
  return sum;
}

}  // namespace uptempo::vgpu::consume
