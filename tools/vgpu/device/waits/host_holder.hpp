// What keeps a thread of the program from continuing while the device can still do something.
//
// Thread safety: any thread. Async-signal-safe.
#pragma once

namespace uptempo::vgpu {

class HostHolder {
 public:
  // Blocks until the device has done all that it can do without the host, or until a limit.
  virtual void hold_until_rest() noexcept = 0;

 protected:
  ~HostHolder() = default;
};

}  // namespace uptempo::vgpu
