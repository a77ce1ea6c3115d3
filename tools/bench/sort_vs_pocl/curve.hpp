// The comparison on 1, 2, 4, ... cores: each in a process of its own that may use only these cores,
// because the virtual GPU and PoCL both choose their threads when they are loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace uptempo::bench {

// The numbers of cores to compare on: powers of two, and last all that this process may use.
std::vector<uint32_t> core_counts(uint32_t usable);

// Runs `arguments` (this program and its options, without --curve) on that many cores and returns
// its JSON. Throws std::runtime_error with the program's own message if it fails.
nlohmann::ordered_json run_on_cores(const std::vector<std::string>& arguments, uint32_t cores);

// `results`: the JSON of each number of cores, in order.
std::string curve_table(const std::vector<nlohmann::ordered_json>& results);

}  // namespace uptempo::bench
