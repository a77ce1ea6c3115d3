// Common base of compute and SDMA queues: a resumable state machine that the command processor
// advances in turn.
//
// Thread safety: none; the command processor's thread owns queues and calls advance() inside its
// Reader's section.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "cp/doorbell/doorbell_lines.hpp"
#include "cp/fence_watch.hpp"
#include "cp/kernel/kernel_table.hpp"
#include "cp/memory_watch.hpp"
#include "cp/queue_delays.hpp"
#include "cp/report/snapshot.hpp"
#include "cp/scheduler/scheduler.hpp"
#include "device/device.hpp"

namespace uptempo::vgpu {

// Services and state that the command processor provides to its queues.
struct QueueContext {
  Device& device;
  AddressSpace::Reader& memory;
  Scheduler& scheduler;
  KernelTable& kernels;
  gfx9::CodeCache& code;
  // passes on the doorbells that the watch has noted so far
  std::function<void()> take_noted_doorbells;
  // Calls look_for_checker() of every queue.
  std::function<void(uint64_t host_ns)> look_for_checker;
  std::minstd_rand& random;
  LateInterrupts* late_interrupts;  // null: nothing is delayed
};

// The event that a queue without progress waits for. It decides how the command processor may
// sleep.
enum class Waiting : uint8_t {
  doorbell,  // a store to its doorbell
  workers,   // a dispatch in execution
  memory,    // a signal, packet header or word that the program or another queue stores
  delay,     // the end of a delay, at next_look_ns() at the latest
  nothing,   // stopped or suspended
};

class Queue {
 public:
  Queue(QueueContext& context, uint32_t ordinal, fences::Checker::QueueKind kind);
  virtual ~Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // One turn: does a bounded amount of work. Returns false if nothing could be done; waiting() then
  // gives the reason.
  virtual bool advance() = 0;

  // Stops the queue for good and abandons what runs for it. Returns true when no worker accesses it
  // any more; call it until then.
  virtual bool abandon() = 0;

  // Whether kernels of the queue run. They may ring any queue's doorbell, by a store that wakes no
  // thread.
  virtual bool executing() const noexcept = 0;

  // Whether the queue has done all that it can do unless the host or another queue acts.
  virtual bool at_rest() const noexcept = 0;

  // Call it before the alias of the queue's doorbell becomes invalid. The queue then reads no
  // doorbell.
  virtual void lose_doorbell() noexcept = 0;
  virtual const uint64_t* doorbell() const noexcept = 0;

  // Passes on, for the trace and the fence checker, a doorbell that was noted when it was rung.
  void noted_doorbell(const DoorbellWatch::Record& record);

  // Reports to the fence checker a doorbell that was rung since the last look, at `host_ns` at the
  // latest. The checker compares times of doorbells only with those of completions, so this
  // precision suffices. Every queue is read in each turn, and once more between a completion and
  // the store that announces it to the host (announcing()).
  void look_for_checker(uint64_t host_ns);

  // Fills the members of a report that describe the queue, its ring and what its first packet
  // waits for. Call it inside the Reader's section, after a turn of all queues.
  virtual void describe(QueueSnapshot& snapshot) const = 0;
  // Adds the packets' dispatches that the workers run.
  virtual void describe_waves(QueueSnapshot& snapshot, Scheduler::Residents& residents) const = 0;

  Waiting waiting() const noexcept { return waiting_; }
  // Call it before the queue's turns of one pass. The delays found in those turns determine
  // next_look_ns().
  void begin_pass() noexcept {
    if (delays_ != nullptr) delays_->begin_pass();
  }
  // Returns when to read the queue again because of a delay, whatever waiting() returns.
  // QueueDelays::kNever: nothing is delayed.
  uint64_t next_look_ns() const noexcept {
    return delays_ == nullptr ? QueueDelays::kNever : delays_->next_look_ns();
  }
  // Number in order of creation, from 0, as in traces and messages.
  uint32_t ordinal() const noexcept { return ordinal_; }

 protected:
  // Writes one line to stderr, so that a stopped queue is never silent.
  void report(std::string_view packet, std::string_view reason) const;
  // Says something about a packet without a consequence, in one line.
  void note(std::string_view packet, std::string_view text) const;
  // Whether a check must know the doorbell, and so the publisher, of each packet.
  bool checks_publishers() const noexcept { return fences_.enabled() || fences_.keeps_places(); }
  // Takes the doorbells of all threads so far, for the trace and the checker.
  void note_doorbells();
  // Reports a doorbell that was found by reading its slot.
  void found_doorbell(uint64_t value);
  // Call it before the store to the signal of a packet that the checker considers complete. All
  // doorbells rung until now were rung without knowledge of that completion.
  void announcing();
  // Returns the GPU as a field of a trace line; empty if the process has one GPU.
  std::string gpu_field() const;
  // Returns the delay that the seed determines for it, as a field of a trace line.
  std::string drawn_delay(DelayPlace place, uint64_t number) const;
  // Raises the event of the step with this number (device/delays.hpp), possibly delayed.
  void raise(uint32_t event_id, uint64_t number);

  QueueContext& context_;
  const uint32_t ordinal_;
  FenceWatch fences_;
  MemoryWatch memory_watch_;
  const std::unique_ptr<QueueDelays> delays_;  // null: nothing is delayed
  Waiting waiting_ = Waiting::doorbell;

 private:
  std::string gpu_name() const;
  void trace_doorbell(uint64_t value, uint64_t host_ns);

  uint64_t reported_doorbell_;  // the last doorbell reported to the checker
  DoorbellLines doorbell_lines_;
};

}  // namespace uptempo::vgpu
