// Buffer objects of render nodes: imports of DMA-buf descriptors, their mmap offsets and their
// mappings to the GPU, as amdgpu_bo_import(), amdgpu_bo_cpu_map() and amdgpu_bo_va_op() of libdrm
// request them. ROCr 6.3 and newer attach shared host memory this way if
// HSA_ENABLE_IPC_MODE_LEGACY is 0.
//
// An object can be mapped whole and once. The kernel also maps parts, and maps at several
// addresses.
//
// Thread safety: any thread. One mutex.
//
// Errors: those of drm_prime.c, drm_gem.c and amdgpu_gem.c. Unknown handle -ENOENT (-EINVAL for
// CLOSE); a descriptor that is no DMA-buf as in dmabuf.hpp; a mapping that is not emulated, or at
// an address in use, -EINVAL.
#pragma once

#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "kfd/buffers.hpp"
#include "kfd/gpu.hpp"

namespace uptempo::vgpu::kfd {

class DrmObjects {
 public:
  explicit DrmObjects(Buffers& buffers) : buffers_(buffers) {}

  // PRIME_FD_TO_HANDLE. Returns the same handle for the same buffer.
  int import(Gpu& gpu, drm_prime_handle& args);
  int mmap_offset(const Gpu& gpu, drm_amdgpu_gem_mmap& args) const;
  int change_mapping(Gpu& gpu, const drm_amdgpu_gem_va& args);
  // GEM_CLOSE. Ends the object's mapping, too.
  int close(Gpu& gpu, const drm_gem_close& args);

 private:
  struct Object {
    uint64_t buffer = 0;  // handle of Buffers
    uint64_t offset = 0;  // of its extent
    uint64_t size_bytes = 0;
    uint64_t mapped_at = 0;  // 0: not mapped
  };
  using Key = std::pair<uint32_t, uint32_t>;  // the GPU's index, the handle

  Buffers& buffers_;
  mutable std::mutex mutex_;
  std::map<Key, Object> objects_;
};

}  // namespace uptempo::vgpu::kfd
