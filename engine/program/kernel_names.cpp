#include "engine/program/kernel_names.hpp"

#include <hsa/hsa_ven_amd_loader.h>

#include <algorithm>

namespace uptempo::detail {
namespace {

struct Search {
  hsa_agent_t agent;
  uint64_t object;
  std::string name;
};

hsa_status_t compare_symbol(hsa_executable_t, hsa_agent_t, hsa_executable_symbol_t symbol,
                            void* data) {
  Search& search = *static_cast<Search*>(data);
  hsa_symbol_kind_t kind{};
  uint64_t object = 0;
  if (hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind) !=
          HSA_STATUS_SUCCESS ||
      kind != HSA_SYMBOL_KIND_KERNEL ||
      hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object) !=
          HSA_STATUS_SUCCESS ||
      object != search.object)
    return HSA_STATUS_SUCCESS;
  uint32_t length = 0;
  hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH, &length);
  search.name.resize(length);
  hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME, search.name.data());
  if (search.name.ends_with(".kd")) search.name.resize(search.name.size() - 3);
  return HSA_STATUS_INFO_BREAK;
}

// Inside of ROCr's iteration, because its lock keeps the executable from being destroyed.
hsa_status_t search_executable(hsa_executable_t executable, void* data) {
  Search& search = *static_cast<Search*>(data);
  hsa_executable_iterate_agent_symbols(executable, search.agent, compare_symbol, data);
  return search.name.empty() ? HSA_STATUS_SUCCESS : HSA_STATUS_INFO_BREAK;
}

}  // namespace

KernelNames& KernelNames::of_process() {
  static KernelNames* const instance = new KernelNames;
  return *instance;
}

void KernelNames::add(uint64_t object, std::string_view name, const void* owner) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[object];
  unloaded_ -= entry.unloaded != 0;
  entry = {.name = std::string(name), .owner = owner, .unloaded = 0};
}

void KernelNames::unload(const void* owner) noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [object, entry] : entries_) {
    if (entry.owner != owner || entry.unloaded != 0) continue;
    entry.unloaded = ++unloads_;
    ++unloaded_;
  }
  for (; unloaded_ > kMostUnloaded; --unloaded_) {
    const auto age = [](const auto& each) {
      return each.second.unloaded != 0 ? each.second.unloaded : UINT64_MAX;
    };
    entries_.erase(std::ranges::min_element(entries_, {}, age));
  }
}

std::string KernelNames::find(uint64_t object) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(object);
  if (found == entries_.end()) return {};
  return found->second.unloaded == 0 ? found->second.name : found->second.name + " (unloaded)";
}

std::string name_of_kernel(uint64_t object, hsa_agent_t agent) {
  std::string known = KernelNames::of_process().find(object);
  if (agent.handle == 0 || (!known.empty() && !known.ends_with(" (unloaded)"))) return known;
  hsa_ven_amd_loader_1_03_pfn_t loader{};
  if (hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER, 1, sizeof loader, &loader) !=
      HSA_STATUS_SUCCESS)
    return known;
  if (loader.hsa_ven_amd_loader_iterate_executables == nullptr) return known;  // an older table
  Search search{.agent = agent, .object = object, .name = {}};
  loader.hsa_ven_amd_loader_iterate_executables(search_executable, &search);
  return search.name.empty() ? known : search.name;
}

}  // namespace uptempo::detail
