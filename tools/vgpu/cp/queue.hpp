// What compute and SDMA queues have in common: a resumable state machine that the command processor advances in turn.
//
// Thread safety: none; queues belong to the command processor's thread. advance() is called inside its Reader's section.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "cp/doorbell_lines.hpp"
#include "cp/fence_watch.hpp"
#include "cp/kernel_table.hpp"
#include "cp/packet_copies.hpp"
#include "cp/queue_delays.hpp"
#include "cp/scheduler.hpp"
#include "device/device.hpp"

namespace uptempo::vgpu {

// What the command processor lends its queues.
struct QueueContext {
  Device& device;
  AddressSpace::Reader& memory;
  Scheduler& scheduler;
  KernelTable& kernels;
  gfx9::CodeCache& code;
  std::function<void()> take_noted_doorbells;  // hands out those that the doorbell watch has noted so far
  // look_for_checker() of every queue.
  std::function<void(uint64_t host_ns)> look_for_checker;
  PacketCopies& packet_copies;
  std::minstd_rand& random;
  LateInterrupts* late_interrupts;  // of a device whose steps are delayed; null: nothing is
};

// What a queue that made no progress waits for: this decides how the command processor may sleep.
enum class Waiting : uint8_t {
  doorbell,  // a store to its doorbell
  workers,   // a dispatch in execution
  memory,    // a signal, a packet header or a word that the program or another queue will store
  delay,     // the end of a delay, at next_look_ns() at the latest
  nothing,   // stopped or suspended
};

class Queue {
 public:
  Queue(QueueContext& context, uint32_t ordinal, fences::Checker::QueueKind kind);
  virtual ~Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // A turn: does a bounded amount of work, however much there is. False: nothing could be done; waiting() says why.
  virtual bool advance() = 0;

  // What runs on its behalf is abandoned. True once no worker touches it any more: call until then.
  virtual bool abandon() = 0;

  // Kernels of it are running. They may ring any queue's doorbell, by a store that wakes nobody.
  virtual bool executing() const noexcept = 0;

  // The alias of its doorbell is about to go away: no doorbell is seen any more.
  virtual void lose_doorbell() noexcept = 0;
  virtual const uint64_t* doorbell() const noexcept = 0;

  // A doorbell that was noted when it was rung: for the trace.
  void noted_doorbell(uint64_t value, uint64_t host_ns);

  // Tells the fence checker of a doorbell that was rung since the last look, by `host_ns` at the latest. The checker compares the times of doorbells with
  // those of completions alone, so it needs no better time than this: every queue is looked at in each turn, and once more between a
  // completion and the store that announces it to the host (announcing()).
  void look_for_checker(uint64_t host_ns);

  Waiting waiting() const noexcept { return waiting_; }
  // Ahead of its turns of one pass: what they find delayed determines next_look_ns().
  void begin_pass() noexcept {
    if (delays_ != nullptr) delays_->begin_pass();
  }
  // When something that its last turns found delayed is to be looked at again, whatever waiting() says; QueueDelays::kNever: nothing is.
  uint64_t next_look_ns() const noexcept {
    return delays_ == nullptr ? QueueDelays::kNever : delays_->next_look_ns();
  }
  // The order of creation, from 0: how traces and messages call it.
  uint32_t ordinal() const noexcept { return ordinal_; }

 protected:
  // One line on stderr, so that a stopped queue is never silent.
  void report(std::string_view packet, std::string_view reason) const;
  // A doorbell that was found by looking.
  void found_doorbell(uint64_t value);
  // The signal of a packet that the checker knows to be complete is about to be stored to: whoever has rung by now did so without knowing of it.
  void announcing();
  // With delays what the seed holds for it, as a field of a line in the trace.
  std::string drawn_delay(DelayPlace place, uint64_t number) const;
  // Raises the event of what has this number (device/delays.hpp), perhaps late.
  void raise(uint32_t event_id, uint64_t number);

  QueueContext& context_;
  const uint32_t ordinal_;
  FenceWatch fences_;
  const std::unique_ptr<QueueDelays> delays_;  // null: nothing is delayed
  Waiting waiting_ = Waiting::doorbell;

 private:
  void trace_doorbell(uint64_t value, uint64_t host_ns);

  uint64_t told_;  // the doorbell that the checker was told of last
  DoorbellLines doorbell_lines_;
};

}  // namespace uptempo::vgpu
