// A simulator's loop with dozens of small kernels per step, launched in four ways: the simplest
// way, with asynchronous copies, with memory that is reused, and with arguments that are written
// only if they change. Prints the time of each way and what it cost.
#include <dlfcn.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <vector>

#include "loop.hpp"

using namespace uptempo;
using namespace uptempo::launch_loop;

namespace {

const char* name_of(const Row& row) { return kWays[static_cast<size_t>(row.way)].name; }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

void print(const std::vector<Row>& rows, const Loop& loop, const Agent& gpu) {
  const auto us_of = [](const Row& row) { return median(row.us_per_step); };
  const Row &first = rows.front(), &last = rows.back();
  const bool is_virtual = dlsym(RTLD_DEFAULT, "uptempo_vgpu_device") != nullptr;
  std::printf(
      "%s: a step of %u kernels takes %.0f us in the naive way, and %.0f us\n"
      "with launchers: %.1f times as fast.\n\n"
      "Median of %zu turns, %s\n\n"
      "                       us per        until\n"
      "                         step  handed over  speed-up\n"
      "----------------------------------------------------\n",
      gpu.name().c_str(), loop.kernels, us_of(first), us_of(last), us_of(first) / us_of(last),
      first.us_per_step.size(), is_virtual ? "virtual GPU time" : "time");
  for (const Row& row : rows)
    std::printf("%-19s %9.1f  %11.1f  %7.2fx\n", name_of(row), us_of(row),
                median(row.host_us_per_step), us_of(first) / us_of(row));
  std::printf(
      "\n                        allo-  signals   host   arguments\n"
      "each step             cations  created  waits     skipped\n"
      "---------------------------------------------------------\n");
  for (const Row& row : rows) {
    const auto each = [&](uint64_t all) { return static_cast<double>(all) / row.counted_steps; };
    std::printf("%-21s %7.4g  %7.4g  %5.4g  %10.4g\n", name_of(row),
                each(row.counters.memory_allocations), each(row.counters.signals_created),
                each(row.counters.host_waits), each(row.counters.argument_hits));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("A simulator's loop of small kernels, launched in four ways.", "launch_loop");
  Loop loop;
  app.add_option("--steps", loop.steps, "Steps of the simulation (2000)")
      ->check(CLI::Range(kFirstSteps + 1, 1000000u));
  app.add_option("--kernels", loop.kernels, "Kernels per step (60)")
      ->check(CLI::Range(kLeastKernels, 1000u));
  CLI11_PARSE(app, argc, argv);

  const Runtime runtime;
  const Agent gpu = runtime.gpu();
  const std::vector<Row> rows = launch_loop::run(gpu, loop);
  print(rows, loop, gpu);
  bool right = true;
  for (const Row& row : rows) {
    right = right && row.is_right();
    if (!row.is_right())
      std::printf("\nWRONG RESULTS: %s (%u of %u observations, %s state).\n", name_of(row),
                  row.wrong_observations, row.steps, row.right_state ? "right" : "wrong");
  }
  if (right)
    std::puts("\nVerified: the host's bits in every observation, and in the state at the end.");
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "launch_loop: %s\n", error.what());
  return 1;
}
