#include "engine/dispatch/packet_runs.hpp"

#include <algorithm>

namespace uptempo::detail {
namespace {

// Distance between the kernarg addresses of two packets. Empty if they differ in anything else.
std::optional<ptrdiff_t> step_between(const aql::Packet64& packet, aql::Packet64 next) noexcept {
  const auto step = static_cast<ptrdiff_t>(reinterpret_cast<uintptr_t>(next.kernarg_address()) -
                                           reinterpret_cast<uintptr_t>(packet.kernarg_address()));
  next.set_kernarg_address(packet.kernarg_address());
  if (next != packet) return {};
  return step;
}

std::optional<ptrdiff_t> step_of(std::span<const aql::Packet64> packets) noexcept {
  if (packets.size() < 2 ||
      aql::packet_type(packets[0].header()) != aql::PacketType::kernel_dispatch)
    return {};
  const std::optional<ptrdiff_t> step = step_between(packets[0], packets[1]);
  for (size_t i = 2; step && i < packets.size(); ++i)
    if (step_between(packets[i - 1], packets[i]) != step) return {};
  return step;
}

}  // namespace

PacketRuns::Run PacketRuns::run_from(size_t first,
                                     std::span<const aql::Packet64> packets) noexcept {
  const size_t number = first / kGroupSize;
  const size_t begin = std::max<size_t>(1, number * kGroupSize);
  const size_t end = std::min(packets.size() - 1, (number + 1) * kGroupSize);
  Group& group = groups_[number];
  if (!group.known) group = {.known = true, .step = step_of(packets.subspan(begin, end - begin))};
  return {.end = end, .step = group.step};
}

}  // namespace uptempo::detail
