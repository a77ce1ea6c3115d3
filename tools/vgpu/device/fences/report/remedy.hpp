// The change of the program that makes a finding disappear, in the terms of the library that
// published the tasks.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <string>

#include "device/fences/finding.hpp"

namespace uptempo::vgpu::fences {

// The library by which the program published a packet.
enum class Library : uint8_t { hsa, hip, uptempo };

// That of the host is not used.
struct Libraries {
  Library writer, reader;
};

std::string remedy(const Finding& finding, Libraries libraries);

}  // namespace uptempo::vgpu::fences
