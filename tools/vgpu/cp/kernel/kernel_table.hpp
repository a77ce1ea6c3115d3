// Kernel objects of earlier dispatches, each read once.
//
// Thread safety: none; the command processor's thread owns it. Lifetime: references are valid until
// the next forget_...().
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "cp/kernel/kernel_arguments.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu {

struct LoadedKernel {
  std::variant<gfx9::Kernel, gfx9::Kernel::Rejected> kernel;
  std::string name;
  // Whether it is one of ROCr's blit kernels (copies, fills, the upload of code). They run even
  // with --null-kernels, and the read index never passes their packets early, because it frees
  // their kernargs.
  bool runtime_blit = false;
  // Empty: there is no metadata for the kernel, or the table does not read it.
  std::optional<std::vector<ArgumentWord>> arguments;
};

class KernelTable {
 public:
  // `reads_arguments`: reads the metadata of each kernel's code object.
  explicit KernelTable(gfx9::Target target, bool reads_arguments = false)
      : target_(target), reads_arguments_(reads_arguments) {}

  // Call it between the reader's enter() and leave().
  const LoadedKernel& find(AddressSpace::Reader& memory, GpuAddress kernel_object);

  // The kernel if an earlier dispatch has found it, else null.
  const LoadedKernel* find_known(GpuAddress kernel_object) const noexcept;

  // If memory was mapped or unmapped since the last call's `generation`, kernels are read again.
  // Names and arguments stay, because they are expensive; forget_code() announces new code at an
  // old address.
  void forget_unmapped(uint64_t generation);

  // Call it when code may have been replaced.
  void forget_code();

 private:
  struct Described {
    std::string name;
    std::optional<std::vector<ArgumentWord>> arguments;
  };
  Described describe(AddressSpace::Reader& memory, GpuAddress kernel_object) const;

  const gfx9::Target target_;
  const bool reads_arguments_;
  uint64_t generation_ = 0;
  std::unordered_map<GpuAddress, LoadedKernel> kernels_;
  std::unordered_map<GpuAddress, Described> described_;
  GpuAddress last_object_ = 0;
  const LoadedKernel* last_ = nullptr;
};

}  // namespace uptempo::vgpu
