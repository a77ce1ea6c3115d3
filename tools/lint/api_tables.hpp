// The function tables of ROCr that a tool changes, as they are in ROCr 5.2 and from 6.1 on. Others
// are refused by name. The core table only grew at its end.
//
// Thread safety: OnLoad's thread.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>

#include "tools/support/rocr_tables.hpp"

namespace uptempo::lint {

using support::AmdEntries;
using support::AmdFunction;
using support::kAmdFunctions;

// Throws std::runtime_error, which names the table, its version and size, and what is known.
AmdEntries check_tables(const HsaApiTable& table);

}  // namespace uptempo::lint
