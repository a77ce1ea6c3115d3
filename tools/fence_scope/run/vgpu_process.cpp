#include "tools/fence_scope/run/vgpu_process.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include <uptempo/vgpu/query.h>
#include "tools/support/command.hpp"
#include "tools/support/interrupt.hpp"
#include "tools/vgpu/launch.hpp"

namespace uptempo::fence_scope {
namespace {

using nlohmann::ordered_json;

std::vector<std::string> clean_environment() {
  std::vector<std::string> command{"/usr/bin/env"};
  for (const char* name :
       {"LD_PRELOAD", "UPTEMPO_VGPU_CHECK", "UPTEMPO_VGPU_DELAY", "UPTEMPO_VGPU_DETERMINISTIC",
        "UPTEMPO_VGPU_EAGER_PACKETS", "UPTEMPO_VGPU_EARLY_READ_INDEX",
        "UPTEMPO_VGPU_ERROR_EXITCODE", "UPTEMPO_VGPU_GROUPED_READ_INDEX", "UPTEMPO_VGPU_INCOHERENT",
        "UPTEMPO_VGPU_NULL_KERNELS", "UPTEMPO_VGPU_REPORT", "UPTEMPO_VGPU_SEED",
        "UPTEMPO_VGPU_SUPPRESSIONS", "UPTEMPO_VGPU_TRACE", "UPTEMPO_VGPU_WORKERS"})
    command.insert(command.end(), {"-u", name});
  return command;
}

}  // namespace

ordered_json run_under_vgpu(const std::vector<std::string>& launcher_options, const char* task,
                            std::span<const Case> cases, const std::vector<std::string>& arguments,
                            std::optional<double> seconds) {
  const support::TemporaryDirectory directory;
  const std::string file = directory.file("cases");
  const std::vector<uint8_t> bytes = to_bytes(cases);
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
  std::vector<std::string> command = clean_environment();
  command.push_back(vgpu::find_launcher());
  command.insert(command.end(), launcher_options.begin(), launcher_options.end());
  command.insert(command.end(),
                 {"--", std::filesystem::read_symlink("/proc/self/exe").string(), task, file});
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (support::interrupted()) throw support::Interrupted("interrupted before another process");
  if (seconds && *seconds <= 0) throw OutOfTime("no time is left");
  const test::CommandResult result =
      test::run_command(command, {.seconds = seconds, .stop = support::interrupted});
  if (result.stopped) throw support::Interrupted("interrupted during another process's run");
  if (result.timed_out) throw OutOfTime("a process of this experiment did not end in time");
  ordered_json printed = ordered_json::parse(result.out, nullptr, false);
  if (result.exit_code != 0 || printed.is_discarded())
    throw std::runtime_error(
        fmt::format("uptempo-vgpu {}, run for the cases of this experiment, ended with {}: {}",
                    fmt::join(launcher_options, " "), result.exit_code, result.err));
  return printed;
}

std::optional<int> run_task(int argc, char** argv, const std::map<std::string, Task>& tasks) {
  const auto task = argc < 3 ? tasks.end() : tasks.find(argv[1]);
  if (task == tasks.end()) return std::nullopt;
  try {
    std::ifstream in(argv[2], std::ios::binary);
    if (!in) throw std::runtime_error(fmt::format("cannot read {}", argv[2]));
    const Cases cases = from_bytes(std::vector<uint8_t>{std::istreambuf_iterator<char>(in), {}});
    const ordered_json out = task->second(cases, {argv + 3, argv + argc});
    std::cout << out.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

std::optional<uptempo_vgpu_device_counts> device_counts() {
  static const auto query =
      reinterpret_cast<uptempo_vgpu_device_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_device"));
  uptempo_vgpu_device_counts counts{};
  if (query == nullptr || query(&counts) != 0) return std::nullopt;
  return counts;
}

std::array<std::optional<uint32_t>, 2> device_numbers(const Bench& bench) {
  static const auto query =
      reinterpret_cast<uptempo_vgpu_queue_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_queue"));
  std::array<std::optional<uint32_t>, 2> numbers{};
  for (uint32_t queue = 0; queue < numbers.size(); ++queue)
    if (uint32_t number = 0; query != nullptr && query(bench.ring(queue), &number) == 0)
      numbers[queue] = number;
  return numbers;
}

}  // namespace uptempo::fence_scope
