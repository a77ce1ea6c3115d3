// Kernels by the functions that HIP programs name them with, found once. Private to engine/hip.
//
// HIP frees a module's functions with the module and may give their handles to another module's; a
// library's host functions may be mapped where another library's were. A kernel that is known is
// therefore compared with what HIP and ROCr hold now: the function's name, the executable, the
// place of its code and the sizes of its segments. If one of them differs, the kernel is found
// anew.
//
// Thread safety: one owner at a time; no other thread may unload a module during find().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include <uptempo/hip/found_kernel.hpp>
#include <uptempo/hip/kernel.hpp>
#include <uptempo/hip/loaded_code.hpp>

namespace uptempo::hip {

class KnownKernels {
 public:
  // `function`: the host address of a __global__ function, or a hipFunction_t. As kernel_info().
  std::shared_ptr<const KernelInfo> find(void* function, Beside beside, PrivateBytes stack,
                                         ReadObjects& objects);

 private:
  struct Known {
    LoadedCode code;
    std::shared_ptr<const KernelInfo> info;
  };
  // function, device address, bytes of stack
  std::map<std::tuple<const void*, const void*, uint32_t>, Known> known_;
};

}  // namespace uptempo::hip
