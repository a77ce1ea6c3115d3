// Finds the kernels of this process that HIP has loaded, so that Uptempo dispatches the same code
// on the same device globals.
//
//   __global__ void saxpy(float* y, const float* x, float a, uint32_t n);
//   auto launch = hip::kernel(saxpy);  // Kernel<float*, const float*, float, uint32_t>
//   batch.dispatch(launch, Grid::blocks(64).threads(256), y, x, 2.0f, n);
//
//   hipFunction_t function;                             // of hipModuleGetFunction
//   Kernel<Arguments> any = hip::kernel(function);      // arguments given at run time
//
// The kernel is that of the calling thread's current HIP device (hipSetDevice). HIP loads a
// __global__ function's code at its first use; kernel() causes that. It then finds the kernel by
// name in the executables that ROCr holds, and reads its metadata from the code object in the GPU's
// memory (hsa_ven_amd_loader.h). Executables of Program are not searched.
//
// Equal names: several loaded code objects may have a kernel of one name, such as one template
// instance in two shared libraries, or a module that was loaded twice. A __global__ function is
// that of the program or shared library that holds the function, if only one code object is stored
// there. Otherwise the call is refused, unless the caller names a device address that the right
// code object holds: a __device__ variable beside the kernel (hipGetSymbolAddress,
// hipModuleGetGlobal).
//
// Errors: throws Error for a function that HIP does not know, a kernel that the current device
// lacks, several kernels of this name, types that do not match, and kernels that Uptempo cannot
// dispatch (program.hpp): those that call the host (printf, assert, malloc), and those with a
// dynamic stack unless the caller gives its PrivateBytes. hipLimitStackSize is not read.
//
// Lifetime: HIP owns the code. The library or module must stay loaded while the Kernel is used. The
// bytes given to hipModuleLoadData may be freed before kernel(); KernelInfo::code is then unknown,
// so recordings with the kernel cannot be saved. HIP_LAUNCH_BLOCKING and hipLaunchKernel's order do
// not apply to Uptempo's dispatches.
// Thread safety: any thread, but not while another thread unloads a module.
// Cost: for set-up; each call reads the code object again. Keep the Kernel.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include <uptempo/hip/api/hip_api.hpp>
#include <uptempo/program/arguments.hpp>
#include <uptempo/program/program.hpp>

namespace uptempo::hip {

// Selects one of several kernels of one name.
struct Beside {
  const void* device_address = nullptr;  // that the kernel's code object holds; null: no choice
};

// The properties of the kernel of a __global__ function, given by its address, or of a module.
KernelInfo kernel_info(const void* function, Beside beside = {}, PrivateBytes stack = {});
KernelInfo kernel_info(hipFunction_t function, Beside beside = {}, PrivateBytes stack = {});

// The kernel of a __global__ function. Its argument types are the function's parameters, which are
// compared with the metadata.
template <class... Args>
Kernel<Args...> kernel(void (*function)(Args...), Beside beside = {}, PrivateBytes stack = {}) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): HIP identifies it by its address
  auto info = kernel_info(reinterpret_cast<const void*>(function), beside, stack);
  return Kernel<Args...>::of(std::make_shared<const KernelInfo>(std::move(info)));
}

// A module's kernel, whose arguments are given at run time.
inline Kernel<Arguments> kernel(hipFunction_t function, Beside beside = {},
                                PrivateBytes stack = {}) {
  return Kernel<Arguments>::of(
      std::make_shared<const KernelInfo>(kernel_info(function, beside, stack)));
}
// The same, with the types that the caller will give, which are compared with the metadata.
inline Kernel<Arguments> kernel(hipFunction_t function, std::span<const ArgumentType> types,
                                Beside beside = {}, PrivateBytes stack = {}) {
  auto info = kernel_info(function, beside, stack);
  info.arguments.require(types);
  return Kernel<Arguments>::of(std::make_shared<const KernelInfo>(std::move(info)));
}

}  // namespace uptempo::hip
