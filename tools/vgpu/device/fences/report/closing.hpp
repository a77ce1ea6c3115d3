// The last line of a checked process: what was checked, and what was found.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/fences/checker.hpp"
#include "device/races/races.hpp"

namespace uptempo::vgpu::fences {

struct Closing {
  // The checks that were on. Without any, only floating-point atomics were checked.
  bool fences = false, memory = false, races = false;
  bool waits = false;        // with fences: also the host's missing waits
  Checker::Counts counts{};  // without fences and memory, only `dispatches` counts
  races::Races::Counts race_counts{};
  uint64_t ignored_atomics = 0;  // places
  // Findings of the other checks, by class, with those that did not occur.
  std::vector<std::pair<std::string_view, uint64_t>> others{};
  std::vector<std::string> unused_suppressions{};  // "FILE:LINE"
  std::string report_file{};                       // empty: findings are on stderr

  // Findings that were not suppressed.
  uint64_t findings() const noexcept {
    uint64_t sum = counts.total() + race_counts.findings + ignored_atomics;
    for (const auto& [name, number] : others) sum += number;
    return sum;
  }
};

// With races: "checked 12 dispatches for races: no findings". With both, ", and 10 of the
// dispatches for races" precedes the colon: kernels of the runtimes are not checked for races.
//
// "checked 12 dispatches, 3 copies and 98304 bytes: 3 findings (1 unordered, 2 stale); 2 more that
// only the specification forbids (fences,hsa); missing waits not looked for (fences,waits); 1
// repetition not shown (fences,repeated)"
std::string to_sentence(const Closing& closing);

// {"summary":{"process":26044,"dispatches":12,"copies":3,"bytes":98304,"findings":3,"unordered":1,
//  "stale":2,"unreleased":0,"ignored_atomics":0,"specification_only":2,"repeated":0,"suppressed":0,
//  "unused_suppressions":[]}}
// With --check memory also the number of each of its classes ("out-of-bounds":1).
std::string to_json(const Closing& closing, uint64_t process);

}  // namespace uptempo::vgpu::fences
