// The function tables of ROCr that a tool changes, as they are in ROCr 5.2 and from 6.1 on.
//
// The table of AMD's extensions got functions in its middle between the two (its major version went
// from 1 to 2), so its functions are found by position, not by the header of the build. The core
// table only grew at its end. A table that is neither of the two is refused by name.
//
// Thread safety: OnLoad's thread.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>
#include <hsa/hsa_ext_amd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace uptempo::lint {

enum class AmdFunction : uint8_t {
  get_dispatch_time,
  signal_async_handler,
  signal_wait_any,
  memory_async_copy,
  memory_async_copy_on_engine,
  pointer_info,
  signal_create,
  ipc_signal_create,
  ipc_signal_attach,
  queue_intercept_create,
  memory_async_copy_rect,
  runtime_queue_create_register,
  signal_value_pointer,
  signal_wait_all,
};
constexpr size_t kAmdFunctions = static_cast<size_t>(AmdFunction::signal_wait_all) + 1;

// The entries of ROCr's table of AMD's extensions; null where the runtime has none.
struct AmdEntries {
  std::array<void**, kAmdFunctions> at{};
  void** operator[](AmdFunction function) const { return at[static_cast<size_t>(function)]; }
};

// Throws std::runtime_error, which names the table, its version and size, and what is known.
AmdEntries check_tables(const HsaApiTable& table);

}  // namespace uptempo::lint
