// Runs a HIP program before and after it takes three lines of Uptempo, and compares results and
// times.
//
//   from_hip [--device auto|hardware|virtual]
//
// Exit code: 0 equal results, 1 different results or a program failed, 2 wrong argument.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "samples/support/sample.hpp"

using namespace uptempo;

namespace {

struct Outcome {
  unsigned long long checksum = 0;
  double launch_us = 0;
  double step_us = 0;
};

Outcome run(const char* name) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  if (const std::string reason = vgpu::distrust(folder / name); !reason.empty())
    throw std::runtime_error("not trusted: " + reason);
  const std::string command = "'" + (folder / name).string() + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "re"), &pclose);
  char line[256] = "";
  Outcome outcome;
  if (pipe == nullptr || std::fgets(line, sizeof line, pipe.get()) == nullptr ||
      std::sscanf(line, "checksum %llx, %lf us of CPU time in each launch, %lf us a step",
                  &outcome.checksum, &outcome.launch_us, &outcome.step_us) != 3)
    throw std::runtime_error(command + " printed no result");
  std::printf("%s:\n  %s", name, line);
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  return support::run_sample(
      "from_hip", "Runs a HIP program before and after it takes three lines of Uptempo.", argc,
      argv, [](vgpu::RunningOn device) {
        std::printf("%s: 200 steps of 120 kernels\n", vgpu::label(device).data());
        const Outcome before = run("from_hip_before"), after = run("from_hip_after");
        const bool equal = before.checksum == after.checksum;
        std::printf("%s results; a launch takes %.1f times less CPU time\n",
                    equal ? "equal" : "different", before.launch_us / after.launch_us);
        return equal;
      });
}
