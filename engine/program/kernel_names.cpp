#include <uptempo/program/kernel_names.hpp>

#include <cxxabi.h>
#include <hsa/hsa_ven_amd_loader.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace uptempo {
namespace {

// Returns the position of the bracket that the last character of `text` closes, or npos.
size_t opening_of_last(std::string_view text) {
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// Returns the C++ name without its parameters.
std::string_view without_parameters(std::string_view name) {
  if (!name.ends_with(')')) return name;
  const size_t begin = opening_of_last(name);
  return begin == std::string_view::npos ? name : name.substr(0, begin);
}

// Position after the return type, which the demangler prints for templates only.
size_t end_of_return_type(std::string_view name) {
  int depth = 0;
  size_t end = 0;
  const size_t parameters = without_parameters(name).size();
  for (size_t i = 0; i < parameters; ++i) {
    if (name[i] == '<' || name[i] == '(') ++depth;
    if (name[i] == '>' || name[i] == ')') --depth;
    if (name[i] == ' ' && depth == 0) end = i + 1;
  }
  return end;
}

struct KernelSearch {
  hsa_agent_t agent;
  uint64_t object;
  std::string name;
};

hsa_status_t compare_symbol(hsa_executable_t, hsa_agent_t, hsa_executable_symbol_t symbol,
                            void* data) {
  KernelSearch& search = *static_cast<KernelSearch*>(data);
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
  KernelSearch& search = *static_cast<KernelSearch*>(data);
  hsa_executable_iterate_agent_symbols(executable, search.agent, compare_symbol, data);
  return search.name.empty() ? HSA_STATUS_SUCCESS : HSA_STATUS_INFO_BREAK;
}

}  // namespace

std::string cpp_name(const std::string& symbol) {
  int status = 0;
  // clang appends ".intern.<hash>" and the like to symbols that are not visible to other files.
  const std::string mangled = symbol.substr(0, symbol.find('.'));
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  // It also reads the encoding of a type, such as "i" for int.
  if (status != 0 || !symbol.starts_with("_Z")) return symbol;
  const std::string_view whole = name.get();
  return std::string(whole.substr(end_of_return_type(whole)));
}

std::vector<size_t> kernels_named(std::string_view name, std::span<const std::string> symbols) {
  std::vector<size_t> exact, without;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i] == name) return {i};
    const std::string cpp = cpp_name(symbols[i]);
    if (cpp == name) exact.push_back(i);
    if (without_parameters(cpp) == name) without.push_back(i);
  }
  return exact.empty() ? without : exact;
}

namespace detail {

KernelNames& KernelNames::of_process() {
  static KernelNames* const instance = new KernelNames;
  return *instance;
}

void KernelNames::add(uint64_t object, std::string_view name, const void* owner) {
  const std::lock_guard lock(mutex_);
  entries_[object] = {.name = std::string(name), .owner = owner};
}

void KernelNames::unload(const void* owner) noexcept {
  const std::lock_guard lock(mutex_);
  const auto is_unloaded = [](const auto& each) { return each.second.unloaded; };
  if (static_cast<size_t>(std::ranges::count_if(entries_, is_unloaded)) > kMost)
    std::erase_if(entries_, is_unloaded);
  for (auto& [object, entry] : entries_)
    if (entry.owner == owner) entry.unloaded = true;
}

std::string KernelNames::find(uint64_t object) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(object);
  if (found == entries_.end()) return {};
  return found->second.name + (found->second.unloaded ? " (unloaded)" : "");
}

std::string name_of_kernel(uint64_t object, hsa_agent_t agent) {
  std::string known = KernelNames::of_process().find(object);
  if (agent.handle == 0 || (!known.empty() && !known.ends_with(" (unloaded)"))) return known;
  hsa_ven_amd_loader_1_03_pfn_t loader{};
  if (hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER, 1, sizeof loader, &loader) !=
      HSA_STATUS_SUCCESS)
    return known;
  if (loader.hsa_ven_amd_loader_iterate_executables == nullptr) return known;  // an older table
  KernelSearch search{.agent = agent, .object = object, .name = {}};
  loader.hsa_ven_amd_loader_iterate_executables(search_executable, &search);
  return search.name.empty() ? known : search.name;
}

}  // namespace detail
}  // namespace uptempo
