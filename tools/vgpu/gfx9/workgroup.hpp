// A workgroup in execution, and the objects that it is started from. The command processor
// schedules workgroups; this class runs them.
//
// Thread safety: Kernel and DispatchState are immutable once made and shared by all workers. A
// Workgroup and an Executor belong to one worker at a time. A Workgroup may move between workers
// between two run() calls.
#pragma once

#include <hsa/hsa.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "device/compute_units.hpp"
#include "device/device.hpp"
#include "device/observer.hpp"
#include "device/occupancy.hpp"
#include "gfx9/decode/decoder.hpp"
#include "gfx9/op.hpp"

namespace uptempo::vgpu::gfx9 {

// Contents of a kernel object: entry, registers, segments, and the SGPRs and VGPRs to set up. Reads
// code-object v3+ kernel descriptors (llvm AMDHSAKernelDescriptor.h) and the older
// amd_kernel_code_t, which ROCr's blit kernels use.
struct Kernel {
  GpuAddress entry = 0;
  uint32_t group_segment_bytes = 0;
  uint32_t private_segment_bytes = 0;  // per work-item
  uint32_t kernarg_bytes = 0;
  uint32_t vgprs = 0;  // architectural, allocated
  uint32_t accumulation_vgprs = 0;
  uint32_t accumulation_offset = 0;  // gfx90a, gfx942
  // Kernel arguments that the firmware loads into the user SGPRs after the other ones; 0: none.
  // Such a kernel begins with 256 bytes of code for firmware that does not load them (LLVM
  // AMDGPUUsage, "Preloaded Kernel Arguments").
  uint32_t preload_dwords = 0, preload_offset_bytes = 0;
  static constexpr uint32_t kPreloadHeaderBytes = 256;
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0;  // which user SGPRs are enabled
  Target target = Target::gfx90a;
  bool dynamic_stack = false;
  bool legacy = false;  // an amd_kernel_code_t: in practice a blit kernel of ROCr

  // Registers that the hardware allocates to a wave. On gfx90a and gfx942 both kinds of VGPRs are of
  // one file; gfx908 has as many of each kind in files of their own.
  constexpr uint32_t allocated_vgprs() const noexcept {
    return accumulation_offset != 0 ? vgprs + accumulation_vgprs : vgprs;
  }
  // GRANULATED_WAVEFRONT_SGPR_COUNT: twice the number of blocks of 16, less 1 (LLVM AMDGPUUsage).
  constexpr uint32_t allocated_sgprs() const noexcept { return ((rsrc1 >> 6 & 0xf) / 2 + 1) * 16; }

  // The queue error to report, and a sentence that gives the reason.
  struct Rejected {
    QueueError error;
    std::string reason;
  };
  static std::variant<Kernel, Rejected> load(AddressSpace::Reader& memory, GpuAddress kernel_object,
                                             Target target);
};

class WaveSync;

// Number of waves for `work_items`, including a partial last wave.
constexpr uint32_t waves_of(uint32_t work_items) noexcept {
  return (work_items + kLanes - 1) / kLanes;
}

// The needs of a complete workgroup. Requires a packet that was checked: at most 1024 work-items
// and 64 KiB of LDS.
inline WorkgroupNeeds needs_of(const Kernel& kernel,
                               const hsa_kernel_dispatch_packet_t& packet) noexcept {
  return {
      .waves = static_cast<uint16_t>(waves_of(uint32_t{packet.workgroup_size_x} *
                                              packet.workgroup_size_y * packet.workgroup_size_z)),
      .lds_blocks = WorkgroupNeeds::lds_blocks_of(packet.group_segment_size),
      .vgprs = static_cast<uint16_t>(kernel.allocated_vgprs()),
      .sgprs = static_cast<uint16_t>(kernel.allocated_sgprs())};
}

struct DispatchState {
  Kernel kernel;
  hsa_kernel_dispatch_packet_t packet;  // a copy: the slot may be reused
  GpuAddress packet_address = 0;        // the value of dispatch_ptr
  GpuAddress queue_address = 0;         // amd_queue_t, the value of queue_ptr
  uint64_t dispatch_id = 0;
  uint32_t hardware_queue = 0;  // of the num_cp_queues that KFD has: HW_ID's pipe and queue
  // From amd_queue_t, see amd_hsa_queue.h; all 0 when the kernel has no private segment.
  GpuAddress scratch_base = 0;  // scratch_backing_memory_location
  uint64_t scratch_bytes = 0;
  uint32_t scratch_waves = 0;  // slots of scratch_bytes_per_wave in it
  uint32_t scratch_bytes_per_wave = 0;
  std::array<uint32_t, 4> scratch_descriptor{};
  std::shared_ptr<WaveSync> wave_sync;  // the queue's; null: global wave sync is an error
  std::string name;  // for messages: "bitonic_sort.kd", or the kernel object's address
  // Called unless the code was translated with MemoryPolicy::direct. add_observer() sets it.
  MemoryObserver* observer = nullptr;
  std::shared_ptr<Observers> observers;  // null: there is at most one
  // Call it before the dispatch starts. `added` must exist until the dispatch has ended.
  void add_observer(MemoryObserver& added) {
    if (observer == nullptr) {
      observer = &added;
      return;
    }
    std::vector<MemoryObserver*> all = {observer};
    if (observers != nullptr) all = observers->list();
    all.push_back(&added);
    observers = std::make_shared<Observers>(std::move(all));
    observer = observers.get();
  }

  // The arguments that firmware preloads. Waves enter the kernel after its header of 256 bytes and
  // have these in their SGPRs. Empty: firmware that preloads none; waves enter at the header.
  std::optional<std::array<uint32_t, 16>> preloaded_kernargs;
  GpuAddress preloaded_address() const noexcept {
    return reinterpret_cast<GpuAddress>(packet.kernarg_address) + kernel.preload_offset_bytes;
  }
  size_t preloaded_bytes() const noexcept { return kernel.preload_dwords * sizeof(uint32_t); }
  // Loads them as the kernel asks; does nothing for a kernel that preloads none. Call it when the
  // kernel starts, because a program may change arguments until then. Returns false if they are not
  // mapped.
  bool preload_kernargs(AddressSpace::Reader& memory);

  // Workgroups per dimension, partial ones included. A grid may have up to 2^32 - 1 work-items in
  // one dimension.
  std::array<uint32_t, 3> workgroups() const noexcept {
    const auto count = [](uint32_t grid, uint32_t size) {
      return grid / size + (grid % size != 0);
    };
    return {count(packet.grid_size_x, packet.workgroup_size_x),
            count(packet.grid_size_y, packet.workgroup_size_y),
            count(packet.grid_size_z, packet.workgroup_size_z)};
  }
  // Waves of a complete workgroup.
  uint32_t waves_per_workgroup() const noexcept { return needs().waves; }
  WorkgroupNeeds needs() const noexcept { return needs_of(kernel, packet); }
};

struct CodePage;

// Decoded code, shared by all workers, in pages of 4 KiB. Each instruction is decoded when it is
// first reached.
//
// Thread safety: invalidate() may be called from any thread, also while workers run. Each worker
// decodes again after its next enter(). Pages in use are freed when the workers have left. enter()
// detects code that was unmapped or moved. Code that is overwritten in place needs invalidate():
// ROCr sends an ACQUIRE_MEM packet after it has loaded an executable.
class CodeCache {
 public:
  CodeCache(AddressSpace& memory, Target target, MemoryPolicy policy = MemoryPolicy::direct);
  ~CodeCache();  // requires that all its Executors are destroyed
  void invalidate() noexcept;

  struct Impl;
  Impl& impl() noexcept { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// The state of one worker: its view of memory, the code cache, counters, and the last fault. Not
// thread-safe.
class Executor {
 public:
  Executor(Device& device, CodeCache& code, Target target);
  Executor(AddressSpace& memory, CodeCache& code, Target target);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Enclose every run() of workgroups: translations and decoded code stay valid in between. Keep
  // the section to one time slice. Cost: about 100 ns.
  void enter() noexcept;
  void leave() noexcept;

  AddressSpace::Reader memory;
  CodeCache& code;
  const Target target;
  // The Device's, if it was made from one; required when `code` was made with MemoryPolicy::cached.
  Caches* caches = nullptr;
  // The Device's, if it was made from one; null: no observer.
  IgnoredAtomics* ignored_atomics = nullptr;
  Interrupts* interrupts = nullptr;  // notified by s_sendmsg; the Device's, if it was made from one
  WaveSlots* wave_slots = nullptr;   // null: every workgroup is alone on the device

  // Set when a wave stops with WaveStop::faulted.
  struct Fault {
    QueueError error = QueueError::none;  // none: a memory fault, described by `memory`
    std::optional<MemoryFault> memory;
    std::string message;  // one sentence: instruction, bytes, kernel, offset, workgroup, wave
    GpuAddress pc = 0;    // of the instruction; 0: not known
  };
  std::optional<Fault> fault;

  uint64_t instructions = 0;  // executed wave instructions, all waves

  // For handlers: the mapping that holds `address`, or nullptr. Each memory instruction remembers
  // its mapping, because an instruction seldom changes its buffer.
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

  // A page of this worker's own that represents `page`: its entries have the same addresses. Valid
  // until the next call.
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

  std::array<const Mapping*, kHints> hints_;  // never null: an empty mapping means none
  std::array<PageHint, kPageHints> pages_;
  std::unique_ptr<CodePage> copies_;
  // Generation of the code cache when pages_ was last emptied.
  uint64_t pages_generation_ = 0;
  // Generation of the code cache at enter(); 0 outside.
  std::atomic<uint64_t> inside_generation_{0};
};

class Workgroup {
 public:
  Workgroup();
  ~Workgroup();                     // start() reuses the storage: keep workgroups in a pool
  Workgroup(Workgroup&&) noexcept;  // not while it is between start() and its end
  Workgroup& operator=(Workgroup&&) noexcept;

  // Sets up LDS and all waves of workgroup `id` (in workgroups, not work-items). `scratch_slot` is
  // the first of waves() consecutive slots of the queue's scratch that no other resident workgroup
  // uses. It is ignored when the kernel has no private segment. The caller has checked the packet's
  // dimensions (at most 1024 work-items) and group segment (at most 64 KiB). `dispatch` must exist
  // until the workgroup has ended. A shared pointer would make all workers store to its count.
  //
  // Scalar registers that the kernel did not ask for start as 0. Vector registers and LDS keep the
  // contents that the previous workgroup in this object left, initially 0. Runs are therefore
  // reproducible when workgroups are taken and given back in the same order.
  void start(const DispatchState& dispatch, std::array<uint32_t, 3> id, uint32_t scratch_slot);

  unsigned waves() const noexcept;
  const DispatchState& dispatch() const noexcept;
  std::array<uint32_t, 3> id() const noexcept;
  Wave& wave(unsigned index) noexcept;  // for tests and debuggers

  enum class Result : uint8_t { ended, preempted, faulted };

  // Runs every wave that can run, round robin, each for at most `instructions` wave instructions.
  // Returns `ended` when all waves have ended, `preempted` when each had its slice or yielded, and
  // `faulted` when one faulted (executor.fault). Call between executor.enter() and leave().
  Result run(Executor& executor, uint64_t instructions);

  // The place of its waves, which HW_ID reports. A workgroup that does not read it and ends within
  // its first slice takes no place, so starting a workgroup costs nothing for it. The first call
  // after start() takes the place: on
  // `compute_unit` if the executor has caches, else by `units` and `turn`. Call it while
  // `executor` runs the workgroup.
  const WorkgroupPlace& place(Executor& executor);
  // Gives back the place, if one was taken. Call it when the workgroup has ended or is abandoned,
  // before its storage is used again.
  void leave_place() noexcept;

  // Compute unit whose caches it uses. start() does not change these three.
  uint32_t compute_unit = 0;
  // Compute units that its queue may use; its number in the order in which workgroups start.
  ComputeUnitSet units;
  uint64_t turn = 0;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu::gfx9
