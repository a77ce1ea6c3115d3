// A queue's reports to the fence checker (device/fences/checker.hpp). Does nothing while the
// checker is off.
//
// Thread safety: the queue's thread. All workers call a WatchedDispatch's recorder.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "cp/host_watch.hpp"
#include "cp/packet/aql_packet.hpp"
#include "cp/packet/sdma_packet.hpp"
#include "device/device.hpp"
#include "device/fences/checker.hpp"
#include "device/host/host_pages.hpp"
#include "device/observer.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu {

// Passes a dispatch's accesses to global memory to its AccessSet. Private memory is excluded,
// because nothing else accesses it.
class WatchedDispatch final : public MemoryObserver, private fences::AccessSet::Listener {
 public:
  // A null `host_pages` means that the host is not observed. `keeps_instructions`: for the source
  // lines of findings.
  WatchedDispatch(fences::Checker& checker, fences::ActorId queue,
                  const fences::Checker::Packet& packet, const gfx9::DispatchState& state,
                  fences::L2Deal l2s, HostPages* host_pages, bool keeps_instructions = false,
                  fences::Origin origin = {});
  ~WatchedDispatch() override;
  WatchedDispatch(const WatchedDispatch&) = delete;
  WatchedDispatch& operator=(const WatchedDispatch&) = delete;

  void access(const ObservedAccess& access) noexcept override;
  void wrote_back(const ObservedWave&, AccessScope scope) noexcept override {
    if (scope == AccessScope::system) released_.store(true, std::memory_order_relaxed);
  }
  void invalidated(const ObservedWave&, AccessScope) noexcept override {
    if (!writes_back_) released_.store(true, std::memory_order_relaxed);
  }
  // Arguments that the firmware reads before the first workgroup starts. They count as scalar loads
  // of workgroup 0.
  void preload(GpuAddress address, uint64_t bytes) noexcept;
  // Call it when all workgroups have ended.
  void end(fences::Checker& checker, const fences::Checker::Packet& packet,
           const fences::Checker::KindOf& kind_of);

 private:
  void touched(GpuAddress page, bool writes) noexcept override;
  void written(GpuAddress page) noexcept override;
  void add(const ObservedAccess& access, GpuAddress address, uint64_t bytes, fences::Path path,
           uint32_t workgroup) noexcept;

  HostPages* const host_pages_;
  const bool of_runtime_;
  const bool writes_back_;  // a release of system scope is an instruction of the target
  // The kernel itself may have released its stores to the host. Without that instruction, fences of
  // agent and system scope are one: they only invalidate L1.
  std::atomic<bool> released_{false};
  std::mutex closed_mutex_;
  std::vector<GpuAddress> closed_;  // pages that this dispatch has closed to the host
  fences::Running running_;
  // Null: source lines are not wanted.
  const std::unique_ptr<fences::InstructionRanges> instructions_;
  const GpuAddress scratch_begin_, scratch_end_;
  const std::array<uint32_t, 3> groups_;
};

class FenceWatch {
 public:
  using Signal = fences::Checker::SignalValue;

  FenceWatch(Device& device, AddressSpace::Reader& memory, fences::Checker::QueueKind kind,
             uint32_t ordinal);
  ~FenceWatch();
  FenceWatch(const FenceWatch&) = delete;
  FenceWatch& operator=(const FenceWatch&) = delete;

  bool enabled() const noexcept { return checker_ != nullptr; }
  // From before a completion is reported until its signal is stored, and from before the time of a
  // doorbell is taken until it is reported (Checker::section()).
  [[nodiscard]] fences::Checker::Section section() {
    return checker_ == nullptr ? fences::Checker::Section() : checker_->section();
  }
  void doorbell(uint64_t value, uint64_t host_ns);
  // The host's call that published everything up to that doorbell, from the last one on.
  void published(uint64_t value, const Publisher& publisher);

  // Whether found doorbells must be passed on.
  bool keeps_places() const noexcept { return keeps_places_; }
  // That call for a packet (SDMA: for a byte of the ring), if it is known. Positions only grow.
  Publisher publisher_of(uint64_t position);

  // For compute queues, before `state` is launched. Returns null if checking is off. `runtimes`: a
  // blit kernel of ROCr, which reuses its arguments without a wait. `published`: publisher_of() the
  // packet.
  std::unique_ptr<WatchedDispatch> launch(AqlHeader header, uint64_t index,
                                          gfx9::DispatchState& state, fences::L2Deal l2s,
                                          bool runtimes, const Publisher& published);
  void end(WatchedDispatch& dispatch, AqlHeader header, uint64_t index, hsa_signal_t completion);
  // Dependencies of the packet that completes next. look_at_dependencies() starts a new evaluation,
  // the next function records a satisfied signal, and the last one reports the packet's completion.
  void look_at_dependencies() { satisfied_.clear(); }
  void satisfied(hsa_signal_t signal, int64_t value);
  // The queue waits for the signal that contains `address`.
  void unsatisfied(GpuAddress address);
  // The vendor's packet that completes next does this to the caches.
  void carry_out(const CacheActions& caches) noexcept { caches_ = caches; }
  void complete(AqlHeader header, uint64_t index, hsa_signal_t completion);

  // For SDMA queues. `offset` is the ring offset, as in traces.
  void wait(uint64_t offset, GpuAddress polled);
  // Call it when the packet is in the ring and has not begun. From then on the host's loads from
  // its destination are observed.
  void expect_copy(const sdma::Decoded& packet);
  void begin_copy(const sdma::Decoded& packet);
  void copy(uint64_t offset, const sdma::Decoded& packet);
  void signal(uint64_t offset, GpuAddress decremented);

  // A time before the checker received the last completion, by end(), complete() or signal(), and
  // after it received all earlier ones.
  uint64_t before_completion_ns() const noexcept { return before_completion_ns_; }

 private:
  fences::Checker::Packet packet(AqlHeader header, uint64_t index, hsa_signal_t completion);
  std::optional<Signal> signal_at(GpuAddress address);
  void before_completion();
  void end_waiting();
  // Call it between the report of a completion and the store that announces it to the host.
  void watch_looks(const std::optional<Signal>& signal);
  void close(fences::Checker::Range range, bool written);
  void end_copy(const sdma::Decoded* packet);

  fences::Checker* const checker_;
  HostWatch host_;
  HostPages* const host_pages_;
  const bool waits_;                 // the host's looks at signals are observed
  std::vector<GpuAddress> awaited_;  // signals, since the queue last proceeded
  const bool keeps_places_;          // stacks and instructions
  AddressSpace::Reader& memory_;
  const fences::Checker::KindOf kind_of_;
  const fences::ActorId actor_;
  uint64_t before_completion_ns_ = 0;
  std::vector<Signal> satisfied_;
  CacheActions caches_;
  struct Published {
    uint64_t value;
    Publisher publisher;
  };
  std::deque<Published> published_;  // doorbells whose packets have not all begun
  std::vector<GpuAddress> closed_;   // pages that the current copy has closed to the host
};

}  // namespace uptempo::vgpu
