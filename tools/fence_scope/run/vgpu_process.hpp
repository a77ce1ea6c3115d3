// Executes this program in another process under uptempo-vgpu, and the functions that such a
// process uses to query its device.
//
// The process's first argument names its kind; the other arguments describe its task. main() calls
// the function of each kind before anything else (run_judge_process(), run_trace_process()).
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/fence_scope/run/bench.hpp"
#include "tools/fence_scope/sequence/case_message.hpp"
#include "tools/vgpu/query.h"

namespace uptempo::fence_scope {

// The process was ended because its time was up.
struct OutOfTime : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Starts the process, waits for its end, and returns the JSON that it printed. The launcher gets
// exactly these options, whatever this process was started with; the device of $UPTEMPO_VGPU_DEVICE
// remains.
// Errors: std::runtime_error with the process's message if it fails, or if uptempo-vgpu is not
// found; OutOfTime after `seconds`; support::Interrupted once support::interrupted(). The process
// has then ended.
// Thread safety: one thread at a time.
nlohmann::ordered_json run_under_vgpu(const std::vector<std::string>& launcher_options,
                                      const std::vector<std::string>& arguments,
                                      std::optional<double> seconds = std::nullopt);

// Cases are passed to the process in a file. Both throw std::runtime_error naming a file that
// cannot be written or read.
void write_case_file(const std::string& file, std::span<const Case> cases);
Cases read_case_file(const std::string& file);

// The virtual GPU's counts for this process; no value on hardware.
std::optional<uptempo_vgpu_device_counts> device_counts();
// The numbers of a bench's two queues in the virtual GPU's traces and findings; no value on
// hardware.
std::array<std::optional<uint32_t>, 2> device_numbers(const Bench& bench);

}  // namespace uptempo::fence_scope
