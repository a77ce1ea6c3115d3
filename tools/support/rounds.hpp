// Rounds in which whatever is measured takes one turn, in random order: a machine whose speed drifts treats all alike, and values of the same round may be
// divided by each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace CLI {
class App;
}

namespace uptempo::support {

struct Rounds {
  uint32_t count = 40;
  uint64_t seed = 1;
};

// `--rounds N`, of which there must be `least`, and `--seed N`; by default what `rounds` holds.
void add_rounds_options(CLI::App& app, Rounds& rounds, uint32_t least);

// Calls `take` with each number below `turns` once a round, in an order that depends on the seed alone. A terminal sees which round it is.
void take_turns(const Rounds& rounds, size_t turns, const std::function<void(size_t turn)>& take);

// The same for as long as `enough` answers false; it is asked before each round, and told how many are over.
void take_turns(uint64_t seed, size_t turns, const std::function<void(size_t turn)>& take,
                const std::function<bool(uint32_t rounds)>& enough);

}  // namespace uptempo::support
