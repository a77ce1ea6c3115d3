// Interleaved measurement: in each round every subject takes one turn, in random order. A drift of
// the machine's speed affects all subjects alike, so values of the same round may be divided by
// each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace uptempo::support {

class CommandLine;

struct Rounds {
  uint32_t count = 40;
  uint64_t seed = 1;
};

// Adds `--rounds N`, at least `least`, and `--seed N`; the defaults are the values of `rounds`.
void add_rounds_options(CommandLine& command_line, Rounds& rounds, uint32_t least);

// Calls `take` with each number below `turns` once per round, in an order that depends on the seed
// alone. Shows the round and the remaining time on a terminal. Ends after the first round during
// which SIGINT arrives (interrupt.hpp). Returns the number of finished rounds.
uint32_t take_turns(const Rounds& rounds, size_t turns,
                    const std::function<void(size_t turn)>& take);

// The same, until `enough` returns true, and without regard to SIGINT. It is called before each
// round with the number of finished rounds.
void take_turns(uint64_t seed, size_t turns, const std::function<void(size_t turn)>& take,
                const std::function<bool(uint32_t rounds)>& enough);

}  // namespace uptempo::support
