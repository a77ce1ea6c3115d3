// The device's operations that matter for order and fences, as data that can be stored and judged
// again.
//
// Thread safety: none; value types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/caches/caching.hpp"
#include "device/fences/instruction_ranges.hpp"
#include "device/fences/order.hpp"
#include "device/fences/page_accesses.hpp"
#include "device/host/publisher.hpp"

namespace uptempo::vgpu::fences {

enum class QueueKind : uint8_t { compute, sdma };

// Place of the value in a signal (amd_signal_t), which fills an aligned line.
inline constexpr uint32_t kSignalValueOffset = 8;

// A signal as the device found it.
struct SignalValue {
  uint64_t handle = 0;
  int64_t value = 0;
};

struct Packet {
  uint64_t index = 0;
  bool barrier = false;
  FenceScope acquire = FenceScope::none;
  FenceScope release = FenceScope::none;
  // its completion signal, when it completes, before the decrement
  std::optional<SignalValue> signal = {};
};

// Where a dispatch or copy comes from, for texts.
struct Origin {
  Publisher published = {};
  bool runtimes = false;    // a kernel of ROCr
  GpuAddress kernargs = 0;  // 0: not known, or none
  uint64_t kernarg_bytes = 0;
};

struct TouchedPage {
  GpuAddress page = 0;
  MemoryKind kind = MemoryKind::fine_grained;
  // Null: nothing yet. The caller keeps it alive until the call returns.
  const PageAccesses* accesses = nullptr;
};

// Agents are numbered like the process's GPUs. Queues are actors. The first one added has number 1
// (kHost is 0). `pages` are those of Event::pages.
namespace events {

struct AddQueue {
  QueueKind kind = QueueKind::compute;
  uint32_t ordinal = 0;  // as in traces
  uint32_t agent = 0;    // whose caches its packets and dispatches use
};
// The producer rang: everything up to `value` (index of the last packet; for SDMA, the bytes
// written) was published by then.
struct Doorbell {
  ActorId queue = kHost;
  uint64_t value = 0;
  uint64_t host_ns = 0;
};
// A dispatch starts. Its acquire executes now.
struct Launch {
  ActorId queue = kHost;
  Packet packet;
  std::string kernel;
  uint64_t waves = 0;
  Origin origin = {};
};
// All workgroups of the dispatch have ended; the pages hold what they touched. Its release executes
// now, before its completion signal.
struct End {
  ActorId queue = kHost;
  Packet packet;
  // The host may have learned of the end in a way that is not observed.
  bool tells_host = false;
  // It synchronises in coherent host memory that the host accesses unobserved.
  bool may_meet_any_thread = false;
  InstructionList instructions = {};  // null: not known
};
// A packet other than a dispatch completes. Its acquire and then its release execute now, and what
// a vendor's packet does to the caches of its agent.
struct Complete {
  ActorId queue = kHost;
  Packet packet;
  std::vector<SignalValue> satisfied;  // the signals that it waited for, with the values found
  std::vector<TaskId> storers = {};    // running dispatches that have written their values
  CacheActions caches = {};
};
// SDMA. Operations of a queue arrive in order. `offset`: in the ring, as in traces.
struct Wait {
  ActorId queue = kHost;
  uint64_t offset = 0;
  SignalValue satisfied;
  std::vector<TaskId> storers = {};
};
// All reads come before all writes.
struct Copy {
  ActorId queue = kHost;
  uint64_t offset = 0;
  std::string engine;
  Origin origin = {};
};
struct Signal {
  ActorId queue = kHost;
  uint64_t offset = 0;
  SignalValue signal;  // before the decrement
};
// The host loaded what the page's accesses read.
struct HostRead {
  uint64_t host_ns = 0;
  uint64_t site = 0;    // HostEvent::site; 0: not known
  uint64_t thread = 0;  // any number that tells the host's threads apart
};
// The host began to store to the page, with what its accesses write, if any ...
struct HostOpened {
  uint64_t host_ns = 0;
  uint64_t site = 0;
  uint64_t thread = 0;
};
// ... and when the page was closed, the bytes that its accesses write had changed.
struct HostWrote {
  uint64_t closed_ns = 0;
};
// The host loaded the signal. 0: it may have loaded each signal as soon as it was completed. Only
// with JudgeOptions::waits.
struct HostLooked {
  uint64_t signal = 0;
  uint64_t host_ns = 0;
};
// The host has destroyed the queue, so it knows of all that the queue has completed. Only with
// JudgeOptions::waits.
struct DestroyQueue {
  ActorId queue = kHost;
};
// The bytes that the page's accesses write may have changed; the writer, perhaps the host, is not
// known.
struct Unknown {};
// The range is about to be unmapped. Writes that were announced and never released are reported,
// then the range is forgotten.
struct Forget {
  GpuAddress begin = 0, end = 0;
};
// The program ends: the same for all memory.
struct Finish {};

}  // namespace events

struct Event {
  uint64_t now_ns = 0;  // host_clock_ns() when the event was reported
  std::variant<events::AddQueue, events::Doorbell, events::Launch, events::End, events::Complete,
               events::Wait, events::Copy, events::Signal, events::HostRead, events::HostOpened,
               events::HostWrote, events::Unknown, events::Forget, events::Finish,
               events::HostLooked, events::DestroyQueue>
      what;
  std::vector<TouchedPage> pages = {};
};

}  // namespace uptempo::vgpu::fences
