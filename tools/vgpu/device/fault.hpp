// Device faults as data. Device threads report a fault through Interrupts and never throw through
// the program. The program sees what hardware would show: a queue error bit, a memory-fault event.
#pragma once

#include <cstdint>
#include <string>

#include "device/memory.hpp"

namespace uptempo::vgpu {

struct MemoryFault {
  GpuAddress address = 0;
  Access access = Access::read;
  bool present = false;  // true: mapped, but the access is not permitted
  bool poison = false;   // the access read memory with an uncorrectable error (ECC)
  // "kernel bitonic_sort + 0x58, workgroup (3,0,0), wave 1: global_load_dword at sort.cl:12"
  std::string where;
};

// Bits that ROCr's queue error handler reads from queue_inactive_signal (amd_aql_queue.cpp, 5.2.3).
enum class QueueError : uint64_t {
  none = 0,
  scratch_needed = 0x1,
  invalid_dimensions = 0x2,
  group_memory = 0x4,
  invalid_code_object = 0x8,
  packet_format = 0x20,
  workgroup_too_large = 0x40,
  too_many_registers = 0x80,
  invalid_vendor_packet = 0x100,
  aperture_violation = 0x20000000,
  illegal_instruction = 0x40000000,
  trap = 0x80000000,
};

}  // namespace uptempo::vgpu
