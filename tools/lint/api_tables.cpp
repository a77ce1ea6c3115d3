#include "tools/lint/api_tables.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace uptempo::lint {
namespace {

constexpr int kMissing = -1;

// Positions of functions after the table's version.
struct Layout {
  uint32_t major;
  const char* runtime;
  uint32_t least_functions, most_functions;
  std::array<int, kAmdFunctions> position;
};
constexpr std::array<Layout, 2> kLayouts{{
    {1, "ROCr 5.2", 48, 48, {4, 7, 9, 15, kMissing, 26, 31, 32, 33, 35, 38, 39, 43, kMissing}},
    {2, "ROCr 6.1 and newer", 68, ~0u, {4, 7, 9, 15, 16, 28, 33, 34, 35, 37, 40, 41, 45, 71}},
}};

// The layout that belongs to the header of this build agrees with it.
consteval size_t byte_of(size_t layout, AmdFunction function) {
  return sizeof(ApiTableVersion) +
         sizeof(void*) *
             static_cast<size_t>(kLayouts[layout].position[static_cast<size_t>(function)]);
}
constexpr size_t kBuilt = HSA_AMD_EXT_API_TABLE_MAJOR_VERSION - 1;
static_assert(byte_of(kBuilt, AmdFunction::get_dispatch_time) ==
              offsetof(AmdExtTable, hsa_amd_profiling_get_dispatch_time_fn));
static_assert(byte_of(kBuilt, AmdFunction::signal_async_handler) ==
              offsetof(AmdExtTable, hsa_amd_signal_async_handler_fn));
static_assert(byte_of(kBuilt, AmdFunction::signal_wait_any) ==
              offsetof(AmdExtTable, hsa_amd_signal_wait_any_fn));
static_assert(byte_of(kBuilt, AmdFunction::memory_async_copy) ==
              offsetof(AmdExtTable, hsa_amd_memory_async_copy_fn));
static_assert(byte_of(kBuilt, AmdFunction::pointer_info) ==
              offsetof(AmdExtTable, hsa_amd_pointer_info_fn));
static_assert(byte_of(kBuilt, AmdFunction::signal_create) ==
              offsetof(AmdExtTable, hsa_amd_signal_create_fn));
static_assert(byte_of(kBuilt, AmdFunction::ipc_signal_create) ==
              offsetof(AmdExtTable, hsa_amd_ipc_signal_create_fn));
static_assert(byte_of(kBuilt, AmdFunction::ipc_signal_attach) ==
              offsetof(AmdExtTable, hsa_amd_ipc_signal_attach_fn));
static_assert(byte_of(kBuilt, AmdFunction::queue_intercept_create) ==
              offsetof(AmdExtTable, hsa_amd_queue_intercept_create_fn));
static_assert(byte_of(kBuilt, AmdFunction::memory_async_copy_rect) ==
              offsetof(AmdExtTable, hsa_amd_memory_async_copy_rect_fn));
static_assert(byte_of(kBuilt, AmdFunction::runtime_queue_create_register) ==
              offsetof(AmdExtTable, hsa_amd_runtime_queue_create_register_fn));
static_assert(byte_of(kBuilt, AmdFunction::signal_value_pointer) ==
              offsetof(AmdExtTable, hsa_amd_signal_value_pointer_fn));

// The last function of the core table that the lint replaces or calls.
constexpr size_t kCoreBytes =
    offsetof(CoreApiTable, hsa_executable_iterate_agent_symbols_fn) + sizeof(void*);

std::runtime_error refused(const char* table, const ApiTableVersion& version, const char* known) {
  return std::runtime_error(
      fmt::format("the {} of this ROCr has version {}.{} and {} bytes; known are {}", table,
                  version.major_id, version.step_id, version.minor_id, known));
}

}  // namespace

AmdEntries check_tables(const HsaApiTable& table) {
  constexpr size_t kRootBytes = offsetof(HsaApiTable, amd_ext_) + sizeof(void*);
  if (table.version.major_id < 1 || table.version.major_id > 3 ||
      table.version.minor_id < kRootBytes)
    throw refused("root table", table.version, "the versions 1 to 3");
  if (table.core_ == nullptr || table.amd_ext_ == nullptr)
    throw std::runtime_error("the tables of this ROCr lack the core or the AMD extensions");
  const ApiTableVersion& core = table.core_->version;
  if (core.major_id < 1 || core.major_id > 2 || core.minor_id < kCoreBytes)
    throw refused("core table", core, "the versions 1 and 2");
  const ApiTableVersion& amd = table.amd_ext_->version;
  const size_t functions = (amd.minor_id - sizeof(ApiTableVersion)) / sizeof(void*);
  for (const Layout& layout : kLayouts) {
    if (amd.major_id != layout.major || functions < layout.least_functions ||
        functions > layout.most_functions)
      continue;
    AmdEntries entries;
    auto* const first =
        reinterpret_cast<void**>(reinterpret_cast<char*>(table.amd_ext_) + sizeof(ApiTableVersion));
    for (size_t i = 0; i < kAmdFunctions; ++i)
      if (layout.position[i] != kMissing && static_cast<size_t>(layout.position[i]) < functions)
        entries.at[i] = first + layout.position[i];
    return entries;
  }
  throw refused("table of AMD's extensions", amd,
                "version 1 with 400 bytes (ROCr 5.2), and version 2 from 560 bytes on "
                "(ROCr 6.1 and newer)");
}

}  // namespace uptempo::lint
