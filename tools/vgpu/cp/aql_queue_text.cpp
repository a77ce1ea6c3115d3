// The text that a compute queue writes about its packets: trace lines, and notes under --verbose.
#include <string>

#include "cp/aql_queue.hpp"
#include "device/json_text.hpp"

namespace uptempo::vgpu {

// Names each field once: a program that leaves one uninitialised does so in every packet.
void AqlQueue::note_ignored_field(const std::byte* packet, AqlHeader header) {
  const std::string_view field = ignored_field(packet);
  if (field.empty() || !ignored_fields_.insert(field).second) return;
  note(packet_name(next_, header.type()), std::string(field) + " should be " +
                                              (field.starts_with("the sizes") ? "1" : "0") +
                                              "; firmware ignores that");
}

void AqlQueue::trace_packet(uint64_t index, const Begun& packet, uint64_t end_ns,
                            const hsa_kernel_dispatch_packet_t* dispatch,
                            const std::string* kernel) const {
  const auto number = [](uint64_t value) { return std::to_string(value); };
  std::string line =
      R"({"queue":)" + number(ordinal_) + gpu_field() + R"(,"index":)" + number(index) +
      R"(,"type":")" + std::string(packet_type_name(packet.header.type())) + R"(","barrier":)" +
      (packet.header.barrier() ? "true" : "false") + R"(,"acquire":")" +
      std::string(fence_scope_name(packet.header.acquire())) + R"(","release":")" +
      std::string(fence_scope_name(packet.header.release())) + R"(","completion_signal":)" +
      (packet.completion_signal.handle != 0 ? "true" : "false");
  if (dispatch != nullptr) {
    line += R"(,"kernel":)" + json_quoted(*kernel) + R"(,"grid":[)" +
            number(dispatch->grid_size_x) + ',' + number(dispatch->grid_size_y) + ',' +
            number(dispatch->grid_size_z) + R"(],"workgroup":[)" +
            number(dispatch->workgroup_size_x) + ',' + number(dispatch->workgroup_size_y) + ',' +
            number(dispatch->workgroup_size_z) + R"(],"kernarg":)" +
            number(reinterpret_cast<uint64_t>(dispatch->kernarg_address));
  }
  line += R"(,"start_ns":)" + number(packet.start_ns) + R"(,"end_ns":)" + number(end_ns);
  if (delays_ != nullptr) line += drawn_delays(index);
  line += '}';
  context_.device.trace.write(line);
}

}  // namespace uptempo::vgpu
