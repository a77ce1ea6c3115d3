// Threads of this process: their CPU time, to compare with the time they slept, and whether they
// sleep now. A test waits for the sleep itself, because no delay guarantees it:
//
//   REQUIRE(eventually([] { return sleep_all("vgpu-cp"); }));
#pragma once

#include <dirent.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace uptempo::test {

// CPU time of the calling thread.
inline std::chrono::nanoseconds cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Threads of this process with that name.
inline std::vector<std::string> threads_named(const std::string& name) {
  std::vector<std::string> found;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* const task = tasks == nullptr ? nullptr : readdir(tasks)) {
    std::ifstream file(std::string("/proc/self/task/") + task->d_name + "/comm");
    std::string comm;
    if (std::getline(file, comm) && comm == name) found.emplace_back(task->d_name);
  }
  if (tasks != nullptr) closedir(tasks);
  return found;
}

// The calling thread, for the functions below.
inline std::string this_task() { return std::to_string(syscall(SYS_gettid)); }

// Whether the thread is blocked in the kernel: state S in its stat, after the name in parentheses.
inline bool sleeps(const std::string& task) {
  std::ifstream file("/proc/self/task/" + task + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.compare(name_end, 3, ") S") == 0;
}

// Whether there are threads of that name and all of them sleep.
inline bool sleep_all(const std::string& name) {
  const std::vector<std::string> tasks = threads_named(name);
  return !tasks.empty() && std::all_of(tasks.begin(), tasks.end(), sleeps);
}

// CPU time of another thread of this process: the first number of schedstat.
inline std::chrono::nanoseconds cpu_time_of(const std::string& task) {
  std::ifstream file("/proc/self/task/" + task + "/schedstat");
  uint64_t on_core = 0;
  file >> on_core;
  return std::chrono::nanoseconds(on_core);
}

// That time as per cent of one core.
inline double per_cent(std::chrono::nanoseconds cpu, std::chrono::nanoseconds wall) {
  return 100.0 * static_cast<double>(cpu.count()) / static_cast<double>(wall.count());
}

}  // namespace uptempo::test
