#include "switches.hpp"

namespace uptempo::sort {

std::string name_of(const Switches& switches) {
  std::string name;
  for (const SwitchInfo& info : kSwitches) {
    if (!(switches.*info.member)) continue;
    if (!name.empty()) name += '+';
    name += info.name;
  }
  return name.empty() ? "baseline" : name;
}

std::vector<Rung> ladder() {
  std::vector<Rung> rungs{{.name = "baseline", .switches = {}}};
  Switches switches;
  for (const SwitchInfo& info : kSwitches) {
    switches.*info.member = true;
    rungs.push_back({.name = info.name, .switches = switches});
  }
  return rungs;
}

}  // namespace uptempo::sort
