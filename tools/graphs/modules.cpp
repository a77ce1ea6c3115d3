// HIP's functions that load modules and find their functions, and ROCr's function that makes loaded
// code executable: each calls the original and keeps the places of the kernels.
#include <exception>

#include <uptempo/hip/api/hip_api.hpp>
#include "tools/graphs/module_kernels.hpp"
#include "tools/graphs/original.hpp"

using namespace uptempo::graphs;

namespace {

// Runs `body` and lets no exception out. After one (memory is exhausted), kernels are found by
// name.
template <class Body>
void quietly(Body body) noexcept {
  try {
    const KeepLastError keep;
    body();
  } catch (const std::exception&) {
  }
}

template <class Call>
hipError_t load(hipModule_t* module, Call call) noexcept {
  FrozenExecutables frozen;
  const hipError_t status = call();
  if (status == hipSuccess)
    quietly([&] { ModuleKernels::instance().loaded(*module, frozen.take()); });
  return status;
}

}  // namespace

extern "C" {

hipError_t hipModuleLoad(hipModule_t* module, const char* file) {
  return load(module, [&] { return UPTEMPO_CALL(hipModuleLoad, module, file); });
}

hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  return load(module, [&] { return UPTEMPO_CALL(hipModuleLoadData, module, image); });
}

hipError_t hipModuleLoadDataEx(hipModule_t* module, const void* image, unsigned int count,
                               hipJitOption* options, void** values) {
  return load(module, [&] {
    return UPTEMPO_CALL(hipModuleLoadDataEx, module, image, count, options, values);
  });
}

// Releases of HIP that load a module at its first use do so here.
hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  FrozenExecutables frozen;
  const hipError_t status = UPTEMPO_CALL(hipModuleGetFunction, function, module, name);
  if (status == hipSuccess)
    quietly([&] {
      ModuleKernels& kernels = ModuleKernels::instance();
      kernels.loaded(module, frozen.take());
      kernels.found(module, name, *function);
    });
  return status;
}

hipError_t hipModuleUnload(hipModule_t module) {
  quietly([&] { ModuleKernels::instance().forget(module); });
  return UPTEMPO_CALL(hipModuleUnload, module);
}

hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char* options) {
  static const auto real = original<decltype(hsa_executable_freeze)>("hsa_executable_freeze");
  const hsa_status_t status =
      real == nullptr ? HSA_STATUS_ERROR_NOT_INITIALIZED : real(executable, options);
  if (status == HSA_STATUS_SUCCESS) FrozenExecutables::add(executable);
  return status;
}

}  // extern "C"
