#include "cp/kernel_table.hpp"

#include <hsa/amd_hsa_kernel_code.h>

#include <cstring>

#include "cp/kernel_name.hpp"

namespace uptempo::vgpu {
namespace {

// A v3 kernel descriptor starts with its segment sizes; none is 1 byte of each with a kernarg size of 0x90001.
bool is_amd_kernel_code(AddressSpace::Reader& memory, GpuAddress kernel_object) {
  const std::byte* bytes = memory.translate(kernel_object, sizeof(amd_kernel_code_t), Access::read);
  if (bytes == nullptr) return false;
  amd_kernel_code_version32_t major;
  amd_machine_kind16_t machine;
  std::memcpy(&major, bytes + offsetof(amd_kernel_code_t, amd_kernel_code_version_major), sizeof major);
  std::memcpy(&machine, bytes + offsetof(amd_kernel_code_t, amd_machine_kind), sizeof machine);
  return major == AMD_KERNEL_CODE_VERSION_MAJOR && machine == AMD_MACHINE_KIND_AMDGPU;
}

}  // namespace

const LoadedKernel& KernelTable::find(AddressSpace::Reader& memory, GpuAddress kernel_object) {
  if (kernel_object == last_object_ && last_ != nullptr) return *last_;
  auto found = kernels_.find(kernel_object);
  if (found == kernels_.end()) {
    auto name = names_.find(kernel_object);
    const bool blit = is_amd_kernel_code(memory, kernel_object);
    if (name == names_.end()) name = names_.emplace(kernel_object, kernel_name(memory, kernel_object)).first;
    found = kernels_
                .emplace(kernel_object,
                         LoadedKernel{gfx9::Kernel::load(memory, kernel_object, target_), name->second, blit})
                .first;
  }
  last_object_ = kernel_object;
  last_ = &found->second;
  return *last_;
}

void KernelTable::forget_unmapped(std::uint64_t generation) {
  if (generation == generation_) return;
  generation_ = generation;
  kernels_.clear();
  last_ = nullptr;
}

void KernelTable::forget_code() {
  kernels_.clear();
  names_.clear();
  last_ = nullptr;
}

}  // namespace uptempo::vgpu
