#include "tools/lint/api_tables.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>

namespace uptempo::lint {
namespace {

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
  if (const auto entries = support::find_amd_entries(*table.amd_ext_)) return *entries;
  throw refused("table of AMD's extensions", amd, support::kKnownAmdTables);
}

}  // namespace uptempo::lint
