// Buffer objects: ALLOC_MEMORY_OF_GPU, FREE, MAP, UNMAP.
//
// A buffer's pages lie in the render node's file (VRAM first, then GTT), in the program's own memory (USERPTR), or in the file of /dev/kfd
// (doorbells, the HDP register page). MAP publishes it to the device's address space at the GPU address that the program chose; UNMAP
// returns when no device thread can still reach it.
//
// With device.host_pages, mapped buffers are watched where the program and the device have mappings of their own: VRAM and GTT that lie in the program
// at their GPU address, and system memory that ROCT has made for the GPU (shared_pages.hpp). Memory that the program has registered stays as it is.
//
// Errors are those of kfd_chardev.c and amdgpu_amdkfd_gpuvm.c: unknown handle -EINVAL (free), -ENOMEM (map), -ENODEV (unmap); freeing
// a mapped buffer -EBUSY; unmapping an unmapped one -EINVAL; no room -ENOMEM; program memory that does not exist -EFAULT.
//
// Thread safety: any thread; one mutex, held over UNMAP's wait for the device.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "device/device.hpp"
#include "kfd/backing.hpp"
#include "kfd/shared_pages.hpp"

namespace uptempo::vgpu {
class CommandProcessor;
}

namespace uptempo::vgpu::kfd {

// Offsets in the file of /dev/kfd. Low 32 bits are zero: ROCT 5.2.3 masks the doorbell offset with a size that it sets only afterwards
// (queues.c:571), so for its first queue everything below bit 32 is taken for the slot's offset.
inline constexpr uint64_t kDoorbellFileOffset = uint64_t{1} << 32;
inline constexpr uint64_t kRegisterFileOffset = uint64_t{2} << 32;
inline constexpr uint64_t kKfdFileBytes = uint64_t{3} << 32;
inline constexpr uint64_t kDoorbellPageBytes =
    8192;  // 1,024 doorbells of 8 bytes, one page set per process
inline constexpr uint64_t kRegisterPageBytes = 4096;

class Buffers {
 public:
  Buffers(Device& device, uint32_t gpu_id, SparseFile& render_file, SparseFile& kfd_file,
          uint64_t vram_bytes);

  // Doorbell pages are announced to it when they are mapped and before they go away.
  void set_command_processor(CommandProcessor* processor);

  struct Request {
    uint64_t gpu_address = 0;
    uint64_t size_bytes = 0;
    uint32_t flags = 0;            // KFD_IOC_ALLOC_MEM_FLAGS_*
    uint64_t program_address = 0;  // USERPTR
  };
  // Fills `handle` and `mmap_offset` (unchanged for USERPTR).
  int allocate(const Request& request, uint64_t& handle, uint64_t& mmap_offset);
  int free(uint64_t handle);
  int map(uint64_t handle);
  int unmap(uint64_t handle);

  uint64_t vram_bytes() const noexcept { return vram_bytes_; }
  uint64_t vram_used_bytes() const;
  uint64_t gtt_bytes() const noexcept { return gtt_bytes_; }
  uint64_t gtt_used_bytes() const;

  struct Held {
    uint64_t buffers = 0, vram_bytes = 0, gtt_bytes = 0, userptr_bytes = 0;
  };
  Held held() const;

  // Bytes the render node's file needs for a device with that much VRAM.
  static uint64_t render_file_bytes(uint64_t vram_bytes);

 private:
  struct Buffer {
    Request request;
    std::byte* host = nullptr;
    uint64_t file_offset = 0;
    uint64_t file_bytes = 0;           // taken from VRAM or GTT, 0 for the other kinds
    std::unique_ptr<SharedPages> shared{};  // of a USERPTR buffer, where the device has a mapping of its own
    bool mapped = false;
  };

  void watch(const Buffer& buffer);
  int place(Buffer& buffer, uint64_t& mmap_offset);

  Device& device_;
  const uint32_t gpu_id_;
  SparseFile& render_file_;
  SparseFile& kfd_file_;
  CommandProcessor* processor_ = nullptr;
  const uint64_t vram_bytes_;
  const uint64_t gtt_bytes_;

  mutable std::mutex mutex_;
  RangeAllocator vram_;
  RangeAllocator gtt_;
  uint64_t vram_used_ = 0;
  uint64_t gtt_used_ = 0;
  uint32_t next_handle_ = 1;
  std::unordered_map<uint64_t, Buffer> buffers_;
};

}  // namespace uptempo::vgpu::kfd
