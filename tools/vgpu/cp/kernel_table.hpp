// Kernel objects that dispatches have named, read once.
//
// Thread safety: none; it belongs to the command processor's thread. References are valid until the next forget_...().
#pragma once

#include <string>
#include <unordered_map>
#include <variant>

#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu {

struct LoadedKernel {
  std::variant<gfx9::Kernel, gfx9::Kernel::Rejected> kernel;
  std::string name;
  // ROCr's blit kernels (copies, fills, the upload of code) come as amd_kernel_code_t, which compilers have not emitted since code object v3. They run even
  // when kernels are not executed, and their packets are never passed early by the read index, which frees their kernargs.
  bool runtime_blit = false;
};

class KernelTable {
 public:
  explicit KernelTable(gfx9::Target target) : target_(target) {}

  // Between the reader's enter() and leave().
  const LoadedKernel& find(AddressSpace::Reader& memory, GpuAddress kernel_object);

  // Memory was mapped or unmapped since `generation` was last passed: kernels are read again. Names stay, they are costly: new code at an old
  // address is announced by forget_code().
  void forget_unmapped(uint64_t generation);

  // Code may have been replaced.
  void forget_code();

 private:
  const gfx9::Target target_;
  uint64_t generation_ = 0;
  std::unordered_map<GpuAddress, LoadedKernel> kernels_;
  std::unordered_map<GpuAddress, std::string> names_;
  GpuAddress last_object_ = 0;
  const LoadedKernel* last_ = nullptr;
};

}  // namespace uptempo::vgpu
