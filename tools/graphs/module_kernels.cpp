#include "tools/graphs/module_kernels.hpp"

#include <cstddef>
#include <exception>
#include <new>

namespace uptempo::graphs {
namespace {

thread_local FrozenExecutables* loading_here = nullptr;

const std::vector<hsa_agent_t>& agents() {
  static const std::vector<hsa_agent_t> all = [] {
    std::vector<hsa_agent_t> found;
    (void)hsa_iterate_agents(
        [](hsa_agent_t agent, void* data) {
          static_cast<std::vector<hsa_agent_t>*>(data)->push_back(agent);
          return HSA_STATUS_SUCCESS;
        },
        &found);
    return found;
  }();
  return all;
}

}  // namespace

FrozenExecutables::FrozenExecutables() noexcept : around_(loading_here) { loading_here = this; }
FrozenExecutables::~FrozenExecutables() { loading_here = around_; }

void FrozenExecutables::add(hsa_executable_t executable) noexcept {
  if (loading_here == nullptr) return;
  try {
    loading_here->executables_.push_back(executable);
  } catch (const std::exception&) {
    // Memory is exhausted: its kernels are found by name.
  }
}

ModuleKernels& ModuleKernels::instance() {
  alignas(ModuleKernels) static std::byte storage[sizeof(ModuleKernels)];
  static ModuleKernels* const kernels = ::new (storage) ModuleKernels;
  return *kernels;
}

void ModuleKernels::loaded(hipModule_t module, const std::vector<hsa_executable_t>& executables) {
  const std::lock_guard lock(mutex_);
  std::vector<hsa_executable_t>& known = modules_[module];
  known.insert(known.end(), executables.begin(), executables.end());
}

void ModuleKernels::found(hipModule_t module, const std::string& name, hipFunction_t function) {
  const std::lock_guard lock(mutex_);
  functions_.erase(function);  // of an earlier module
  const auto executables = modules_.find(module);
  if (executables == modules_.end()) return;
  Function entry{.module = module, .places = {}};
  for (const hsa_executable_t executable : executables->second) {
    for (const hsa_agent_t agent : agents()) {
      hsa_executable_symbol_t symbol{};
      uint64_t address = 0;
      if (hsa_executable_get_symbol_by_name(executable, (name + ".kd").c_str(), &agent, &symbol) ==
              HSA_STATUS_SUCCESS &&
          hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
                                         &address) == HSA_STATUS_SUCCESS)
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast, performance-no-int-to-ptr)
        entry.places.push_back({agent, reinterpret_cast<const void*>(address)});
    }
  }
  functions_.emplace(function, std::move(entry));
}

void ModuleKernels::forget(hipModule_t module) {
  const std::lock_guard lock(mutex_);
  modules_.erase(module);
  std::erase_if(functions_, [=](const auto& each) { return each.second.module == module; });
}

const void* ModuleKernels::address(const void* function, hsa_agent_t agent) {
  const std::lock_guard lock(mutex_);
  const auto found = functions_.find(function);
  if (found == functions_.end()) return nullptr;
  for (const Place& place : found->second.places)
    if (place.agent.handle == agent.handle) return place.address;
  return nullptr;
}

}  // namespace uptempo::graphs
