// Content of the virtual /dev and /sys for the emulated GPUs: KFD's topology, the DRM node, the
// driver module.
#pragma once

#include "interpose/tree.hpp"

namespace uptempo::vgpu::interpose {

// Returns the tree of the GPUs that the environment selects. Throws std::invalid_argument like
// Options::from_environment().
Tree device_tree();

}  // namespace uptempo::vgpu::interpose
