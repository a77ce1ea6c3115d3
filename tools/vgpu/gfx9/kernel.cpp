// Kernel objects: AMDHSAKernelDescriptor (code object v3 and later) and amd_kernel_code_t (v2,
// ROCr's blit kernels).
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu::gfx9 {
namespace {

// Layout: llvm/Support/AMDHSAKernelDescriptor.h. The older amd_kernel_code_t has entry offset,
// rsrc1, rsrc2 and properties at the same offsets, because the packet processor reads only these.
struct Descriptor {
  uint32_t group_segment_bytes;
  uint32_t private_segment_bytes;
  uint32_t kernarg_bytes;
  uint32_t reserved0;
  int64_t entry_offset;
  uint32_t reserved1[5];
  uint32_t rsrc3;
  uint32_t rsrc1;
  uint32_t rsrc2;
  uint16_t properties;
  uint16_t kernarg_preload;  // length in dwords [6:0], offset in dwords [15:7]
  uint16_t reserved2[2];
};
static_assert(sizeof(Descriptor) == 64);

constexpr uint32_t kTgSplit = 1u << 16;  // COMPUTE_PGM_RSRC3 of gfx90a and gfx942
constexpr uint32_t kUserSgprs = 16;
constexpr uint16_t kNotWithArchitectedScratch = 1u << 0 | 1u << 5;
constexpr uint16_t kWavefrontSize32 = 1u << 10;
constexpr uint16_t kUsesDynamicStack = 1u << 11;

// In an amd_kernel_code_t, amd_kernel_code_version_major at 0 is 1, amd_machine_kind at 8 is AMDGPU
// (1), and a gfx major version follows at 10. As a descriptor this would be a kernarg segment of
// more than 6 * 65536 bytes.
bool is_kernel_code(const Descriptor& descriptor) noexcept {
  const uint32_t kind = descriptor.kernarg_bytes & 0xffff, major = descriptor.kernarg_bytes >> 16;
  return descriptor.group_segment_bytes == 1 && kind == 1 && major >= 6 && major <= 10;
}

std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

std::variant<Kernel, Kernel::Rejected> Kernel::load(AddressSpace::Reader& memory,
                                                    GpuAddress kernel_object, Target target) {
  const auto rejected = [&](QueueError error, const std::string& why) {
    return Rejected{error, "kernel object " + hex(kernel_object) + " " + why};
  };
  if (kernel_object % 64 != 0)
    return rejected(QueueError::invalid_code_object, "is not aligned to 64 bytes");
  const std::byte* host = memory.translate(kernel_object, sizeof(Descriptor), Access::read);
  if (host == nullptr)
    return rejected(QueueError::invalid_code_object, "is not mapped on the device");
  Descriptor descriptor;
  std::memcpy(&descriptor, host, sizeof descriptor);

  Kernel kernel;
  kernel.target = target;
  kernel.entry = kernel_object + static_cast<uint64_t>(descriptor.entry_offset);
  kernel.rsrc1 = descriptor.rsrc1;
  kernel.rsrc2 = descriptor.rsrc2;
  kernel.legacy = is_kernel_code(descriptor);
  if (kernel.legacy) {
    uint32_t tail[12];  // amd_kernel_code_t from its offset 56 on
    const std::byte* rest = memory.translate(kernel_object + 56, sizeof tail, Access::read);
    if (rest == nullptr)
      return rejected(QueueError::invalid_code_object, "reaches past its mapping");
    std::memcpy(tail, rest, sizeof tail);
    kernel.properties = static_cast<uint16_t>(tail[0] & 0x3ff);
    kernel.private_segment_bytes = tail[1];
    kernel.group_segment_bytes = tail[2];
    kernel.kernarg_bytes = tail[4];
  } else {
    kernel.properties = descriptor.properties;
    kernel.rsrc3 = descriptor.rsrc3;
    kernel.private_segment_bytes = descriptor.private_segment_bytes;
    kernel.group_segment_bytes = descriptor.group_segment_bytes;
    kernel.kernarg_bytes = descriptor.kernarg_bytes;
    kernel.dynamic_stack = (descriptor.properties & kUsesDynamicStack) != 0;
    if ((descriptor.properties & kWavefrontSize32) != 0)
      return rejected(QueueError::invalid_code_object, "requires waves of 32 lanes; gfx9 has 64");
  }

  // LLVM's FeatureKernargPreload: gfx90a and gfx942 among these targets. Others ignore the field.
  if (!kernel.legacy && has_merged_registers(target)) {
    kernel.preload_dwords = descriptor.kernarg_preload & 0x7f;
    kernel.preload_offset_bytes = uint32_t{descriptor.kernarg_preload} >> 7 << 2;
    if (kernel.preload_dwords > kUserSgprs)
      return rejected(QueueError::invalid_code_object,
                      "preloads " + std::to_string(kernel.preload_dwords) +
                          " dwords of kernel arguments; a wave has 16 user SGPRs");
  }
  if (target == Target::gfx942 && !kernel.legacy &&
      (kernel.properties & kNotWithArchitectedScratch) != 0)
    return rejected(QueueError::invalid_code_object,
                    "asks for a scratch descriptor or FLAT_SCRATCH in SGPRs, which gfx942 lacks");

  // The bit lets waves of one workgroup run on several compute units, without LDS. Cache control
  // instructions of workgroup scope then have an effect.
  if (has_merged_registers(target) && (kernel.rsrc3 & kTgSplit) != 0)
    return rejected(QueueError::invalid_code_object, "sets TG_SPLIT, which is not supported");

  // GRANULATED_WORKITEM_VGPR_COUNT: units of 4. On gfx90a and gfx942 units of 8, and the count
  // includes the accumulation registers.
  const uint32_t granulated = kernel.rsrc1 & 0x3f;
  if (has_merged_registers(target)) {
    const uint32_t total = (granulated + 1) * 8;
    kernel.accumulation_offset = kernel.legacy ? 256 : ((kernel.rsrc3 & 0x3f) + 1) * 4;
    kernel.vgprs = std::min({total, kernel.accumulation_offset, 256u});
    kernel.accumulation_vgprs = total - kernel.vgprs;
    if (kernel.accumulation_vgprs > 256)
      return rejected(QueueError::too_many_registers,
                      "requires " + std::to_string(kernel.accumulation_vgprs) +
                          " accumulation VGPRs; a wave has at most 256");
  } else {
    kernel.vgprs = (granulated + 1) * 4;
    // gfx908 gives a wave as many accumulation registers as architectural ones, in a separate file.
    kernel.accumulation_vgprs = target == Target::gfx908 ? kernel.vgprs : 0;
  }
  if (kernel.preload_dwords != 0 &&
      memory.translate(kernel.entry + kPreloadHeaderBytes, 4, Access::execute) == nullptr)
    return rejected(QueueError::invalid_code_object,
                    "preloads kernel arguments, but the code after the 256 bytes at its entry " +
                        hex(kernel.entry) + " is not executable memory");
  if (memory.translate(kernel.entry, 4, Access::execute) == nullptr)
    return rejected(QueueError::invalid_code_object,
                    "has its entry at " + hex(kernel.entry) + ", which is not executable memory");
  if (kernel.entry % 4 != 0)
    return rejected(QueueError::invalid_code_object, "has a misaligned entry " + hex(kernel.entry));
  return kernel;
}

}  // namespace uptempo::vgpu::gfx9
