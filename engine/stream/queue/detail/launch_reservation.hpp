// LaunchReservation: one dispatch on its way into the hardware queue of a stream. Private: the
// templates of Stream and Launcher need it.
//
// Thread safety: the functions may be called from any thread. A reservation belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "aql/packet.hpp"
#include "engine/dispatch/detail/dispatch_shape.hpp"
#include "engine/program/grid.hpp"
#include "engine/program/program.hpp"
#include "engine/runtime/error.hpp"
#include "engine/stream/event/event.hpp"

namespace uptempo::detail {

class StreamQueue;

// A stream's last packet in its queue.
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

// A dispatch being prepared: the queue is locked, there is room for its packet, and its block is
// allocated (null if the kernel takes no arguments).
struct LaunchReservation {
  std::unique_lock<std::mutex> lock;
  const DispatchShape* shape;
  std::byte* block;
  // New arguments were written, in `block` or elsewhere; see kernarg_memory.hpp.
  bool wrote_arguments = true;
  CallSite site{};
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

// StreamQueue's functions of these names.
LaunchReservation reserve_launch(StreamQueue& queue, const KernelInfo& kernel, const Grid& grid);
LaunchReservation reserve_launch_at(StreamQueue& queue, const KernelInfo& kernel, const Grid& grid);
bool try_take_block(StreamQueue& queue, LaunchReservation& reserved) noexcept;
void launch(StreamQueue& queue, LaunchReservation&& reserved, StreamPosition& position,
            aql::Packet64& packet) noexcept;

}  // namespace uptempo::detail
