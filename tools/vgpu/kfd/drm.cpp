#include "kfd/drm.hpp"

#include <libdrm/amdgpu_drm.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <vector>

#include "device/clock.hpp"
#include "kfd/machine/log.hpp"
#include "kfd/program_memory.hpp"

namespace uptempo::vgpu::kfd {
namespace {

// The kernel copies min(length, room) bytes and reports the full length (drm_copy_field).
bool copy_field(char* destination, __kernel_size_t& length, std::string_view text) {
  const size_t room = destination == nullptr ? 0 : std::min<size_t>(length, text.size());
  length = text.size();
  return copy_to_program(reinterpret_cast<uint64_t>(destination), text.data(), room);
}

int version(drm_version& args) {
  args.version_major = 3;
  args.version_minor = 48;
  args.version_patchlevel = 0;
  const bool copied = copy_field(args.name, args.name_len, "amdgpu") &&
                      copy_field(args.date, args.date_len, "20150101") &&
                      copy_field(args.desc, args.desc_len, "AMD GPU");
  return copied ? 0 : -EFAULT;
}

template <typename Value>
int answer(const drm_amdgpu_info& args, const Value& value) {
  return copy_to_program(args.return_pointer, &value,
                         std::min<size_t>(args.return_size, sizeof value))
             ? 0
             : -EFAULT;
}

drm_amdgpu_info_device device_info(const DeviceDescription& description) {
  drm_amdgpu_info_device info{};
  info.device_id = description.device_id;
  info.pci_rev = description.pci_revision;
  info.family = AMDGPU_FAMILY_AI;
  info.num_shader_engines = description.engines_per_xcd();  // of the first XCD, as amdgpu has it
  info.num_shader_arrays_per_engine = 1;
  info.gpu_counter_freq = 100'000;  // kHz, see device/clock.hpp
  info.max_engine_clock = description.engine_clock_mhz * 1000;
  info.max_memory_clock = description.memory_clock_mhz * 1000;
  info.cu_active_number = description.compute_units;
  // The bitmap has 4 x 4 entries. Engines 4..7 of 8-engine devices continue in the second column
  // (amdgpu_kms.c).
  for (uint32_t engine = 0; engine < description.engines_per_xcd(); ++engine)
    info.cu_bitmap[engine % 4][engine / 4] = (1u << description.units_of_engine(engine)) - 1;
  info.virtual_address_offset = uint64_t{2} << 20;
  info.virtual_address_max = uint64_t{1} << 47;
  info.virtual_address_alignment = 4096;
  info.pte_fragment_size = 2u << 20;
  info.gart_page_size = 4096;
  info.vram_type = AMDGPU_VRAM_TYPE_HBM;
  info.vram_bit_width = description.memory_width_bits;
  info.wave_front_size = 64;
  info.num_shader_visible_vgprs = 256;
  info.num_cu_per_sh = description.compute_units_per_shader_array;
  return info;
}

drm_amdgpu_memory_info memory_info(const Gpu& gpu, const Buffers& buffers) {
  const Options& options = gpu.options;
  drm_amdgpu_memory_info info{};
  info.vram = {.total_heap_size = gpu.vram_bytes(),
               .usable_heap_size = gpu.vram_bytes(),
               .heap_usage = buffers.vram_used_bytes(gpu),
               .max_allocation = gpu.vram_bytes()};
  info.cpu_accessible_vram = info.vram;
  if (options.small_bar) {
    const uint64_t visible = options.visible_vram_bytes();
    info.cpu_accessible_vram = {.total_heap_size = visible,
                                .usable_heap_size = visible,
                                .heap_usage = 0,  // no buffer of KFD is there
                                .max_allocation = visible};
  }
  info.gtt = {.total_heap_size = gpu.gtt_bytes(),
              .usable_heap_size = gpu.gtt_bytes(),
              .heap_usage = buffers.gtt_used_bytes(gpu),
              .max_allocation = gpu.gtt_bytes()};
  return info;
}

int info(const Gpu& gpu, const Buffers& buffers, const drm_amdgpu_info& args) {
  const Options& options = gpu.options;
  switch (args.query) {
    case AMDGPU_INFO_ACCEL_WORKING:
      return answer(args, uint32_t{1});
    case AMDGPU_INFO_DEV_INFO:
      return answer(args, device_info(*options.device));
    case AMDGPU_INFO_READ_MMR_REG: {
      // Tiling registers of the graphics pipe. Compute programs read but do not use them.
      if (args.read_mmr_reg.count > 128) return -EINVAL;
      const std::vector<uint32_t> zeros(args.read_mmr_reg.count);
      return copy_to_program(args.return_pointer, zeros.data(),
                             std::min<size_t>(args.return_size, zeros.size() * sizeof(uint32_t)))
                 ? 0
                 : -EFAULT;
    }
    case AMDGPU_INFO_TIMESTAMP:
      return answer(args, gpu_clock_ticks());
    case AMDGPU_INFO_VRAM_USAGE:
      return answer(args, buffers.vram_used_bytes(gpu));
    case AMDGPU_INFO_VIS_VRAM_USAGE:
      return answer(args, options.small_bar ? 0 : buffers.vram_used_bytes(gpu));
    case AMDGPU_INFO_GTT_USAGE:
      return answer(args, buffers.gtt_used_bytes(gpu));
    case AMDGPU_INFO_VRAM_GTT:
      return answer(
          args, drm_amdgpu_info_vram_gtt{.vram_size = gpu.vram_bytes(),
                                         .vram_cpu_accessible_size = options.visible_vram_bytes(),
                                         .gtt_size = gpu.gtt_bytes()});
    case AMDGPU_INFO_MEMORY:
      return answer(args, memory_info(gpu, buffers));
    case AMDGPU_INFO_FW_VERSION:
      return answer(args, drm_amdgpu_info_firmware{});
    default:
      break;
  }
  char text[80];
  std::snprintf(text, sizeof text, "DRM AMDGPU_INFO: query 0x%x is not emulated", args.query);
  note(text);
  return -EINVAL;
}

}  // namespace

int drm_ioctl(Gpu& gpu, const Buffers& buffers, DrmObjects& objects, uint64_t request,
              void* argument) {
  switch (_IOC_NR(request)) {
    case _IOC_NR(DRM_IOCTL_VERSION):
      return version(*static_cast<drm_version*>(argument));
    case DRM_COMMAND_BASE + DRM_AMDGPU_INFO:
      return info(gpu, buffers, *static_cast<drm_amdgpu_info*>(argument));
    case _IOC_NR(DRM_IOCTL_PRIME_FD_TO_HANDLE):
      return objects.import(gpu, *static_cast<drm_prime_handle*>(argument));
    case _IOC_NR(DRM_IOCTL_GEM_CLOSE):
      return objects.close(gpu, *static_cast<drm_gem_close*>(argument));
    case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_MMAP:
      return objects.mmap_offset(gpu, *static_cast<drm_amdgpu_gem_mmap*>(argument));
    case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_VA:
      return objects.change_mapping(gpu, *static_cast<drm_amdgpu_gem_va*>(argument));
    default:
      break;
  }
  char text[96];
  std::snprintf(text, sizeof text, "DRM ioctl 0x%llx (number 0x%llx) is not emulated",
                static_cast<unsigned long long>(request),
                static_cast<unsigned long long>(_IOC_NR(request)));
  note(text);
  return -EINVAL;
}

}  // namespace uptempo::vgpu::kfd
