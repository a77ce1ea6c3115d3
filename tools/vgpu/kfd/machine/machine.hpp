// The memory of the machine's GPUs and the processes that share it (uptempo-vgpu --join NAME).
//
// Each GPU has one memory file (VRAM first, then GTT). A buffer is an extent of that file. A table,
// another memory file, lists the extents, the processes that hold each, and the handle under which
// it is shared. Without a name, these files belong to this process alone. With a name, all
// processes of the user that name the machine open the same files. An imported buffer is then the
// same extent of the same file.
//
// The memory files have no name and keep their size: a process opens them through /proc/PID/fd of
// another one, so the memory ends with the last process. The machine file,
// /dev/shm/uptempo-vgpu-UID-NAME, lists the processes. It begins with the process that finds no
// other one alive, and the last process removes it. If it is removed, truncated or overwritten
// before, each process reports that once, and finds no memory.
//
// Crash safety: a process may be killed at any instruction. A record lock of the kernel, which ends
// with its process, guards file and table. Each change takes effect with one store of 8 bytes,
// after everything it needs. A killed process holds its extents until another one next takes the
// lock, recognises the death (process_identity.hpp), returns the pages to the system and frees the
// extents. A process that is stopped while it holds the lock fails the operations of others after 5
// seconds each. fork() gives the child nothing; it joins when it opens the device.
//
// Lifetime: the memory files live as long as the Machine, which outlives the device's threads. A
// process has one Machine.
// Thread safety: any thread. Operations on the table hold a mutex, and with a name the lock of the
// file; they cost some 2 us without a name, 25 us with one, and 20 us more for each other process.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kfd/machine/backing.hpp"

namespace uptempo::vgpu::kfd {

enum class Heap : uint8_t { vram, gtt };

// A name of a shared extent that cannot be guessed.
using ShareHandle = std::array<uint32_t, 4>;

class Machine {
 public:
  static constexpr uint32_t kMostGpus = 8;
  static constexpr uint32_t kMostProcesses = 64;
  // For each GPU. The kernel's own limit of a process's mappings is as high by default
  // (vm.max_map_count: 65,530).
  static constexpr uint32_t kMostExtents = 65536;
  // No extent begins there: an offset of 0 means to ROCT that there is nothing to map.
  static constexpr uint64_t kFirstOffset = uint64_t{2} << 20;

  struct GpuMemory {
    uint64_t vram_bytes = 0, gtt_bytes = 0;
  };
  // A property that all processes of a machine have in common: an option of the launcher and its
  // value.
  struct Property {
    std::string option, value;
  };

  // The machine of this process alone. Throws std::system_error if the system refuses the memory.
  explicit Machine(std::span<const GpuMemory> gpus);
  // Joins the machine, or begins it. Requires Options::is_machine_name(name). Waits up to 10 s for
  // the end of a process that is about to leave the machine. Throws std::runtime_error, in one
  // sentence, if the machine has other properties (names the first), is another user's, has no room
  // for a process, or cannot be reached.
  Machine(const std::string& name, const std::vector<Property>& properties,
          std::span<const GpuMemory> gpus);
  // Calls leave(). Others free this process's extents when the process has ended.
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Removes the machine file if no other process lives. Call it at the process's end.
  void leave() noexcept;

  bool is_shared() const noexcept;
  SparseFile& file(uint32_t gpu) const noexcept;
  // VRAM begins at kFirstOffset, GTT at the end of VRAM.
  uint64_t vram_end(uint32_t gpu) const noexcept;
  uint64_t gtt_bytes(uint32_t gpu) const noexcept;

  // Returns the offset of a new extent that reads as zero, or nullopt if there is no room. The
  // process holds it once. `size_bytes`: whole pages. `alignment`: a power of two.
  std::optional<uint64_t> allocate(uint32_t gpu, Heap heap, uint64_t size_bytes,
                                   uint64_t alignment);
  // Gives up one hold of this process. The last hold of the last process frees the extent.
  void release(uint32_t gpu, uint64_t offset);
  // By all processes.
  uint64_t used_bytes(uint32_t gpu, Heap heap) const;

  // Properties of an extent that processes learn when they import it.
  struct Kind {
    uint32_t flags = 0;  // KFD_IOC_ALLOC_MEM_FLAGS_*
    uint32_t tag = 0;    // ROCT's own flags, which the driver passes on
  };
  // Returns the handle of an extent that this process holds, always the same one. The kind of the
  // first call counts. Returns nullopt if the process does not hold the extent or the machine file
  // was removed.
  std::optional<ShareHandle> share(uint32_t gpu, uint64_t offset, Kind kind);
  struct Shared {
    uint32_t gpu = 0;
    uint64_t offset = 0, size_bytes = 0;
    Kind kind;
  };
  // Returns what the handle names, if a process holds it.
  std::optional<Shared> find(const ShareHandle& handle) const;
  // The same, and adds a hold of this process.
  std::optional<Shared> hold(const ShareHandle& handle);

  // Resets of a GPU, and of all GPUs, since the machine began.
  uint32_t resets(uint32_t gpu) const noexcept;
  uint32_t all_resets() const noexcept;
  // Counts a reset and wakes all processes. Returns false if the machine file was removed.
  bool reset(uint32_t gpu);
  // Waits until all_resets() differs from `seen` and returns it.
  uint32_t wait_for_reset(uint32_t seen) const noexcept;

  // Resets a GPU of a machine that this process does not join. Throws std::runtime_error, in one
  // sentence, if no process lives in it or it has no such GPU.
  static void reset(const std::string& name, uint32_t gpu);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu::kfd
