#include "cp/queue_exception.hpp"

#include <atomic>
#include <cstddef>

namespace uptempo::vgpu {
namespace {

// struct kfd_context_save_area_header. Headers of Linux before 6.5 lack it.
struct SaveAreaHeader {
  uint32_t control_stack_offset;
  uint32_t control_stack_size;
  uint32_t wave_state_offset;
  uint32_t wave_state_size;
  uint32_t debug_offset;
  uint32_t debug_size;
  uint64_t error_word;
  uint32_t error_event;
  uint32_t reserved;
};
static_assert(sizeof(SaveAreaHeader) == 40 && offsetof(SaveAreaHeader, error_event) == 32);

// 0: the error has no exception code.
constexpr unsigned exception_code(QueueError error) {
  switch (error) {
    case QueueError::trap:  // s_trap 2, the compiler's abort
      return 1;
    case QueueError::illegal_instruction:
      return 4;
    case QueueError::aperture_violation:
      return 6;
    case QueueError::invalid_dimensions:
      return 16;
    case QueueError::group_memory:
      return 17;
    case QueueError::invalid_code_object:
      return 18;
    case QueueError::packet_format:
      return 20;
    case QueueError::workgroup_too_large:
      return 21;
    case QueueError::too_many_registers:
      return 22;
    case QueueError::invalid_vendor_packet:
      return 23;
    case QueueError::none:
    case QueueError::scratch_needed:
      break;
  }
  return 0;
}

}  // namespace

void report_exception(Device& device, AddressSpace::Reader& memory, GpuAddress context_save_area,
                      QueueError error) {
  report_exception(device, memory, context_save_area, exception_code(error));
}

void report_exception(Device& device, AddressSpace::Reader& memory, GpuAddress context_save_area,
                      unsigned code) {
  if (code == 0 || context_save_area == 0) return;
  const auto* const header = reinterpret_cast<const SaveAreaHeader*>(
      memory.translate(context_save_area, sizeof(SaveAreaHeader), Access::read));
  if (header == nullptr || header->error_word % sizeof(uint64_t) != 0) return;
  // Read first: the program may end the queue as soon as it sees the bit.
  const uint32_t event = header->error_event;
  auto* const word = reinterpret_cast<uint64_t*>(
      memory.translate(header->error_word, sizeof(uint64_t), Access::atomic));
  if (word == nullptr) return;
  std::atomic_ref(*word).fetch_or(uint64_t{1} << (code - 1), std::memory_order_release);
  if (event != 0) device.interrupts.raise(event);
}

}  // namespace uptempo::vgpu
