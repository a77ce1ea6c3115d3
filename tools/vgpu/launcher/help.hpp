// The launcher's options, and the help text that lists them.
#pragma once

#include <string>
#include <vector>

#include "tools/support/launch/completion.hpp"

namespace uptempo::vgpu::launcher {

// Several entries of one name are ways to use one option. --help and --version have no text.
std::vector<support::OptionText> options();

std::string help();

// The targets of --device: "gfx900, gfx906"
std::string targets();

}  // namespace uptempo::vgpu::launcher
