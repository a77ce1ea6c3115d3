// Executes a task of this program in another process under uptempo-vgpu, and the functions that
// such a process uses to query its device.
//
// The process's first argument names its task, the second one the file with its cases; the others
// are the task's own.
#pragma once

#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <uptempo/vgpu/query.h>
#include "tools/fence_scope/run/bench.hpp"
#include "tools/fence_scope/sequence/case_message.hpp"

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
                                      const char* task, std::span<const Case> cases,
                                      const std::vector<std::string>& arguments,
                                      std::optional<double> seconds = std::nullopt);

// The work of such a process, with its cases and other arguments. Returns the JSON to print.
using Task = nlohmann::ordered_json (*)(const Cases& cases,
                                        const std::vector<std::string>& arguments);
// The process's exit code; no value unless run_under_vgpu() has started this process for one of the
// tasks, by name. main() calls it before anything else.
std::optional<int> run_task(int argc, char** argv, const std::map<std::string, Task>& tasks);

// The virtual GPU's counts for this process; no value on hardware.
std::optional<uptempo_vgpu_device_counts> device_counts();
// The numbers of a bench's two queues in the virtual GPU's traces and findings; no value on
// hardware.
std::array<std::optional<uint32_t>, 2> device_numbers(const Bench& bench);

}  // namespace uptempo::fence_scope
