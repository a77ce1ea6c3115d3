// Kernel objects of earlier dispatches, each read once.
//
// Thread safety: none; the command processor's thread owns it. Lifetime: references are valid until
// the next forget_...().
#pragma once

#include <string>
#include <unordered_map>
#include <variant>

#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu {

struct LoadedKernel {
  std::variant<gfx9::Kernel, gfx9::Kernel::Rejected> kernel;
  std::string name;
  // Whether it is one of ROCr's blit kernels (copies, fills, the upload of code). They run even
  // with --null-kernels, and the read index never passes their packets early, because it frees
  // their kernargs.
  bool runtime_blit = false;
};

class KernelTable {
 public:
  explicit KernelTable(gfx9::Target target) : target_(target) {}

  // Call it between the reader's enter() and leave().
  const LoadedKernel& find(AddressSpace::Reader& memory, GpuAddress kernel_object);

  // The kernel if an earlier dispatch has found it, else null.
  const LoadedKernel* find_known(GpuAddress kernel_object) const noexcept;

  // If memory was mapped or unmapped since the last call's `generation`, kernels are read again.
  // Names stay, because they are expensive; forget_code() announces new code at an old address.
  void forget_unmapped(uint64_t generation);

  // Call it when code may have been replaced.
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
