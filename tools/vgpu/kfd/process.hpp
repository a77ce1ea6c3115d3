// One process's view of the emulated driver: when it comes into being, and which of its descriptors and requests are the device's. What
// the requests do is in requests.hpp.
//
// Made by the first open of /dev/kfd or the render node, kept until the process ends (as the kernel's kfd_process lives as long as its address
// space, not its descriptors). Never destroyed: device threads may run while the program's static destructors do.
//
// fork: a child starts without a device. Its inherited descriptors answer EBADF, as the kernel's do ("Using KFD FD in wrong process"), and its first
// open makes a Process of its own.
//
// Thread safety: any thread, except where said.
#pragma once

#include <sys/stat.h>
#include <cstdint>
#include <memory>
#include <optional>

#include "device/description.hpp"
#include "device/device_counts.hpp"
#include "device/fences/checker.hpp"
#include "device/incoherent.hpp"
#include "kfd/buffers.hpp"
#include "kfd/events.hpp"

namespace uptempo::vgpu::kfd {

// KFD's identifier of the emulated GPU (a 16-bit hash in the kernel; any nonzero value will do).
inline constexpr uint32_t kGpuId = 0x5a21;

// The interface version. 1.14 brought event_age, which newer ROCr releases rely on from there on; everything that 1.15 and later
// add (SVM attributes, contiguous VRAM, queues by SDMA engine id) is not emulated, so the version says so.
inline constexpr uint32_t kKfdMajorVersion = 1;
inline constexpr uint32_t kKfdMinorVersion = 14;

class Requests;

// What exists for the process at the moment.
struct Holdings {
  uint64_t queues = 0;
  Events::Held events;
  Buffers::Held memory;
};

class Process {
 public:
  // nullptr, after one sentence on stderr, when the options in the environment are wrong or memory is refused.
  static Process* get() noexcept;
  // nullptr when this process has not opened the device. Async-signal-safe.
  static Process* existing() noexcept;

  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // A new descriptor, or a negative errno.
  int open_kfd(bool close_on_exec);
  int open_render(bool close_on_exec);

  enum class Node { none, kfd, render };
  // What a descriptor of that identity (fstat) stands for.
  Node node_of(dev_t device, ino_t inode) const noexcept;

  // 0 (or a positive result) or a negative errno: -ENOMEM when memory is refused. No exception leaves them.
  int kfd_ioctl(uint64_t request, void* argument);
  int drm_ioctl(uint64_t request, void* argument);

  const DeviceDescription& description() const noexcept;

  const DeviceCounts& counts() const noexcept;
  // Null when memory is coherent.
  const Caches* caches() const noexcept;
  Holdings holdings() const;
  // How traces and findings call the program's queue whose ring begins there; nothing: there is none.
  std::optional<uint32_t> queue_with_ring(uint64_t ring_address) const;
  // Null when fences are not checked.
  const fences::Checker* checker() const noexcept;
  // The program ends: what the fence checker can only tell then.
  void finish_checks();

 private:
  explicit Process(std::unique_ptr<Requests> requests);
  std::unique_ptr<Requests> requests_;
};

}  // namespace uptempo::vgpu::kfd
