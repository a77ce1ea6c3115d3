#include "cp/report/packet_text.hpp"

#include <cstring>

#include "cp/report/report_text.hpp"

namespace uptempo::vgpu {
namespace {

std::string number_text(int64_t value) { return std::to_string(value); }

std::string signal_text(const SignalSnapshot& signal) {
  return "signal " + hex_text(signal.handle);
}

std::string value_text(const SignalSnapshot& signal) {
  return signal.value ? "it is " + number_text(*signal.value) : "it is not mapped on the device";
}

std::string size_text(uint32_t x, uint32_t y, uint32_t z) {
  return std::to_string(x) + 'x' + std::to_string(y) + 'x' + std::to_string(z);
}

hsa_kernel_dispatch_packet_t dispatch_of(const PacketSnapshot& packet) {
  hsa_kernel_dispatch_packet_t dispatch;
  std::memcpy(&dispatch, packet.bytes.data(), sizeof dispatch);
  return dispatch;
}

const char* relation_of(hsa_signal_condition32_t condition) {
  switch (condition) {
    case HSA_SIGNAL_CONDITION_EQ:
      return "";
    case HSA_SIGNAL_CONDITION_NE:
      return "not ";
    case HSA_SIGNAL_CONDITION_LT:
      return "< ";
    default:
      return ">= ";
  }
}

}  // namespace

std::string packet_text(const PacketSnapshot& packet, const std::string& kernel) {
  const uint32_t type = packet.header().type();
  if (type == HSA_PACKET_TYPE_VENDOR_SPECIFIC) {
    const auto format = static_cast<uint32_t>(packet.bytes[2]);
    return format == kVendorFormatBarrierValue ? "barrier_value"
                                               : "vendor, format " + std::to_string(format);
  }
  if (type != HSA_PACKET_TYPE_KERNEL_DISPATCH) return std::string(packet_type_name(type));
  const auto dispatch = dispatch_of(packet);
  return "kernel_dispatch " + kernel + ", grid " +
         size_text(dispatch.grid_size_x, dispatch.grid_size_y, dispatch.grid_size_z) +
         ", workgroup " +
         size_text(dispatch.workgroup_size_x, dispatch.workgroup_size_y, dispatch.workgroup_size_z);
}

std::string packet_details(const PacketSnapshot& packet) {
  const AqlHeader header = packet.header();
  std::string text = header.barrier() ? "barrier bit" : "no barrier bit";
  text += ", acquire " + std::string(fence_scope_name(header.acquire())) + ", release " +
          std::string(fence_scope_name(header.release()));
  if (header.type() == HSA_PACKET_TYPE_KERNEL_DISPATCH)
    text +=
        ", kernarg " + hex_text(reinterpret_cast<uint64_t>(dispatch_of(packet).kernarg_address));
  if (packet.completion.handle == 0) return text + ", no completion signal";
  text += ", completion " + signal_text(packet.completion);
  return text + (packet.completion.value ? " = " + number_text(*packet.completion.value)
                                         : ", which is not mapped on the device");
}

std::string queue_text(const QueueSnapshot& queue, bool several_gpus) {
  return (several_gpus ? "GPU " + std::to_string(queue.gpu) + ", queue " : "queue ") +
         std::to_string(queue.number);
}

std::string condition_text(const Dependency& dependency) {
  std::string text = signal_text(dependency.signal);
  if (dependency.mask != -1) text += " & " + hex_text(static_cast<uint64_t>(dependency.mask));
  return text + " is " + relation_of(dependency.condition) + number_text(dependency.reference) +
         "; " + value_text(dependency.signal);
}

std::string condition_text(const PollSnapshot& poll) {
  constexpr const char* kRelations[] = {"anything, ", "< ", "<= ", "", "not ", ">= ", "> "};
  std::string text = "the word at " + hex_text(poll.address);
  if (poll.mask != ~uint32_t{0}) text += " & " + hex_text(poll.mask);
  text += std::string(" is ") + kRelations[poll.function % 7] + hex_text(poll.reference);
  return text +
         (poll.value ? "; it is " + hex_text(*poll.value) : "; it is not mapped on the device");
}

}  // namespace uptempo::vgpu
