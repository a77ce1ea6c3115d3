// Parts of the texts of all findings: numbers, accesses, source lines and allocations.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/fences/report/finding_text.hpp"
#include "device/fences/report/frame_text.hpp"

namespace uptempo::vgpu::fences {

// "1 copy", "2 copies"
std::string counted(uint64_t number, std::string_view one, std::string_view several);
// "1 byte", "2 bytes"
std::string counted(uint64_t number, std::string_view unit);
// "read", "write", "atomic"
std::string_view access_name(Access access) noexcept;
// "3,0,0"
std::string listed(const std::array<uint32_t, 3>& workgroup);
// "a.cpp:1, a.cpp:2 or a.cpp:3"
std::string listed(const std::vector<std::string>& lines);
// A line on the allocation that holds `address`.
std::string described(const MemoryDetails& memory, GpuAddress address);

// Names for a list in parentheses: "stream 0x55d0c0, ", "hsa_queue_t 0x7f0080 of id 3, ".
std::string described(const QueueName& name);
// ,"stream":"0x55d0c0"
std::string json_field(const QueueName& name);

std::string json_list(const std::vector<std::string>& texts);
// ,"memory":{...}
std::string json_field(const MemoryDetails& memory, GpuAddress address);

}  // namespace uptempo::vgpu::fences
