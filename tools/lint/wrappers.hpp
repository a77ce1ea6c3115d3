// The functions that take the place of ROCr's in its tables.
//
// Thread safety: once install() has returned, the functions run on any thread. They stay valid
// until the process ends.
#pragma once

#include <hsa/hsa_api_trace.h>

#include "tools/lint/api_tables.hpp"
#include "tools/lint/session.hpp"

namespace uptempo::lint {

// Requires that they are not installed, nor below another tool's functions: they would call
// themselves. `session` lives until the process ends.
void install(Session& session, CoreApiTable& core, const AmdEntries& amd);

}  // namespace uptempo::lint
