// What the virtual /dev and /sys hold for one emulated device: KFD's topology, the DRM node, the driver module.
#pragma once

#include "interpose/tree.hpp"

namespace uptempo::vgpu::interpose {

// The tree of the device that the environment asks for. Throws std::invalid_argument as Options::from_environment() does.
Tree device_tree();

}  // namespace uptempo::vgpu::interpose
