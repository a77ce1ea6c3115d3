// The machine and software of a report.
#pragma once

#include "tools/fence_scope/report/report.hpp"
#include "tools/support/device.hpp"

namespace uptempo::fence_scope {

// Fills `device`, `target`, `time_kind`, `versions` and `environment`. The versions are "uptempo",
// "hsa", "rocr" (its library's name holds the version), "rocr build", "kernel driver" and
// "operating system"; unknown ones are left out.
//
// Thread safety: any thread, but not concurrently with setenv().
// Lifetime: within that of the device's Runtime.
void describe_machine(Report& report, const support::Device& device);

}  // namespace uptempo::fence_scope
