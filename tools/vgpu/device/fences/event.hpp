// What happens on a device, as far as order and fences are concerned: data, so that it can be kept and judged again.
//
// Thread safety: none; value types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/caching.hpp"
#include "device/fences/order.hpp"
#include "device/fences/page_accesses.hpp"

namespace uptempo::vgpu::fences {

enum class QueueKind : uint8_t { compute, sdma };

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
  std::optional<SignalValue> signal = {};  // its completion signal, when it completes, ahead of the decrement
};

struct TouchedPage {
  GpuAddress page = 0;
  MemoryKind kind = MemoryKind::fine_grained;
  // Null: nothing yet. Whoever hands on the event keeps it until the call returns.
  const PageAccesses* accesses = nullptr;
};

// Queues are actors; the first that is added has number 1 (kHost is 0). `pages` are those of Event::pages.
namespace events {

struct AddQueue {
  QueueKind kind = QueueKind::compute;
  uint32_t ordinal = 0;  // as in traces
};
// The producer rang: everything up to `value` (index of the last packet; of SDMA, the bytes written) had been published by then.
struct Doorbell {
  ActorId queue = kHost;
  uint64_t value = 0;
  uint64_t host_ns = 0;
};
// A dispatch starts; its acquire is carried out now.
struct Launch {
  ActorId queue = kHost;
  Packet packet;
  std::string kernel;
  uint64_t waves = 0;
};
// All its workgroups have ended: what they touched. Its release is carried out now, ahead of its completion signal.
struct End {
  ActorId queue = kHost;
  Packet packet;
};
// A packet other than a dispatch completes: its acquire and release are carried out now, in this order.
struct Complete {
  ActorId queue = kHost;
  Packet packet;
  std::vector<SignalValue> satisfied;  // the signals that it waited for, as they were found satisfied
};
// SDMA; operations of a queue come in order. `offset`: in the ring, as in traces.
struct Wait {
  ActorId queue = kHost;
  uint64_t offset = 0;
  SignalValue satisfied;
};
// All reads come before all writes.
struct Copy {
  ActorId queue = kHost;
  uint64_t offset = 0;
  std::string engine;
};
struct Signal {
  ActorId queue = kHost;
  uint64_t offset = 0;
  SignalValue signal;  // ahead of the decrement
};
// The host loaded what the page's accesses read.
struct HostRead {
  uint64_t host_ns = 0;
};
// The host began to store to the page ...
struct HostOpened {
  uint64_t host_ns = 0;
};
// ... and when it was closed what the page's accesses write had changed.
struct HostWrote {
  uint64_t closed_ns = 0;
};
// Somebody, perhaps the host, may have changed what the page's accesses write.
struct Unknown {};
// The range is about to be unmapped: what was announced and never released is found, then all of it is forgotten.
struct Forget {
  GpuAddress begin = 0, end = 0;
};
// The program ends: the same for all memory.
struct Finish {};

}  // namespace events

struct Event {
  uint64_t now_ns = 0;  // host_clock_ns() when it was told
  std::variant<events::AddQueue, events::Doorbell, events::Launch, events::End, events::Complete,
               events::Wait, events::Copy, events::Signal, events::HostRead, events::HostOpened,
               events::HostWrote, events::Unknown, events::Forget, events::Finish>
      what;
  std::vector<TouchedPage> pages = {};
};

}  // namespace uptempo::vgpu::fences
