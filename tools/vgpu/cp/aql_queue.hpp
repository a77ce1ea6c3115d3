// A compute queue. It processes AQL packets in index order, as far as doorbell and write index
// allow.
//
// Ordering: packets are launched in order. A dispatch without barrier bit may run beside earlier
// ones and complete before them. A barrier bit waits until all earlier packets of this queue are
// complete; where nothing else depends on their ends, the workers start the next dispatch without
// this queue (chain_next). A barrier packet (AND, OR, value) blocks all later packets until its
// condition holds (HSA System Architecture Specification 1.2, 2.9).
//
// Limit: a doorbell's value is the index of the last packet. Producers of a shared queue ring out
// of order and overwrite one another's doorbells. Each change of the doorbell therefore admits all
// packets up to the write index of that moment, and never one beyond the write index. The queue
// waits for a header that is still INVALID.
//
// Retirement: slots are released in order. The queue stores INVALID into the header, then the read
// index, then the completion signal, so a thread that has waited for a packet finds its slot free.
// For packets without signal, the read index is stored at the end of the turn, because producers
// read its line. With early_read_index, queues of the program retire a seeded choice of dispatches
// at launch. The kernel's dispatch pointer remains the address of the slot, so a kernel reads what
// a producer has stored there meanwhile. With grouped_read_index, the index that these queues store
// is a multiple of eight; with eager_packets, they take each packet whose header is valid.
//
// Errors: a malformed or unsupported packet, a fault or an unsupported instruction stops the queue.
// The queue abandons everything that runs on it and sets the bit of queue_inactive_signal that
// ROCr's handler understands. It sets none for memory faults, which ROCr learns from its event. One
// line on stderr names packet and reason. No packet completes afterwards.
#pragma once

#include <hsa/amd_hsa_queue.h>

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "cp/command_processor.hpp"
#include "cp/packet/aql_packet.hpp"
#include "cp/queue.hpp"
#include "cp/race_watch.hpp"
#include "cp/scheduler/queue_share.hpp"
#include "cp/scheduler/scratch_slots.hpp"

namespace uptempo::vgpu {

class AqlQueue final : public Queue {
 public:
  // The limit bounds the time that a full ring takes from other queues. Half of it would cost 2 ns
  // more per packet.
  static constexpr unsigned kPacketsPerTurn = 16;

  // `runtime_owned`: a queue of ROCr, which recycles kernargs with the ring. Its read index is
  // never early.
  AqlQueue(QueueContext& context, uint32_t ordinal, const ComputeQueueConfig& config,
           bool runtime_owned);

  bool advance() override;
  bool abandon() override;
  bool executing() const noexcept override;
  bool at_rest() const noexcept override;
  void lose_doorbell() noexcept override { config_.doorbell = nullptr; }
  const uint64_t* doorbell() const noexcept override { return config_.doorbell; }

  void describe(QueueSnapshot& snapshot) const override;
  void describe_waves(QueueSnapshot& snapshot, Scheduler::Residents& residents) const override;

  // Ring size 0 or percentage 0 suspends the queue. Returns false if `ring` differs from the ring
  // of a live queue, since that ring cannot move.
  bool update(GpuAddress ring, uint64_t ring_bytes, uint32_t percentage, uint32_t priority);

  // For workgroups that start from now on.
  void set_compute_units(const ComputeUnitSet& units);

 private:
  // Maximum number of dispatches that run concurrently. Others wait in the ring.
  static constexpr uint64_t kMaxInFlight = 64;

  // Start of a packet whose signal gets no times, in ticks.
  static constexpr uint64_t kUntimed = 1;

  // Data that the completion of a packet needs.
  struct Begun {
    AqlHeader header;
    hsa_signal_t completion_signal{0};
    uint64_t start_ticks = 0, start_ns = 0;
  };
  // A launched packet, until it is complete and its slot is released.
  struct InFlight {
    std::unique_ptr<Dispatch> dispatch;        // null once complete
    std::unique_ptr<WatchedDispatch> watched;  // null while fences are not checked
    std::unique_ptr<CheckedDispatch> checked;  // null while memory is not checked
    std::unique_ptr<RaceWatched> races;        // null if it is not checked for races
    Begun begun;
    bool complete = false;
    bool retire_early = false;
    std::optional<uint64_t> late_until_ns;  // set when it ends, if completions are delayed
  };

  // A packet that completes when it is launched and whose completion is delayed. It blocks all
  // later packets.
  struct LateCompletion {
    AqlHeader header;
    hsa_signal_t signal{0};
    std::optional<hsa_kernel_dispatch_packet_t> dispatch;
    std::string kernel;
  };

  bool attach();
  void look_at_doorbell();
  bool reap();
  bool launch_next();
  bool launch(const std::byte* packet, AqlHeader header);
  bool launch_dispatch(const std::byte* slot, AqlHeader header);
  InFlight& begin_flight(AqlHeader header, const hsa_kernel_dispatch_packet_t& packet);
  bool chain_waits() const noexcept;
  bool chain_next(const std::byte* slot, AqlHeader header);
  bool launch_vendor(const std::byte* slot, AqlHeader header);
  bool launch_pm4(const std::byte* slot, AqlHeader header);
  bool launch_barrier_value(const std::byte* slot, AqlHeader header);
  bool launch_barrier(const std::byte* slot, AqlHeader header);
  std::optional<bool> dependency_holds(hsa_signal_t signal, hsa_signal_condition32_t condition,
                                       int64_t value, int64_t mask);
  bool scratch_is_ready(const hsa_kernel_dispatch_packet_t& packet, const std::string& kernel);
  bool scratch_is_reclaimed();
  std::unique_ptr<gfx9::DispatchState> make_state(const hsa_kernel_dispatch_packet_t& packet,
                                                  const LoadedKernel& kernel);

  bool complete_in_place(AqlHeader header, hsa_signal_t signal,
                         const hsa_kernel_dispatch_packet_t* dispatch, const std::string* kernel);
  bool signal_completion(uint64_t index, const Begun& packet,
                         const hsa_kernel_dispatch_packet_t* dispatch, const std::string* kernel);

  // For delays only (aql_queue_delayed.cpp). Returns launch_next()'s result while the next packet's
  // launch or completion is delayed, or when its delayed completion has just happened. Returns
  // nullopt if the packet may be launched.
  std::optional<bool> hold_back();
  bool is_late(InFlight& packet, uint64_t index);
  bool completes_late(AqlHeader header, hsa_signal_t signal,
                      const hsa_kernel_dispatch_packet_t* dispatch, const std::string* kernel);
  std::string drawn_delays(uint64_t index) const;  // a field of the packet's trace line

  // report/aql_queue_snapshot.cpp
  void describe_front(QueueSnapshot& snapshot, const std::byte* ring) const;
  void describe_completers(QueueSnapshot& snapshot, const std::byte* ring) const;
  PacketSnapshot packet_snapshot(uint64_t index, const std::byte* bytes,
                                 hsa_signal_t completion) const;
  SignalSnapshot signal_snapshot(uint64_t handle) const;
  // For --inject only (aql_queue_injected.cpp). Returns launch_next()'s result if a rule applies to
  // the next packet and keeps it from being launched.
  std::optional<bool> inject(AqlHeader header);
  bool launch_torn(AqlHeader header);

  void retire();
  void publish_read_index() noexcept;
  void store_read_index(uint64_t index) noexcept;

  void stop(uint64_t index, uint32_t type, QueueError error, const std::string& reason);
  void stop_with_fault(uint64_t index, uint32_t type, MemoryFault fault);
  void halt(uint64_t index, uint32_t type, const std::string& reason);
  void note_ignored_field(const std::byte* packet, AqlHeader header);
  void send_inactive(uint64_t value);
  void trace_packet(uint64_t index, const Begun& packet, uint64_t end_ns,
                    const hsa_kernel_dispatch_packet_t* dispatch, const std::string* kernel) const;

  bool wait_for(Waiting what) {
    waiting_ = what;
    return false;
  }
  bool blocked_on_earlier() const noexcept { return running_ != 0; }
  InFlight& in_flight(uint64_t index) { return in_flight_[index % kMaxInFlight]; }
  std::byte* slot(uint64_t index) const noexcept {
    return ring_ + (index & (packets_ - 1)) * kAqlPacketBytes;
  }
  bool has_property(amd_queue_properties_t property) const noexcept;
  void begin_packet(const std::byte* packet);

  ComputeQueueConfig config_;
  const std::shared_ptr<gfx9::WaveSync> wave_sync_;
  const bool runtime_owned_;
  const uint64_t packets_;  // ring size
  const bool chains_;
  const bool is_eager_;
  const bool frees_in_groups_;
  const RaceWatch races_;
  bool stopped_ = false;
  std::set<std::string_view> ignored_fields_;  // those that were named, with --verbose
  bool suspended_ = false;

  // Valid inside one section of the address space: this one.
  uint64_t attached_in_ = 0;
  std::byte* ring_ = nullptr;
  amd_queue_t* amd_queue_ = nullptr;
  uint64_t* read_index_ = nullptr;
  uint64_t* write_index_ = nullptr;

  uint64_t doorbell_seen_ = ~uint64_t{0};
  uint64_t written_ = 0;   // the last value loaded from the write index
  uint64_t admitted_ = 0;  // packets below this index and below the write index may be taken
  uint64_t oldest_ = 0;    // first packet in in_flight_
  uint64_t retired_ = 0;   // slots below it are released
  uint64_t read_index_published_ = 0;
  uint64_t next_ = 0;     // the next packet to launch
  uint64_t running_ = 0;  // launched and not complete
  ScratchSlots scratch_slots_;
  QueueShare share_;
  std::array<InFlight, kMaxInFlight> in_flight_;

  std::optional<LateCompletion> late_completion_;

  uint64_t injector_asked_ = ~uint64_t{0};  // the packet for which the injector was asked last
  uint64_t injected_until_ns_ = 0;          // that packet is late until then; 0: it is not
  uint64_t torn_ = ~uint64_t{0};            // the last packet that is torn
  uint64_t stale_ = ~uint64_t{0};           // the last one whose acquire invalidates no cache

  // start of packet next_; 0: not started, or times are not needed
  uint64_t start_ticks_ = 0, start_ns_ = 0;
  bool scratch_requested_ = false;
  std::string scratch_request_;  // in words
  unsigned scratch_requests_ = 0;
  bool scratch_once_used_ = false;
  bool scratch_reclaim_sent_ = false;
};

}  // namespace uptempo::vgpu
