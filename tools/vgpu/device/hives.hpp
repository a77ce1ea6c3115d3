// Hives: GPUs that xGMI links to one another.
//
// GPUs of one target form hives in order, each of as many as a hive of that target has boards.
#pragma once

#include <cstdint>
#include <optional>

#include "device/options.hpp"

namespace uptempo::vgpu {

// A GPU's place in its hive.
struct HivePlace {
  uint32_t hive;      // from 1, unique among all targets
  uint32_t position;  // in the hive
  uint32_t boards;    // of the hive
};

// Returns the place of a GPU of `options`, or nothing if xGMI links it to no other GPU.
std::optional<HivePlace> hive_place(uint32_t gpu, const Options& options);

// Returns whether two GPUs are in one hive. Others reach each other by PCI Express.
bool share_hive(uint32_t gpu, uint32_t peer, const Options& options);

}  // namespace uptempo::vgpu
