// A command processor in the test's process with a hand-made environment: memory that is mapped for
// the GPU at its own address; queues, signals and doorbells with the layout of ROCr and KFD; an
// Interrupts that records.
//
//   DeviceFixture device;                    // or device(traced()), for trace_lines()
//   ComputeQueue queue(device);
//   amd_signal_t* done = device.signal(1);
//   queue.submit(dispatch(device.kernel(), 64, 64, false, done));
//   CHECK(fires(done));
//
// A test waits for events with fires() and eventually(). It calls settle() only before it checks
// that something has not happened, since no event says so.
//
// At its end the fixture checks that every thread of the device has ended; otherwise it ends the
// process with a message.
#pragma once

#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cp/command_processor.hpp"
#include "device/caches/incoherent.hpp"
#include "device/device_counts.hpp"
#include "device/fences/checker.hpp"
#include "gfx9_double.hpp"
#include "test/support/eventually.hpp"
#include "tools/support/command.hpp"

namespace uptempo::vgpu::test {

using uptempo::test::eventually;
using Result = gfx9::Workgroup::Result;

inline constexpr auto kNone = HSA_FENCE_SCOPE_NONE, kAgent = HSA_FENCE_SCOPE_AGENT,
                      kSystem = HSA_FENCE_SCOPE_SYSTEM;

inline Options with_workers(uint32_t workers) {
  Options options;
  options.workers = workers;
  return options;
}

// Returns whether the signal becomes 0.
bool fires(const amd_signal_t* signal);

// Waits until the device's threads of that name sleep: "vgpu-cp", the command processor, or
// "vgpu-worker", the helpers. Returns false if they do not.
bool falls_asleep(const std::string& threads);

// Gives the device time to do what it must not do.
void settle();

class RecordedInterrupts final : public Interrupts {
 public:
  void raise(uint32_t event_id) override;
  void memory_fault(const MemoryFault& fault) override;
  void gpu_lost(bool) override {}

  unsigned raised(uint32_t event_id) const;
  std::vector<MemoryFault> faults() const;

  // Set before the first event is raised. Called on the processor's thread, in the middle of its
  // turn.
  std::function<void(uint32_t event_id)> when_raised;

 private:
  mutable std::mutex mutex_;
  std::vector<uint32_t> events_;
  std::vector<MemoryFault> faults_;
};

struct DeviceFixture {
  explicit DeviceFixture(Options with = {});
  ~DeviceFixture();
  DeviceFixture(const DeviceFixture&) = delete;
  DeviceFixture& operator=(const DeviceFixture&) = delete;

  // Returns zeroed GPU memory at its own address, released with the fixture.
  void* allocate(size_t size_bytes, size_t alignment = 64);
  template <typename T>
  T* allocate_object(size_t count = 1) {
    return static_cast<T*>(allocate(sizeof(T) * count, alignof(T) < 64 ? 64 : alignof(T)));
  }
  template <typename T>
  static GpuAddress address(const T* object) {
    return reinterpret_cast<GpuAddress>(object);
  }

  // Returns a signal; with an event_id, one with mailbox and event.
  amd_signal_t* signal(int64_t value, uint32_t event_id = 0);
  static int64_t value(const amd_signal_t* signal);
  static void set(amd_signal_t* signal, int64_t value);
  static hsa_signal_t handle(const amd_signal_t* signal) {
    return {reinterpret_cast<uint64_t>(signal)};
  }

  ScriptedKernel* kernel(Body body = nullptr);

  // Returns once the processor has ended the turn that it was in. What the caller has stored before
  // is read in the next one.
  void end_turn();

  // The next free doorbell slot: the program's view and the device's alias.
  struct Doorbell {
    uint64_t* program;
    uint64_t* alias;
  };
  Doorbell doorbell(uint64_t initial);
  void detach_doorbells();
  std::byte* doorbell_page() const { return program_page; }

  // Returns the trace so far, one object per line. Requires `traced`.
  std::vector<std::string> trace_lines() const;

  // Returns the fence checker's findings in order. Requires options.checks.fences.
  std::vector<fences::Finding> findings() const;

  Options options;
  std::optional<uptempo::test::TemporaryDirectory> directory;  // of the trace
  AddressSpace memory;
  RecordedInterrupts interrupts;
  std::unique_ptr<Trace> trace;
  std::unique_ptr<fences::Checker> checker;
  std::unique_ptr<Caches>
      // with Options::incoherent: four compute units, no evictions; used by the processor's thread
      caches;
  DeviceCounts counts;
  std::unique_ptr<Device> device;
  std::unique_ptr<CommandProcessor> processor;

 private:
  mutable std::mutex findings_mutex_;
  std::vector<fences::Finding> findings_;
  static constexpr size_t kArenaBytes = 64u << 20;
  static constexpr size_t kPageBytes = 8192;

  const size_t threads_before;
  std::byte* arena = nullptr;
  size_t used = 0;
  std::byte* program_page = nullptr;
  std::byte* alias_page = nullptr;
  size_t doorbells = 0;
  std::vector<ScriptedKernel*> kernels;
};

// Options of a device that writes a trace.
Options traced(Options options = {});

// A compute queue with ROCr's layout, and functions that write packets into it.
class ComputeQueue {
 public:
  explicit ComputeQueue(DeviceFixture& fixture, uint32_t packets = 64, bool suspended = false);
  ~ComputeQueue();

  // Writes a packet at the next index, header last, and moves the write index. Returns the packet's
  // index. Requires that no other thread writes.
  template <typename Packet>
  uint64_t write(const Packet& packet) {
    static_assert(sizeof(Packet) == 64);
    return write_bytes(&packet);
  }
  void ring() { ring(write_index() - 1); }
  void ring(uint64_t value);
  template <typename Packet>
  uint64_t submit(const Packet& packet) {
    const uint64_t index = write(packet);
    ring(index);
    return index;
  }

  uint64_t read_index() const;
  uint64_t write_index() const;
  void set_write_index(uint64_t index);
  uint16_t header(uint64_t index) const;
  void* slot(uint64_t index) const;
  // The value of queue_inactive_signal; 0: no error.
  uint64_t error() const;
  uint32_t error_event() const { return inactive->event_id; }
  // The word of the context save area in which the device reports exceptions; 0: none.
  uint64_t exceptions() const;
  uint32_t exception_event() const { return save_area[8]; }
  void set_property(amd_queue_properties_t property, bool on);
  void destroy();

  amd_queue_t* queue;
  amd_signal_t* inactive;
  uint32_t* save_area;  // its header, as ROCT fills it: word 6 and 7 an address, word 8 an event
  uint64_t* exception_word;
  QueueId id = 0;
  uint32_t packets;
  DeviceFixture::Doorbell bell{};

 private:
  uint64_t write_bytes(const void* packet);

  DeviceFixture& fixture_;
  std::byte* ring_;
};

constexpr uint16_t header_of(hsa_packet_type_t type, bool barrier = false,
                             hsa_fence_scope_t acquire = HSA_FENCE_SCOPE_NONE,
                             hsa_fence_scope_t release = HSA_FENCE_SCOPE_NONE) {
  return static_cast<uint16_t>(type << HSA_PACKET_HEADER_TYPE |
                               (barrier ? 1 : 0) << HSA_PACKET_HEADER_BARRIER |
                               acquire << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                               release << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

hsa_kernel_dispatch_packet_t dispatch(const ScriptedKernel* kernel, uint32_t grid = 1,
                                      uint16_t workgroup = 1, bool barrier = false,
                                      const amd_signal_t* completion = nullptr);
hsa_barrier_and_packet_t barrier_and(std::vector<const amd_signal_t*> dependencies = {},
                                     bool barrier = false,
                                     const amd_signal_t* completion = nullptr);
hsa_barrier_or_packet_t barrier_or(std::vector<const amd_signal_t*> dependencies,
                                   bool barrier = false, const amd_signal_t* completion = nullptr);
hsa_amd_barrier_value_packet_t barrier_value(const amd_signal_t* signal,
                                             hsa_signal_condition32_t condition, int64_t value,
                                             int64_t mask = -1,
                                             const amd_signal_t* completion = nullptr);

}  // namespace uptempo::vgpu::test
