#include "cp/kernel/kernel_table.hpp"

#include "cp/kernel/code_image.hpp"
#include "cp/kernel/kernel_name.hpp"

namespace uptempo::vgpu {
namespace {

// ROCr assembles each of its kernels into pages of its own: the header, and the code after 256
// bytes (GpuAgent::AssembleShader). Up to gfx908 the header is an amd_kernel_code_t, on gfx90a a
// descriptor without a size of arguments. A compiler's descriptor is behind the ELF header.
bool is_runtime_blit(const gfx9::Kernel& kernel, GpuAddress kernel_object) noexcept {
  constexpr GpuAddress kAlignment = 4096, kHeaderBytes = 256;
  return kernel.legacy || (kernel_object % kAlignment == 0 && kernel.kernarg_bytes == 0 &&
                           kernel.entry == kernel_object + kHeaderBytes);
}

}  // namespace

KernelTable::Described KernelTable::describe(AddressSpace::Reader& memory,
                                             GpuAddress kernel_object) const {
  Described described{.name = kernel_name(memory, kernel_object), .arguments = {}};
  if (!reads_arguments_) return described;
  if (const auto image = CodeImage::of(memory, kernel_object))
    described.arguments = kernel_arguments(image->metadata(), described.name);
  return described;
}

const LoadedKernel& KernelTable::find(AddressSpace::Reader& memory, GpuAddress kernel_object) {
  if (kernel_object == last_object_ && last_ != nullptr) return *last_;
  auto found = kernels_.find(kernel_object);
  if (found == kernels_.end()) {
    auto described = described_.find(kernel_object);
    if (described == described_.end())
      described = described_.emplace(kernel_object, describe(memory, kernel_object)).first;
    const auto& [name, arguments] = described->second;
    auto kernel = gfx9::Kernel::load(memory, kernel_object, target_);
    const auto* loaded = std::get_if<gfx9::Kernel>(&kernel);
    const bool blit = loaded != nullptr && is_runtime_blit(*loaded, kernel_object);
    found = kernels_.emplace(kernel_object, LoadedKernel{std::move(kernel), name, blit, arguments})
                .first;
  }
  last_object_ = kernel_object;
  last_ = &found->second;
  return *last_;
}

const LoadedKernel* KernelTable::find_known(GpuAddress kernel_object) const noexcept {
  if (kernel_object == last_object_ && last_ != nullptr) return last_;
  const auto found = kernels_.find(kernel_object);
  return found == kernels_.end() ? nullptr : &found->second;
}

void KernelTable::forget_unmapped(uint64_t generation) {
  if (generation == generation_) return;
  generation_ = generation;
  kernels_.clear();
  last_ = nullptr;
}

void KernelTable::forget_code() {
  kernels_.clear();
  described_.clear();
  last_ = nullptr;
}

}  // namespace uptempo::vgpu
