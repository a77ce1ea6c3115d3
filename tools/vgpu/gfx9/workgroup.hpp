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
#include "device/observer.hpp"
#include "gfx9/decode/decoder.hpp"
#include "gfx9/op.hpp"

namespace uptempo::vgpu::gfx9 {

// What a kernel object says: entry, registers, segments, which SGPRs and VGPRs are set up. Reads code-object v3+ kernel descriptors
// (llvm AMDHSAKernelDescriptor.h) and the older amd_kernel_code_t, which ROCr's blit kernels carry.
struct Kernel {
  GpuAddress entry = 0;
  uint32_t group_segment_bytes = 0;
  uint32_t private_segment_bytes = 0;  // per work-item
  uint32_t kernarg_bytes = 0;
  uint32_t vgprs = 0;  // architectural, allocated
  uint32_t accumulation_vgprs = 0;
  uint32_t accumulation_offset = 0;  // gfx90a
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0;  // which user SGPRs are enabled
  Target target = Target::gfx90a;
  bool dynamic_stack = false;
  bool legacy = false;  // an amd_kernel_code_t: in practice a blit kernel of ROCr

  // The error is the queue error to report, with a sentence that says why.
  struct Rejected {
    QueueError error;
    std::string reason;
  };
  static std::variant<Kernel, Rejected> load(AddressSpace::Reader& memory, GpuAddress kernel_object,
                                             Target target);
};

class WaveSync;

// Waves that so many work-items fill, the last one perhaps in part.
constexpr uint32_t waves_of(uint32_t work_items) noexcept {
  return (work_items + kLanes - 1) / kLanes;
}

struct DispatchState {
  Kernel kernel;
  hsa_kernel_dispatch_packet_t packet;  // a copy: the slot may be gone
  GpuAddress packet_address = 0;        // what dispatch_ptr shows to the kernel
  GpuAddress queue_address = 0;         // amd_queue_t, what queue_ptr shows
  uint64_t dispatch_id = 0;
  // From amd_queue_t, see amd_hsa_queue.h; all 0 when the kernel has no private segment.
  GpuAddress scratch_base = 0;  // scratch_backing_memory_location
  uint64_t scratch_bytes = 0;
  uint32_t scratch_waves = 0;  // slots of scratch_bytes_per_wave in it
  uint32_t scratch_bytes_per_wave = 0;
  std::array<uint32_t, 4> scratch_descriptor{};
  std::shared_ptr<WaveSync> wave_sync;  // the queue's; null: global wave sync is an error
  std::string name;  // for messages: "bitonic_sort.kd", or the kernel object's address
  MemoryObserver* observer =
      nullptr;  // called unless the code was translated with MemoryPolicy::direct

  // Counts per dimension, partial ones included. A grid may have up to 2^32 - 1 work-items in one dimension.
  std::array<uint32_t, 3> workgroups() const noexcept {
    const auto count = [](uint32_t grid, uint32_t size) {
      return grid / size + (grid % size != 0);
    };
    return {count(packet.grid_size_x, packet.workgroup_size_x),
            count(packet.grid_size_y, packet.workgroup_size_y),
            count(packet.grid_size_z, packet.workgroup_size_z)};
  }
  // Of a whole workgroup.
  uint32_t waves_per_workgroup() const noexcept {
    return waves_of(uint32_t{packet.workgroup_size_x} * packet.workgroup_size_y *
                    packet.workgroup_size_z);
  }
};

struct CodePage;

// Decoded code, shared by all workers; pages of 4 KiB, decoded instruction by instruction as they are reached.
//
// Thread safety: invalidate() from any thread, also while workers run: each decodes anew from its next enter() on, and what
// they still use is freed when they have left. When code is unmapped or moved, enter() notices by itself; code that is overwritten in place
// needs invalidate() (the ACQUIRE_MEM packet that ROCr sends after it has loaded an executable).
class CodeCache {
 public:
  CodeCache(AddressSpace& memory, Target target, MemoryPolicy policy = MemoryPolicy::direct);
  ~CodeCache();  // every Executor on it is gone by then
  void invalidate() noexcept;

  struct Impl;
  Impl& impl() noexcept { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// One worker's means: its view of memory, the code cache, counters, and the last fault. Not thread-safe.
class Executor {
 public:
  Executor(Device& device, CodeCache& code, Target target);
  Executor(AddressSpace& memory, CodeCache& code, Target target);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Bracket every run() of workgroups: translations and decoded code are stable in between. Keep it to a time slice. Cost: about 100 ns.
  void enter() noexcept;
  void leave() noexcept;

  AddressSpace::Reader memory;
  CodeCache& code;
  const Target target;
  Caches* caches =
      nullptr;  // of the Device, if it was made from one; needed when `code` was made with MemoryPolicy::cached
  IgnoredAtomics* ignored_atomics =
      nullptr;  // of the Device, if it was made from one; null: nobody asks
  Interrupts* interrupts =
      nullptr;  // told by s_sendmsg; that of the Device, if it was made from one

  // Set when a wave stops with WaveStop::faulted.
  struct Fault {
    QueueError error = QueueError::none;  // none: a memory fault, then `memory` says which
    std::optional<MemoryFault> memory;
    std::string message;  // one sentence: instruction, bytes, kernel, offset, workgroup, wave
  };
  std::optional<Fault> fault;

  uint64_t instructions = 0;  // executed wave instructions, all waves

  // For handlers: the mapping that holds `address`, or nullptr. A memory instruction seldom changes its buffer, so each remembers its own.
  const Mapping* mapping(const Op& op, GpuAddress address) noexcept {
    const Mapping*& hint = hints_[op.index % kHints];
    if (address - hint->begin < hint->end - hint->begin) return hint;
    const Mapping* found = memory.find(address);
    if (found != nullptr) hint = found;
    return found;
  }
  // Host pointer for [address, address + size_bytes) or nullptr.
  std::byte* translate(const Op& op, GpuAddress address, size_t size_bytes,
                       Access access) noexcept {
    const Mapping* found = mapping(op, address);
    if (found == nullptr || size_bytes > found->end - address || !found->permits(access))
      return nullptr;
    return found->at(address);
  }
  // The entry of the instruction at `address`, which is 4-byte aligned.
  const Op* code_at(GpuAddress address) noexcept {
    const GpuAddress base = address & ~(kCodePageBytes - 1);
    PageHint& hint = pages_[base / kCodePageBytes % kPageHints];
    if (hint.base != base) hint = {base, find_page(base)};
    return hint.ops + (address - base) / 4;
  }

  // A page of this worker's own that stands for `page`: its entries have the same addresses. Kept until another page is asked for.
  CodePage& copies(const CodePage& page);

  static constexpr GpuAddress kCodePageBytes = 4096;

 private:
  friend struct CodeCache::Impl;
  static constexpr size_t kHints = 64;
  static constexpr size_t kPageHints = 32;
  struct PageHint {
    GpuAddress base = ~GpuAddress{0};
    const Op* ops = nullptr;
  };
  const Op* find_page(GpuAddress base) noexcept;
  void forget_pages() noexcept;

  std::array<const Mapping*, kHints> hints_;  // never null: an empty mapping stands for none
  std::array<PageHint, kPageHints> pages_;
  std::unique_ptr<CodePage> copies_;
  uint64_t pages_generation_ = 0;               // of the code cache, when pages_ was last emptied
  std::atomic<uint64_t> inside_generation_{0};  // of the code cache at enter(); 0 while outside
};

class Workgroup {
 public:
  Workgroup();
  ~Workgroup();  // storage is reused from start() to start(): keep workgroups in a pool
  Workgroup(Workgroup&&) noexcept;  // not while it is between start() and its end
  Workgroup& operator=(Workgroup&&) noexcept;

  // Sets up LDS and all waves of workgroup `id` (in workgroups, not work-items). `scratch_slot` is the first of waves() consecutive slots of the
  // queue's scratch that no other resident workgroup uses; ignored when the kernel has no private segment. The caller has checked the packet's
  // dimensions (at most 1024 work-items) and group segment (at most 64 KiB).
  //
  // Scalar registers that the kernel did not ask for start as 0. Vector registers and LDS start with what the previous workgroup in
  // this object left there, 0 at first: the same on every run when workgroups are taken and given back in the same order.
  void start(std::shared_ptr<const DispatchState> dispatch, std::array<uint32_t, 3> id,
             uint32_t scratch_slot);

  unsigned waves() const noexcept;
  const DispatchState& dispatch() const noexcept;
  std::array<uint32_t, 3> id() const noexcept;
  Wave& wave(unsigned index) noexcept;  // for tests and debuggers

  enum class Result : uint8_t { ended, preempted, faulted };

  // Runs every wave that can run, each for at most `instructions` wave instructions, round robin until all have ended (ended), each had its
  // slice or yielded (preempted), or one faulted (executor.fault). Call between executor.enter() and leave().
  Result run(Executor& executor, uint64_t instructions);

  uint32_t compute_unit =
      0;  // that it runs on, as far as caches are concerned; not changed by start()

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu::gfx9
