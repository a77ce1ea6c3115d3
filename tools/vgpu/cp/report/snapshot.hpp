// The sources of a hang report: the state of a GPU's queues, of the dispatches that run, and of
// their resident waves, as copies.
//
// The command processor's thread makes the copies between two passes, since it owns the queues. It
// has the workers rest for that moment (Scheduler::residents()), so waves are stopped between two
// slices and nothing is read that a worker writes.
//
// Thread safety: plain data. Lifetime: none of it refers to the device.
#pragma once

#include <hsa/hsa.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cp/packet/aql_packet.hpp"
#include "cp/packet/sdma_packet.hpp"
#include "gfx9/wave.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu {

// Registers of a wave as its first active lane sees them.
struct WaveRegisters {
  std::array<uint32_t, 128> scalar{};
  std::vector<uint32_t> vector;  // as many as the kernel allocates
};

// A wave between two slices.
struct WaveSnapshot {
  GpuAddress pc = 0;  // the next instruction
  uint64_t exec = 0;
  gfx9::WaveStop stop = gfx9::WaveStop::quantum;
  // Null but for the first waves of a report, since copying them all would take long.
  std::shared_ptr<const WaveRegisters> registers;
  bool global_barrier = false;  // waits for other waves of the queue (gfx9/wave_sync.hpp)
};

// A workgroup that has started and not ended.
struct WorkgroupSnapshot {
  std::array<uint32_t, 3> id{};
  std::vector<WaveSnapshot> waves;
};

struct DispatchSnapshot {
  std::string kernel;  // "bitonic_sort.kd"
  GpuAddress entry = 0;
  gfx9::Target target = gfx9::Target::gfx90a;
  bool opened = true;  // false: it starts when earlier packets have ended
  uint64_t workgroups = 0;
  uint64_t not_started = 0;
  std::vector<WorkgroupSnapshot> resident;
  // Compute units of the queue, and the workgroups that one holds by `limits` (limits_text()).
  uint32_t units = 0, per_unit = 0;
  std::string limits;
  bool has_room = true;  // a unit has room for a workgroup beside those of all dispatches
};

// A signal and its value.
struct SignalSnapshot {
  uint64_t handle = 0;           // 0: none
  std::optional<int64_t> value;  // nullopt: it is not mapped on the device
};

struct PacketSnapshot {
  uint64_t index = 0;
  std::array<std::byte, kAqlPacketBytes> bytes{};
  SignalSnapshot completion;
  std::optional<DispatchSnapshot> dispatch;  // a dispatch that was launched

  AqlHeader header() const noexcept;
};

// A condition on a signal that a packet waits for, and that does not hold.
struct Dependency {
  SignalSnapshot signal;
  hsa_signal_condition32_t condition = HSA_SIGNAL_CONDITION_EQ;
  int64_t reference = 0, mask = -1;
};

// A packet that has not completed and decrements a signal when it does.
struct Completer {
  uint64_t signal = 0;
  uint64_t index = 0;  // of the packet; of an SDMA queue its offset in bytes
  bool launched = false;
  uint32_t type = HSA_PACKET_TYPE_INVALID;
  GpuAddress kernel_object = 0;  // of a dispatch
};

// A packet of an SDMA queue that has not been executed.
struct QueuedCopy {
  uint64_t offset = 0;
  sdma::Decoded packet;
};

// The reason why the queue has not launched its first waiting packet.
enum class Front : uint8_t {
  nothing,       // there is no such packet, or it is launched in the next pass
  doorbell,      // it is written and the doorbell was not rung for it
  unpublished,   // the write index is beyond it and its header is still INVALID
  earlier,       // its barrier bit, or its place behind a packet with one
  dependencies,  // signals: QueueSnapshot::dependencies
  memory,        // an SDMA poll of a word that is no signal: QueueSnapshot::poll
  room,          // dispatches in execution; the device runs no more of them
  scratch,       // the runtime, which was asked for scratch memory
  delay,         // the end of a delay (--delay)
};

struct PollSnapshot {
  GpuAddress address = 0;
  uint32_t reference = 0, mask = 0, function = 0;
  std::optional<uint32_t> value;
};

struct QueueSnapshot {
  bool sdma = false;
  uint32_t gpu = 0;
  uint32_t number = 0;  // as in traces
  uint32_t engine = 0;  // of an SDMA queue
  bool runtime_owned = false;
  bool stopped = false, suspended = false;
  // In packets; of SDMA queues in bytes.
  uint64_t ring = 0, read = 0, write = 0;
  GpuAddress ring_address = 0;
  std::optional<uint64_t> doorbell;  // nullopt: the program has unmapped it
  // Compute queues.
  uint32_t priority = 0;  // KFD's
  uint32_t compute_units = 0, all_compute_units = 0;

  std::vector<PacketSnapshot> running;  // launched and not complete, in order
  uint64_t next = 0;                    // the first packet that was not launched
  Front front = Front::nothing;
  std::optional<PacketSnapshot> packet;  // `next`, if it is published
  std::string sdma_packet;               // "copy_linear"
  std::vector<Dependency> dependencies;
  bool any_dependency = false;  // one of them suffices
  std::optional<PollSnapshot> poll;

  std::vector<Completer> completers;
  std::vector<QueuedCopy> copies;

  // Whether it has packets that are written and not complete.
  bool has_work() const noexcept {
    if (suspended) return false;
    // The packets of a stopped queue never run, and what waits for them waits for ever.
    return next < write || (!stopped && (!running.empty() || front != Front::nothing));
  }
};

struct DeviceSnapshot {
  uint32_t gpu = 0;
  bool answered = false;  // false: the command processor did not answer, and the rest is empty
  std::vector<QueueSnapshot> queues;
  // Workers that did not come to rest in time. What they run is not among the residents.
  std::vector<uint32_t> silent_workers;
};

inline AqlHeader PacketSnapshot::header() const noexcept {
  return {static_cast<uint16_t>(static_cast<uint16_t>(bytes[0]) | static_cast<uint16_t>(bytes[1])
                                                                      << 8)};
}

}  // namespace uptempo::vgpu
