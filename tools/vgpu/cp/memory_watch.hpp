// A queue's reports to the memory checker (device/memory_check/checker.hpp). Does nothing while the
// checker is off.
//
// Thread safety: the queue's thread. All workers call a CheckedDispatch's observer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cp/kernel/kernel_table.hpp"
#include "cp/packet/sdma_packet.hpp"
#include "device/device.hpp"
#include "device/host/publisher.hpp"
#include "device/memory_check/checker.hpp"
#include "device/observer.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu {

// Judges each access of a dispatch before it happens.
class CheckedDispatch final : public MemoryObserver {
 public:
  // `of_runtime`: a kernel of ROCr or HIP that copies or fills. It may read bytes that nothing has
  // stored to.
  CheckedDispatch(memory_check::Checker& checker, memory_check::Packet packet, uint64_t number,
                  bool of_runtime, uint32_t group_segment_bytes)
      // `order` for the begin and end of workgroups, which own the contents of LDS.
      : MemoryObserver({.lds = true,
                        .ranges = checker.lists_buffer_ranges(),
                        .order = group_segment_bytes != 0}),
        checker_(checker),
        packet_(std::move(packet)),
        number_(number),
        of_runtime_(of_runtime) {}
  // The dispatch has ended. Call it before the completion is announced.
  ~CheckedDispatch() override { checker_.end(number_); }
  CheckedDispatch(const CheckedDispatch&) = delete;
  CheckedDispatch& operator=(const CheckedDispatch&) = delete;

  void access(const ObservedAccess& access) noexcept override;
  void out_of_range(const ObservedAccess& access) noexcept override;
  void lds_access(const ObservedLdsAccess& access) noexcept override;
  void workgroup_ended(const ObservedWorkgroup& group) noexcept override;

 private:
  // The bytes of a workgroup's LDS that its waves have stored to. One worker at a time uses it.
  using LdsBits = std::array<std::atomic<uint64_t>, 65536 / 64>;

  bool pass(GpuAddress address, uint64_t bytes, Access access) noexcept;
  void scalar(const ObservedAccess& access) noexcept;
  void report(const ObservedAccess& access, memory_check::Verdict verdict, uint32_t lane,
              uint32_t lanes, GpuAddress address, uint64_t bytes) noexcept;
  void report_lds(const ObservedLdsAccess& access, memory_check::Class what, uint32_t lane,
                  uint32_t lanes) noexcept;
  // Null: no memory.
  LdsBits* lds_of(const std::array<uint32_t, 3>& workgroup) noexcept;

  memory_check::Checker& checker_;
  const memory_check::Packet packet_;
  const uint64_t number_;
  const bool of_runtime_;
  std::mutex lds_mutex_;
  std::map<std::array<uint32_t, 3>, std::unique_ptr<LdsBits>> lds_;  // of workgroups that use it
  std::vector<std::unique_ptr<LdsBits>> unused_lds_;
};

// The words of the kernargs that may be addresses. Without metadata of the kernel, all words of the
// kernel's kernargs. Call it between the reader's enter() and leave().
std::vector<memory_check::Checker::Argument> possible_addresses(AddressSpace::Reader& memory,
                                                                GpuAddress kernargs,
                                                                const LoadedKernel& kernel);

class MemoryWatch {
 public:
  MemoryWatch(Device& device, AddressSpace::Reader& memory, uint32_t ordinal)
      : checker_(device.memory_check), memory_(memory), gpu_(device.gpu), ordinal_(ordinal) {}

  // Before `state` is launched. Returns null if checking is off. `published`: the host's call.
  std::unique_ptr<CheckedDispatch> launch(uint64_t index, gfx9::DispatchState& state,
                                          const LoadedKernel& kernel, const Publisher& published);
  // `offset` is the ring offset, as in traces.
  void copied(uint64_t offset, const sdma::Decoded& packet, const Publisher& published);

 private:
  memory_check::Checker* const checker_;
  AddressSpace::Reader& memory_;
  const uint32_t gpu_, ordinal_;
};

}  // namespace uptempo::vgpu
