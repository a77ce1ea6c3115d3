// Where the kernels are that the program gets from modules. HIP does not tell that of a function,
// and several modules may have a kernel of one name, such as a module that was loaded twice.
//
// A function that this library did not see being found is not here. Its kernel is found by name,
// and its graph stays with HIP if there are several.
//
// Thread safety: any thread; one lock. Memory: an entry for each function of a loaded module.
#pragma once

#include <hsa/hsa.h>

#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <uptempo/hip/api/hip_api.hpp>

namespace uptempo::graphs {

// The executables that ROCr freezes in this thread during its lifetime, except for those of an
// object that is made meanwhile.
class FrozenExecutables {
 public:
  FrozenExecutables() noexcept;
  ~FrozenExecutables();
  FrozenExecutables(const FrozenExecutables&) = delete;
  FrozenExecutables& operator=(const FrozenExecutables&) = delete;

  std::vector<hsa_executable_t> take() noexcept { return std::exchange(executables_, {}); }
  // In each thread, after each executable.
  static void add(hsa_executable_t executable) noexcept;

 private:
  FrozenExecutables* const around_;
  std::vector<hsa_executable_t> executables_;
};

class ModuleKernels {
 public:
  // Those of the process. Never destroyed, because programs call HIP while they end.
  static ModuleKernels& instance();

  // A call about the module loaded these.
  void loaded(hipModule_t module, const std::vector<hsa_executable_t>& executables);
  // The program got this function from the module by this name.
  void found(hipModule_t module, const std::string& name, hipFunction_t function);
  // Before the module is unloaded.
  void forget(hipModule_t module);

  // The address of the function's kernel on this agent. Null if it is not known.
  const void* address(const void* function, hsa_agent_t agent);

 private:
  struct Place {
    hsa_agent_t agent;
    const void* address;
  };
  struct Function {
    hipModule_t module;
    std::vector<Place> places;
  };

  std::mutex mutex_;
  std::unordered_map<hipModule_t, std::vector<hsa_executable_t>> modules_;
  std::unordered_map<const void*, Function> functions_;
};

}  // namespace uptempo::graphs
