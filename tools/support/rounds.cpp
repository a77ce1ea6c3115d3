#include "tools/support/rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "tools/support/command_line.hpp"
#include "tools/support/interrupt.hpp"
#include "tools/support/program.hpp"

namespace uptempo::support {

void add_rounds_options(CommandLine& command_line, Rounds& rounds, uint32_t least) {
  command_line
      .option("--rounds N", rounds.count,
              fmt::format("Rounds, at least {} ({})", least, rounds.count))
      .range(least, 100000u);
  command_line.option("--seed N", rounds.seed,
                      fmt::format("Seed of the order within a round ({})", rounds.seed));
}

uint32_t take_turns(const Rounds& rounds, size_t turns,
                    const std::function<void(size_t turn)>& take) {
  const InterruptWatch watch;
  Progress progress;
  uint32_t finished = 0;
  take_turns(rounds.seed, turns, take, [&](uint32_t taken) {
    finished = taken;
    if (taken == rounds.count || (taken > 0 && interrupted())) return true;
    progress.show(fmt::format("round {} of {}", taken + 1, rounds.count), taken, rounds.count);
    return false;
  });
  return finished;
}

void take_turns(uint64_t seed, size_t turns, const std::function<void(size_t turn)>& take,
                const std::function<bool(uint32_t rounds)>& enough) {
  std::vector<size_t> order(turns);
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937_64 random(seed);
  for (uint32_t taken = 0; !enough(taken); ++taken) {
    std::ranges::shuffle(order, random);
    std::ranges::for_each(order, take);
  }
}

}  // namespace uptempo::support
