// What to change in the program so that a finding disappears, in the terms of the library that the
// program uses.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <string>

#include "device/fences/finding.hpp"

namespace uptempo::vgpu::fences {

enum class Library : uint8_t { hsa, hip };

std::string remedy(const Finding& finding, Library library);

}  // namespace uptempo::vgpu::fences
