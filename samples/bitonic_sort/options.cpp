#include "samples/bitonic_sort/options.hpp"

#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"

namespace uptempo::sort {

void declare(support::CommandLine& app, Options& options) {
  for (const SwitchInfo& info : kSwitches)
    app.flag("--" + std::string(info.name), options.switches.*info.member, info.help)
        .group("Switches");
  app.flag("--baseline", options.baseline, "Measure without any switch").group("Switches");
  app.flag("--ladder", options.ladder, "Run the ladder (the default)").group("Switches");
  app.option("--length N", options.length, "Number of keys: a power of two from 2 to 2^24 (32768)");
  app.option("--iterations N", options.iterations, "Timed sorts per rung (25)").range(1u, 1000000u);
  app.option("--seed N", options.seed, "Seed of the random keys (1)");
  app.flag("--descending", options.descending, "Sort the largest key first");
  app.flag("!--no-verify", options.verify, "Do not compare every result with std::sort");
  app.flag("--verify", options.verify, "Compare them (the default)");
  support::add_device_option(app, options.device);
  support::add_json_option(app, options.json_file);
  app.option("--svg FILE", options.svg_file, "Draw the times as a chart").output_file();
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
