#include "samples/bitonic_sort/options.hpp"

#include <CLI/CLI.hpp>

#include "tools/support/device.hpp"
#include "tools/support/program.hpp"

namespace uptempo::sort {

void declare(CLI::App& app, Options& options) {
  app.description(
      "Sorts keys on the GPU, one kernel dispatch per pass of a bitonic sort, and\n"
      "shows the effect of five switches that make dispatches cheaper. Without a switch\n"
      "it runs the ladder: the baseline, then one more switch per rung.");
  for (const SwitchInfo& info : kSwitches)
    app.add_flag("--" + std::string(info.name), options.switches.*info.member, info.help)
        ->group("Switches");
  app.add_flag("--baseline", options.baseline, "Measure without any switch")->group("Switches");
  app.add_flag("--ladder", options.ladder, "Run the ladder (the default)")->group("Switches");
  app.add_option("--length", options.length,
                 "Number of keys: a power of two from 2 to 2^24 (32768)")
      ->type_name("N");
  app.add_option("--iterations", options.iterations, "Timed sorts per rung (25)")
      ->check(CLI::Range(1u, 1000000u).description(""))
      ->type_name("N");
  app.add_option("--seed", options.seed, "Seed of the random keys (1)")->type_name("N");
  app.add_flag("--descending", options.descending, "Sort the largest key first");
  app.add_flag("!--no-verify", options.verify, "Do not compare every result with std::sort");
  app.add_flag("--verify", options.verify, "Compare them (the default)");
  support::add_device_option(app, options.device);
  support::add_json_option(app, options.json_file);
  app.add_option("--svg", options.svg_file, "Draw the times as a chart")->type_name("FILE");
}

std::vector<Rung> rungs(const Options& options) {
  const bool any_switch = !(options.switches == Switches{});
  if (options.baseline && any_switch)
    throw support::UsageError("--baseline means no switch at all, but " +
                              name_of(options.switches) + " was given too");
  if (options.ladder && (options.baseline || any_switch))
    throw support::UsageError("--ladder adds all switches by itself; leave out " +
                              name_of(options.switches));
  if (options.baseline || any_switch)
    return {{.name = name_of(options.switches), .switches = options.switches}};
  return ladder();
}

Network network_for_option(int64_t length) {
  try {
    return Network(length);
  } catch (const std::invalid_argument& error) {
    throw support::UsageError(std::string("--length: ") + error.what());
  }
}

}  // namespace uptempo::sort
