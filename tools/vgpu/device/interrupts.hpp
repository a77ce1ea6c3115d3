// How the device reaches the host: KFD events. Implemented by the emulated driver, called by device threads.
//
// Thread safety: every member may be called from any device thread, inside a section of the address space as well, for which unmap() waits.
// raise() blocks for no longer than a short mutex; memory_fault() also for one write(2), which lasts for as long as nobody reads a full pipe.
#pragma once

#include <cstdint>

#include "device/fault.hpp"

namespace uptempo::vgpu {

class Interrupts {
 public:
  virtual ~Interrupts() = default;

  // Sets KFD event `event_id` (the value a signal's event_mailbox was given) and wakes its waiters.
  virtual void raise(uint32_t event_id) = 0;

  // Sets every memory-exception event with this fault's address and kind, and logs the fault in one line on stderr.
  virtual void memory_fault(const MemoryFault& fault) = 0;
};

}  // namespace uptempo::vgpu
