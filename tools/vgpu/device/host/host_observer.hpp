// Judges what the host has done to memory that the device uses: the consumer of HostPages' events.
//
// Thread safety: any thread. Async-signal-safe.
#pragma once

namespace uptempo::vgpu {

class HostObserver {
 public:
  // Blocks until all accesses of the host before this call are judged, or until a limit. No effect
  // on a device thread.
  virtual void catch_up() noexcept = 0;

 protected:
  ~HostObserver() = default;
};

}  // namespace uptempo::vgpu
