// This program once more, in a process of its own under uptempo-vgpu; and what such a process asks of its device.
//
// What that process is to do stands in its arguments, the first of which names its kind. main() asks each kind ahead of everything else whether this process is one
// (run_judge_process(), run_trace_process()).
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/fence_scope/run/bench.hpp"
#include "tools/fence_scope/sequence/case_message.hpp"
#include "tools/vgpu/query.h"

namespace uptempo::fence_scope {

// Starts it, waits for its end, and returns the JSON that it printed. The options of the launcher are these alone, whatever this process was started with; the device of
// $UPTEMPO_VGPU_DEVICE stays. Throws std::runtime_error with the process's words if it fails, or if uptempo-vgpu is not found. From one thread at a time.
nlohmann::ordered_json run_under_vgpu(const std::vector<std::string>& launcher_options,
                                      const std::vector<std::string>& arguments);

// How cases get there. Both throw std::runtime_error naming a file that cannot be written or read.
void write_case_file(const std::string& file, std::span<const Case> cases);
Cases read_case_file(const std::string& file);

// What the virtual GPU has counted so far for this process; nothing on hardware.
std::optional<uptempo_vgpu_device_counts> device_counts();
// How its traces and findings call the two queues of a bench; nothing on hardware.
std::array<std::optional<uint32_t>, 2> device_numbers(const Bench& bench);

}  // namespace uptempo::fence_scope
