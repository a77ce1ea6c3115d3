// A workgroup in execution, and what it is started from. The command processor schedules workgroups; this runs them.
//
// Thread safety: Kernel and DispatchState are immutable once made and shared by all workers. A Workgroup and an Executor belong to one
// worker at a time. A Workgroup may move between workers between two run() calls.
#pragma once

#include <hsa/hsa.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/device.hpp"
#include "gfx9/decoder.hpp"
#include "gfx9/wave.hpp"

namespace uptempo::vgpu::gfx9 {

// What a kernel object says: entry, registers, segments, which SGPRs and VGPRs are set up. Reads code-object v3+ kernel descriptors
// (llvm AMDHSAKernelDescriptor.h) and the older amd_kernel_code_t, which ROCr's blit kernels carry.
struct Kernel {
  GpuAddress entry = 0;
  std::uint32_t group_segment_bytes = 0;
  std::uint32_t private_segment_bytes = 0;  // per work-item
  std::uint32_t kernarg_bytes = 0;
  std::uint32_t vgprs = 0;                  // architectural, allocated
  std::uint32_t accumulation_vgprs = 0;
  std::uint32_t accumulation_offset = 0;    // gfx90a
  std::uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  std::uint16_t properties = 0;             // which user SGPRs are enabled
  bool dynamic_stack = false;

  // The error is the queue error to report, with a sentence that says why.
  struct Rejected {
    QueueError error;
    std::string reason;
  };
  static std::variant<Kernel, Rejected> load(AddressSpace::Reader& memory, GpuAddress kernel_object, Target target);
};

struct DispatchState {
  Kernel kernel;
  hsa_kernel_dispatch_packet_t packet;  // a copy: the slot may be gone
  GpuAddress packet_address = 0;        // what dispatch_ptr shows to the kernel
  GpuAddress queue_address = 0;         // amd_queue_t, what queue_ptr shows
  std::uint64_t dispatch_id = 0;
  // From amd_queue_t, see amd_hsa_queue.h; all 0 when the kernel has no private segment.
  GpuAddress scratch_base = 0;          // scratch_backing_memory_location
  std::uint64_t scratch_bytes = 0;
  std::uint32_t scratch_waves = 0;      // slots of scratch_bytes_per_wave in it
  std::uint32_t scratch_bytes_per_wave = 0;
  std::array<std::uint32_t, 4> scratch_descriptor{};
  std::string name;                     // for messages: "bitonic_sort.kd", or the kernel object's address

  std::array<std::uint32_t, 3> workgroups() const noexcept;  // counts per dimension, partial ones included
};

// Decoded code, shared by all workers. invalidate() makes every worker decode anew before its next slice.
class CodeCache {
 public:
  CodeCache(AddressSpace& memory, Target target);
  ~CodeCache();
  void invalidate() noexcept;

  struct Impl;
  Impl& impl() noexcept { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// One worker's means: its view of memory, the code cache, counters, and the last fault.
class Executor {
 public:
  Executor(Device& device, CodeCache& code, Target target);
  ~Executor();

  // Bracket every run() of workgroups: translations and decoded code are stable in between. Keep it to a time slice.
  void enter() noexcept;
  void leave() noexcept;

  AddressSpace::Reader memory;
  CodeCache& code;
  const Target target;

  // Set when a wave stops with WaveStop::faulted.
  struct Fault {
    QueueError error = QueueError::none;    // none: a memory fault, then `memory` says which
    std::optional<MemoryFault> memory;
    std::string message;                    // one sentence: instruction, bytes, kernel, offset, workgroup, wave
  };
  std::optional<Fault> fault;

  std::uint64_t instructions = 0;  // executed wave instructions, all waves
};

class Workgroup {
 public:
  Workgroup();
  ~Workgroup();  // storage is reused from start() to start(): keep workgroups in a pool
  Workgroup(Workgroup&&) noexcept;
  Workgroup& operator=(Workgroup&&) noexcept;

  // Sets up LDS and all waves of workgroup `id` (in workgroups, not work-items). `scratch_slot` is the first of waves() consecutive slots of the
  // queue's scratch that no other resident workgroup uses; ignored when the kernel has no private segment.
  void start(std::shared_ptr<const DispatchState> dispatch, std::array<std::uint32_t, 3> id, std::uint32_t scratch_slot);

  unsigned waves() const noexcept;
  const DispatchState& dispatch() const noexcept;

  enum class Result : std::uint8_t { ended, preempted, faulted };

  // Runs every wave that can run, each for at most `instructions` wave instructions, round robin until all have ended (ended), each had its
  // slice or yielded (preempted), or one faulted (executor.fault). Call between executor.enter() and leave().
  Result run(Executor& executor, std::uint64_t instructions);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu::gfx9
