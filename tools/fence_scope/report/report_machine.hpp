// On what a report was made.
#pragma once

#include "tools/fence_scope/report/report.hpp"
#include "tools/support/device.hpp"

namespace uptempo::fence_scope {

// Fills `device`, `target`, `time_kind`, `versions` and `environment`. Versions that cannot be found out are left out: "uptempo", "hsa", "rocr" (its
// library's name holds the version), "rocr build", "kernel driver", "operating system".
//
// Thread safety: any thread, but for setenv() beside it. Lifetime: within that of the device's Runtime.
void describe_machine(Report& report, const support::Device& device);

}  // namespace uptempo::fence_scope
