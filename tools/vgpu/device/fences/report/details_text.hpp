// Parts of the texts of all findings: source lines and allocations.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "device/fences/report/finding_text.hpp"
#include "device/fences/report/frame_text.hpp"

namespace uptempo::vgpu::fences {

// "a.cpp:1, a.cpp:2 or a.cpp:3"
std::string listed(const std::vector<std::string>& lines);
// A line on the allocation that holds `address`.
std::string described(const MemoryDetails& memory, GpuAddress address);

std::string json_list(const std::vector<std::string>& texts);
// ,"memory":{...}
std::string json_field(const MemoryDetails& memory, GpuAddress address);

}  // namespace uptempo::vgpu::fences
