// LaunchReservation: one dispatch on its way into the hardware queue of a stream. Private: the
// templates of Stream and Launcher need it.
//
// Thread safety: a reservation belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include <uptempo/aql/writer.hpp>
#include <uptempo/dispatch/detail/dispatch_shape.hpp>
#include <uptempo/program/grid.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/stream/queue/event.hpp>

namespace uptempo::detail {

class StreamQueue;

// A packet of a queue, in most cases a stream's last one there.
struct StreamPosition {
  uint64_t packet = 0;  // packet index plus one; 0: nothing unfinished
  uint64_t epoch = 0;
  bool acquires_system = true;  // applies to the next launch

  bool empty() const noexcept { return packet == 0; }
};

// The position of a stream's work, for streams that must follow it.
struct LastWork {
  StreamQueue* queue = nullptr;
  StreamPosition position;
  bool behind_host = false;
  Event copy{};  // instead of the position: the last work is a copy by an engine
};

// A dispatch being prepared: the queue is locked, its slot is reserved, and its block is allocated
// (null if the kernel takes no arguments, or has them elsewhere).
struct LaunchReservation {
  std::unique_lock<std::mutex> lock;
  aql::Slots slots;
  const DispatchShape* shape;
  CallSite site;
  std::byte* block = nullptr;
  // New arguments were written, in `block` or elsewhere; see kernarg_memory.hpp.
  bool wrote_arguments = true;
};

// A grid and the line that launches it: its implicit conversion happens at the call. A defaulted
// parameter cannot follow a kernel's arguments.
struct LaunchGrid {
  // NOLINTNEXTLINE(google-explicit-constructor): callers pass a Grid
  LaunchGrid(const Grid& the_grid, CallSite the_site = CallSite::here()) noexcept
      : grid(the_grid), site(the_site) {}
  LaunchGrid(uint32_t x, uint32_t y, CallSite the_site = CallSite::here()) noexcept
      : grid(x, y), site(the_site) {}
  LaunchGrid(uint32_t x, uint32_t y, uint32_t z, CallSite the_site = CallSite::here()) noexcept
      : grid(x, y, z), site(the_site) {}
  Grid grid;
  CallSite site;
};

}  // namespace uptempo::detail
