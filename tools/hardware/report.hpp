// The rows of all probes as text and as JSON.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/hardware/child.hpp"
#include "tools/support/device.hpp"

namespace uptempo::hardware {

// The machine that was asked, as a child describes it:
// {device, line, target, isa, virtual_gpu, hsa_version, rocr_build, rocr_library, driver, kernel,
//  operating_system, environment: {ROCm's variables}, no_kernels: why the probes' kernels do not
//  load, or "", choices: [lines of Runtime::describe() and Queue::describe()]}.
// Reports what fails here, and does not throw for it.
nlohmann::ordered_json describe_machine(const support::Device& device);

// A paragraph per row: probe, verdict, what was found. At most 80 columns.
std::string text_of(const Row& row);
// The verdicts counted.
std::string summary_of(const std::vector<Row>& rows);

// {format: "uptempo-hardware-check-1", uptempo, the machine's fields,
//  interrupted, probes: [{probe, rule, verdict, text, seconds, measured, stderr}]}
nlohmann::ordered_json json_of(const nlohmann::ordered_json& machine, const std::vector<Row>& rows,
                               bool interrupted);

}  // namespace uptempo::hardware
