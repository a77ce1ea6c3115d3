// How the device reaches the host: KFD events. Implemented by the emulated driver, called by device
// threads.
//
// Thread safety: any device thread may call every member, also inside a section of the address
// space, for which unmap() waits.
// Blocking: raise() blocks only for a short mutex. memory_fault() also makes one write(2), which
// blocks while stderr is a full pipe that is not read.
#pragma once

#include <cstdint>

#include "device/fault.hpp"

namespace uptempo::vgpu {

class Interrupts {
 public:
  virtual ~Interrupts() = default;

  // Sets KFD event `event_id` (the value a signal's event_mailbox was given) and wakes its waiters.
  virtual void raise(uint32_t event_id) = 0;

  // Sets every memory-exception event with this fault's address and kind, and writes the fault as
  // one line to stderr.
  virtual void memory_fault(const MemoryFault& fault) = 0;

  // The GPU hung, so the driver resets it, or it is `gone`. Returns before that has happened.
  virtual void gpu_lost(bool gone) = 0;
};

}  // namespace uptempo::vgpu
