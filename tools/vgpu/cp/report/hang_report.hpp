// The text of a hang report: queues, what they wait for, who would end the wait, and the resident
// waves. A report says what is known and names what it could not find out.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cp/report/snapshot.hpp"
#include "cp/report/source_lookup.hpp"
#include "device/memory.hpp"

namespace uptempo::vgpu {

struct ReportedGpu {
  DeviceSnapshot snapshot;
  AddressSpace* memory = nullptr;  // to read code and the names of kernels
};

// `reason` ends the first line. `several_gpus`: lines name the GPU. `sources` may be null.
std::string hang_report(std::string_view reason, std::span<const ReportedGpu> gpus,
                        bool several_gpus, SourceLookup* sources);

}  // namespace uptempo::vgpu
