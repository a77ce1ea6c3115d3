// Buffer objects: ALLOC_MEMORY_OF_GPU, FREE, MAP, UNMAP.
//
// A buffer belongs to the GPU that ALLOC names. Its pages are an extent of that GPU's memory file
// (machine.hpp: VRAM or GTT), in the program's own memory (USERPTR), or in the file of /dev/kfd
// (doorbells, the HDP register page). MAP publishes the buffer in one GPU's address space at the
// GPU address that the program chose, which is the same on every GPU. A GPU without that mapping
// cannot access the buffer, a peer's VRAM included. UNMAP returns when no thread of the GPU can
// reach the buffer.
//
// To a peer, VRAM is memory behind a link, of kinds of its own (MemoryKind::peer_local and others;
// caching.hpp has their types).
//
// A peer reaches doorbells through the program's mapping, not through the alias, so that its store
// wakes the owner's command processor as the program's store does (cp/doorbell/doorbell_watch.hpp).
//
// With device.host_pages, the driver watches buffers while a GPU maps them, for which program and
// device have separate mappings: VRAM and GTT that the program has mapped at their GPU address, and
// system memory that ROCT allocates for the GPU (shared_pages.hpp). Memory that the program has
// registered is not changed.
//
// Sharing: an exported buffer's extent has a handle. An imported buffer is a buffer of its own with
// the same extent. The extent ends with the last buffer of the last process.
//
// Thread safety: any thread. One mutex, held while UNMAP waits for the device.
//
// Errors: those of kfd_chardev.c and amdgpu_amdkfd_gpuvm.c. Unknown handle -EINVAL (free), -ENOMEM
// (map), -ENODEV (unmap); freeing a mapped buffer -EBUSY; unmapping an unmapped buffer -EINVAL; no
// room -ENOMEM; nonexistent program memory -EFAULT; sharing program memory -EPERM.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "device/device.hpp"
#include "kfd/gpu.hpp"
#include "kfd/machine/backing.hpp"
#include "kfd/shared_pages.hpp"

namespace uptempo::vgpu {
class CommandProcessor;
}

namespace uptempo::vgpu::kfd {

// Offsets in the file of /dev/kfd. The low 32 bits are zero because ROCT 5.2.3 masks the doorbell
// offset with a size that it sets only afterwards (queues.c:571): for its first queue it takes
// everything below bit 32 as the slot's offset.
constexpr uint64_t doorbell_file_offset(uint32_t gpu_index) noexcept {
  return (uint64_t{1} + 2 * gpu_index) << 32;
}
constexpr uint64_t register_file_offset(uint32_t gpu_index) noexcept {
  return (uint64_t{2} + 2 * gpu_index) << 32;
}
constexpr uint64_t kfd_file_bytes(size_t gpus) noexcept { return (uint64_t{1} + 2 * gpus) << 32; }
// 1,024 doorbells of 8 bytes; one set of pages per process and GPU.
inline constexpr uint64_t kDoorbellPageBytes = 8192;
inline constexpr uint64_t kRegisterPageBytes = 4096;

class Buffers {
 public:
  // `gpus`: all of the process; not empty.
  Buffers(std::vector<Gpu*> gpus, SparseFile& kfd_file);

  // Buffers announces doorbell pages of the GPU to its processor when they are mapped and before
  // they are unmapped.
  void set_command_processor(const Gpu& gpu, CommandProcessor* processor);

  struct Request {
    uint32_t gpu_index = 0;  // the owner
    uint64_t gpu_address = 0;
    uint64_t size_bytes = 0;
    uint32_t flags = 0;            // KFD_IOC_ALLOC_MEM_FLAGS_*
    uint64_t program_address = 0;  // USERPTR
  };
  // Sets `handle` and `mmap_offset`. For USERPTR, `mmap_offset` stays unchanged.
  int allocate(const Request& request, uint64_t& handle, uint64_t& mmap_offset);
  int free(uint64_t handle);
  int map(uint64_t handle, Gpu& gpu);
  int unmap(uint64_t handle, Gpu& gpu);

  // Gives the buffer's extent a handle and returns its extent. `gpu`: the owner. `tag`: passed on
  // to those that import it.
  int share(uint64_t handle, const Gpu& gpu, uint32_t tag, ShareHandle& name,
            Machine::Shared& extent);
  // Makes a buffer of a shared extent. `gpu_address` may be 0: the buffer can then be freed only.
  // Returns -EINVAL for an unknown handle and if `gpu` does not own the extent.
  int import(const ShareHandle& name, const Gpu& gpu, uint64_t gpu_address, uint64_t& handle,
             Machine::Shared& extent);

  // Gives a buffer that is not mapped another address. Returns -EBUSY for a mapped one.
  int move(uint64_t handle, uint64_t gpu_address);

  // By all processes of the machine.
  uint64_t vram_used_bytes(const Gpu& gpu) const;
  uint64_t gtt_used_bytes(const Gpu& gpu) const;

  struct Held {
    uint64_t buffers = 0, vram_bytes = 0, gtt_bytes = 0, userptr_bytes = 0;
  };
  Held held() const;

 private:
  struct Buffer {
    Request request;
    std::byte* host = nullptr;
    uint64_t file_offset = 0;
    uint64_t file_bytes = 0;                // of its extent of VRAM or GTT; 0 for other kinds
    std::unique_ptr<SharedPages> shared{};  // for a USERPTR buffer whose device mapping is separate
    uint32_t mapped = 0;                    // one bit per GPU
  };
  Gpu& owner_of(const Buffer& buffer) const { return *gpus_[buffer.request.gpu_index]; }
  static bool is_mapped(const Buffer& buffer, const Gpu& gpu) noexcept {
    return (buffer.mapped >> gpu.index & 1) != 0;
  }
  Probes* probes_of(const Buffer& buffer, const Gpu& gpu) const;
  void watch(const Buffer& buffer);
  void hold_back(const Buffer& buffer, const Gpu& gpu);
  int place(Buffer& buffer, uint64_t& mmap_offset);
  memory_check::Checker* memory_check() const noexcept;  // null: memory is not checked

  const std::vector<Gpu*> gpus_;
  SparseFile& kfd_file_;

  mutable std::mutex mutex_;
  std::vector<CommandProcessor*> processors_;  // one per GPU; null: it has no queue yet
  uint32_t next_handle_ = 1;
  std::unordered_map<uint64_t, Buffer> buffers_;
};

}  // namespace uptempo::vgpu::kfd
