// Errors of a queue as KFD exceptions.
//
// After RUNTIME_ENABLE the driver reports an error of a queue also in the word that the header of
// the queue's context save area names: it sets the bit of the exception code there, and sets the
// event named beside it (kfd_send_exception_to_runtime of Linux; the codes are kfd_ioctl.h's
// kfd_dbg_trap_exception_code). ROCr then waits for that word and ignores the error in
// queue_inactive_signal. Memory faults are not reported here: ROCr waits for their event.
//
// Call it inside the Reader's enter()/leave() section.
#pragma once

#include "device/device.hpp"
#include "device/fault.hpp"

namespace uptempo::vgpu {

// Does nothing for an area that is not mapped or whose header names no word: a queue created before
// RUNTIME_ENABLE has none. `code`: kfd_dbg_trap_exception_code; 0: none.
void report_exception(Device& device, AddressSpace::Reader& memory, GpuAddress context_save_area,
                      QueueError error);
void report_exception(Device& device, AddressSpace::Reader& memory, GpuAddress context_save_area,
                      unsigned code);

}  // namespace uptempo::vgpu
