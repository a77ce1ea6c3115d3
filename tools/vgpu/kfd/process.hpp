// One process's view of the emulated driver: its creation, and which descriptors and requests
// belong to the device. requests.hpp implements the requests.
//
// Lifetime: the first open of /dev/kfd or the render node creates the object. It is never
// destroyed, because device threads may run while the program's static destructors do. The kernel's
// kfd_process similarly lives as long as its address space, not its descriptors.
//
// fork: a child starts without a device. Its inherited descriptors return EBADF, as the kernel's do
// ("Using KFD FD in wrong process"). The child's first open creates a Process of its own.
//
// Thread safety: any thread, unless stated otherwise.
#pragma once

#include <sys/stat.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "device/fences/checker.hpp"
#include "device/inject/injector.hpp"
#include "kfd/buffers.hpp"
#include "kfd/events.hpp"
#include "kfd/gpu.hpp"

namespace uptempo::vgpu::kfd {

class Requests;

// The process's present objects.
struct Holdings {
  uint64_t queues = 0;
  Events::Held events;
  Buffers::Held memory;
};

class Process {
 public:
  // Returns nullptr, after one line on stderr, if the options in the environment are invalid or
  // memory is exhausted.
  static Process* get() noexcept;
  // Returns nullptr if this process has not opened the device. Async-signal-safe.
  static Process* existing() noexcept;

  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Returns a new descriptor or a negative errno.
  int open_kfd(bool close_on_exec);
  int open_render(uint32_t gpu_index, bool close_on_exec);

  struct Node {
    enum class Kind : uint8_t { none, kfd, render };
    Kind kind = Kind::none;
    uint32_t gpu_index = 0;  // of a render node
  };
  // Returns the node that a descriptor with this identity (fstat) refers to.
  Node node_of(dev_t device, ino_t inode) const noexcept;
  // Whether --inject has taken the GPU away.
  bool is_gone(uint32_t gpu_index) const noexcept;

  // Returns 0, a positive result, or a negative errno; -ENOMEM if memory is exhausted. Never
  // throws.
  int kfd_ioctl(uint64_t request, void* argument);
  int drm_ioctl(uint32_t gpu_index, uint64_t request, void* argument);

  // In the order of their nodes; not empty.
  std::span<const std::unique_ptr<Gpu>> gpus() const noexcept;
  Holdings holdings() const;
  // Returns the number in traces and findings of the queue whose ring begins there, or nullopt.
  std::optional<uint32_t> queue_with_ring(uint64_t ring_address) const;
  // Writes a report of all queues and waves (cp/report). `reason` begins its first line. Returns
  // false if the descriptor cannot be written. Never throws.
  bool write_hang_report(int descriptor, std::string_view reason) const noexcept;
  // Null if fences are not checked.
  const fences::Checker* checker() const noexcept;
  // Null if memory is not checked.
  memory_check::Checker* memory_checker() const noexcept;
  // For --check memory: the calling thread's stack, where it initialises ROCr, and whether calls
  // that made an allocation made it for the program, not for HIP itself.
  HostStackId capture_stack() const noexcept;
  void initialises_rocr() const;
  bool is_by_program(HostStackId allocated) const;
  // Null without --inject.
  Injector* injector() const noexcept;
  // Reports rules of --inject that never applied, and with --verbose how often others did.
  void report_injections() const;
  // Reports what the checks can determine only at the program's end. Returns the status with which
  // the process must end, or nothing: it keeps its own.
  std::optional<int> finish_checks();
  // The same for a process that ends without finish_checks(), as far as is known. Judges what the
  // host has done so far. Returns nothing in a child of vfork(). Async-signal-safe.
  static std::optional<int> exit_status() noexcept;
  // See Requests::reset_gpu().
  bool reset_gpu(uint32_t gpu_index);
  // Removes the machine's file if no other process lives. Call it at the process's end.
  void leave_machine() noexcept;

 private:
  explicit Process(std::unique_ptr<Requests> requests);
  std::unique_ptr<Requests> requests_;
  const int pid_;
};

}  // namespace uptempo::vgpu::kfd
