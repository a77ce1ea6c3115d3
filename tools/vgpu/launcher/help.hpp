// The launcher's help text.
#pragma once

#include <string>

namespace uptempo::vgpu::launcher {

std::string help();

// The targets of --device: "gfx900, gfx906"
std::string targets();

}  // namespace uptempo::vgpu::launcher
