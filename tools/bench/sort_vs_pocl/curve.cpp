#include "tools/bench/sort_vs_pocl/curve.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <stdexcept>

#include "tools/support/command.hpp"
#include "tools/support/table.hpp"

namespace uptempo::bench {
namespace {

// The first `count` cores that this process may use, as taskset reads them.
std::string first_cores(uint32_t count) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    throw std::runtime_error("the system does not say which cores this process may use");
  std::string list;
  for (int core = 0; core < CPU_SETSIZE && count > 0; ++core) {
    if (!CPU_ISSET(core, &set)) continue;
    list += fmt::format("{}{}", list.empty() ? "" : ",", core);
    --count;
  }
  return list;
}

}  // namespace

std::vector<uint32_t> core_counts(uint32_t usable) {
  std::vector<uint32_t> counts;
  for (uint32_t count = 1; count < usable; count *= 2) counts.push_back(count);
  counts.push_back(usable);
  return counts;
}

nlohmann::ordered_json run_on_cores(const std::vector<std::string>& arguments, uint32_t cores) {
  std::vector<std::string> command{"taskset", "-c", first_cores(cores)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  // PoCL counts the machine's cores, not those that the process may use.
  const test::CommandResult result = test::run_command(
      command, {.environment = {fmt::format("POCL_MAX_PTHREAD_COUNT={}", cores)}});
  if (result.exit_code != 0)
    throw std::runtime_error(fmt::format(
        "the comparison on {} cores ended with {}: {}", cores, result.exit_code,
        result.err.empty() ? "no message" : result.err.substr(0, result.err.find('\n'))));
  return nlohmann::ordered_json::parse(result.out);
}

std::string curve_table(const std::vector<nlohmann::ordered_json>& results) {
  support::Table table({{"cores"},
                        {"Uptempo,\nmedian us"},
                        {"times faster\nthan on the first"},
                        {"PoCL,\nmedian us"},
                        {"times faster\nthan on the first"},
                        {"Uptempo / PoCL"},
                        {"95 % interval"}});
  for (const nlohmann::ordered_json& result : results) {
    const auto median = [&](const nlohmann::ordered_json& of, const char* figure) {
      return of[figure]["median"].get<double>();
    };
    const double ours = median(result, "uptempo_us"), peer = median(result, "pocl_us");
    table.add_row({fmt::format("{}", result["cores"].get<uint32_t>()), fmt::format("{:.0f}", ours),
                   fmt::format("{:.1f}", median(results.front(), "uptempo_us") / ours),
                   fmt::format("{:.0f}", peer),
                   fmt::format("{:.1f}", median(results.front(), "pocl_us") / peer),
                   fmt::format("{:.2f}", median(result, "ratio")),
                   fmt::format("{:.2f} .. {:.2f}", result["ratio"]["low"].get<double>(),
                               result["ratio"]["high"].get<double>())});
  }
  const nlohmann::ordered_json& first = results.front();
  return fmt::format(
      "{}, beside {} on the same cores\n"
      "{} keys, {} kernels from the same source, {} interleaved pairs for each number of cores\n\n"
      "{}\nVerified: every result of both equals std::sort of its input.\n",
      first["virtual_gpu"].get<bool>() ? "Times of the virtual GPU"
                                       : first["device"].get<std::string>(),
      first["peer"].get<std::string>(), first["length"].get<uint32_t>(),
      first["kernels"].get<uint32_t>(), first["pairs"].get<uint32_t>(), table.text());
}

}  // namespace uptempo::bench
