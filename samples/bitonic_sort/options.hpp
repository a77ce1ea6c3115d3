// The command line of bitonic_sort.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "samples/bitonic_sort/network.hpp"
#include "samples/bitonic_sort/switches.hpp"

namespace uptempo::support {
class CommandLine;
}

namespace uptempo::sort {

struct Options {
  Switches switches;
  bool baseline = false;
  bool ladder = false;
  int64_t length = 32768;
  uint32_t iterations = 25;
  uint64_t seed = 1;
  bool descending = false;
  bool verify = true;
  std::string device = "auto";
  std::string json_file;  // empty: none; "-": standard output
  std::string svg_file;
};

// Declares the options. Their values are in `options` after `app` has parsed.
void declare(support::CommandLine& app, Options& options);

// The rungs to measure: the ladder, or one rung of exactly the switches given (--baseline: none).
// Throws support::UsageError if options contradict each other.
std::vector<Rung> rungs(const Options& options);

// The network of `--length length`. Throws support::UsageError for an invalid length.
Network network_for_option(int64_t length);

}  // namespace uptempo::sort
