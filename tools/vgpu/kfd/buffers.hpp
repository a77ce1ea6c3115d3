// Buffer objects: ALLOC_MEMORY_OF_GPU, FREE, MAP, UNMAP.
//
// A buffer's pages are in the render node's file (VRAM first, then GTT), in the program's own
// memory (USERPTR), or in the file of /dev/kfd (doorbells, the HDP register page). MAP publishes
// the buffer in the device's address space at the GPU address that the program chose. UNMAP returns
// when no device thread can reach the buffer.
//
// With device.host_pages, the driver watches mapped buffers for which program and device have
// separate mappings: VRAM and GTT that the program has mapped at their GPU address, and system
// memory that ROCT allocates for the GPU (shared_pages.hpp). Memory that the program has registered
// is not changed.
//
// Thread safety: any thread. One mutex, held while UNMAP waits for the device.
//
// Errors: those of kfd_chardev.c and amdgpu_amdkfd_gpuvm.c. Unknown handle -EINVAL (free), -ENOMEM
// (map), -ENODEV (unmap); freeing a mapped buffer -EBUSY; unmapping an unmapped buffer -EINVAL; no
// room -ENOMEM; nonexistent program memory -EFAULT.
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

// Offsets in the file of /dev/kfd. The low 32 bits are zero because ROCT 5.2.3 masks the doorbell
// offset with a size that it sets only afterwards (queues.c:571): for its first queue it takes
// everything below bit 32 as the slot's offset.
inline constexpr uint64_t kDoorbellFileOffset = uint64_t{1} << 32;
inline constexpr uint64_t kRegisterFileOffset = uint64_t{2} << 32;
inline constexpr uint64_t kKfdFileBytes = uint64_t{3} << 32;
// 1,024 doorbells of 8 bytes; one set of pages per process.
inline constexpr uint64_t kDoorbellPageBytes = 8192;
inline constexpr uint64_t kRegisterPageBytes = 4096;

class Buffers {
 public:
  Buffers(Device& device, uint32_t gpu_id, SparseFile& render_file, SparseFile& kfd_file,
          uint64_t vram_bytes);

  // Buffers announces doorbell pages to the processor when they are mapped and before they are
  // unmapped.
  void set_command_processor(CommandProcessor* processor);

  struct Request {
    uint64_t gpu_address = 0;
    uint64_t size_bytes = 0;
    uint32_t flags = 0;            // KFD_IOC_ALLOC_MEM_FLAGS_*
    uint64_t program_address = 0;  // USERPTR
  };
  // Sets `handle` and `mmap_offset`. For USERPTR, `mmap_offset` stays unchanged.
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

  // Returns the size of the render node's file for a device with that much VRAM.
  static uint64_t render_file_bytes(uint64_t vram_bytes);

 private:
  struct Buffer {
    Request request;
    std::byte* host = nullptr;
    uint64_t file_offset = 0;
    uint64_t file_bytes = 0;                // taken from VRAM or GTT; 0 for other kinds
    std::unique_ptr<SharedPages> shared{};  // for a USERPTR buffer whose device mapping is separate
    bool mapped = false;
  };

  void watch(const Buffer& buffer);
  void hold_back(const Buffer& buffer);
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
