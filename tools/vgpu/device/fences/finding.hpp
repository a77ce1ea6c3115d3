// The findings of the fence checker. report/finding_text.hpp has their output formats.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "device/fences/event.hpp"
#include "device/fences/view.hpp"
#include "device/memory.hpp"

namespace uptempo::vgpu::fences {

// One packet, one copy or fill of an SDMA engine, or a group of host stores.
struct Task {
  enum class Kind : uint8_t { dispatch, copy, host };

  TaskId id;
  Kind kind = Kind::dispatch;
  uint32_t agent = 0;        // of its queue; unused for the host
  bool several_l2s = false;  // of a dispatch's agent
  uint32_t queue = 0;        // as in traces; unused for the host
  uint64_t position = 0;     // packet index; for SDMA the byte offset in the ring, as in traces
  std::string name;          // kernel, or the engine's operation
  uint64_t site = 0;         // of the host (host/host_events.hpp); 0: not known
  uint64_t thread = 0;       // of the host
  bool barrier = false;      // of the packet, for messages
  FenceScope acquire = FenceScope::none;
  FenceScope release = FenceScope::none;
  Origin origin = {};
  InstructionList instructions = {};  // of a dispatch that has ended; null: not known
  // The view when the task began, including its acquire. For a dispatch that has ended, also the
  // tasks that it met inside its kernel; later only `ordered` is kept.
  View view;
  // view.ordered without the tasks met inside the kernel; nothing: the same
  std::optional<Clock> by_packets = {};

  const Clock& ordered_by_packets() const noexcept {
    return by_packets ? *by_packets : view.ordered;
  }
};
using TaskPtr = std::shared_ptr<const Task>;

struct Finding {
  enum class Class : uint8_t { unordered, stale, unreleased };
  enum class Conflict : uint8_t { read_after_write, write_after_read, write_after_write };

  Class what = Class::unordered;
  Conflict conflict = Conflict::read_after_write;
  TaskPtr writer;
  TaskPtr reader;          // of write_after_write: the later writer
  GpuAddress address = 0;  // the first byte concerned
  uint64_t bytes = 0;      // number of bytes concerned, perhaps not contiguous
  std::string_view reason;
  std::string_view rule;  // source of the rule
  // false: the specification forbids it, but the caches of this target tolerate it
  bool possible_on_target = true;
  bool several_gpus = false;  // texts name the GPU of each task
};

// Findings of one class, conflict and reason, between tasks of the same names, in memory that one
// place of the program has allocated.
struct Repeated {
  Finding::Class what = Finding::Class::unordered;
  Finding::Conflict conflict = Finding::Conflict::read_after_write;
  Task writer, reader;  // of the first one: kind, agent, queue, position and name
  uint64_t times = 1;   // with the first one
};

std::string_view class_name(Finding::Class what) noexcept;

}  // namespace uptempo::vgpu::fences
