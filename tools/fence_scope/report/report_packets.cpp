#include "tools/fence_scope/report/report_packets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "aql/text.hpp"
#include "tools/fence_scope/report/report_columns.hpp"

namespace uptempo::fence_scope {
namespace {

std::string_view barrier_text(aql::Barrier barrier) {
  return barrier == aql::Barrier::on ? "barrier bit" : "no barrier bit";
}

bool needs_less(const PlannedPacket& packet) {
  return packet.checker && *packet.checker != packet.flags;
}

// for example "no barrier bit, acquire none": the narrower parts of the checker's header.
std::string narrower(const PlannedPacket& packet) {
  std::vector<std::string> parts;
  if (packet.checker->barrier != packet.flags.barrier)
    parts.emplace_back(barrier_text(packet.checker->barrier));
  if (packet.checker->acquire != packet.flags.acquire)
    parts.push_back(fmt::format("acquire {}", aql::scope_name(packet.checker->acquire)));
  if (packet.checker->release != packet.flags.release)
    parts.push_back(fmt::format("release {}", aql::scope_name(packet.checker->release)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::vector<PacketRun> runs_of(std::span<const PlannedPacket> packets) {
  std::vector<PacketRun> runs;
  for (size_t i = 0; i < packets.size(); ++i) {
    PlannedPacket as_before = packets[i];
    if (i > 0) {
      as_before.step = packets[i - 1].step;
      as_before.packet = packets[i - 1].packet;
    }
    if (runs.empty() || as_before != packets[i - 1]) runs.push_back({i, 0});
    ++runs.back().count;
  }
  return runs;
}

std::string packets_title(const Report& report, PacketRun run) {
  const PlannedPacket &first = report.packets[run.first],
                      &last = report.packets[run.first + run.count - 1];
  const auto name = [&](const PlannedPacket& packet) {
    return packet.step < report.steps.size() ? report.steps[packet.step]
                                             : std::to_string(packet.step);
  };
  const bool one_queue =
      std::ranges::all_of(report.packets, [](const auto& each) { return each.queue == 0; });
  const std::string queue = one_queue ? "" : fmt::format("queue {}, ", first.queue);
  if (run.count == 1) return fmt::format("{}packet {} '{}'", queue, first.packet, name(first));
  return fmt::format("{}packets {} to {}, '{}' to '{}'", queue, first.packet, last.packet,
                     name(first), name(last));
}

std::vector<PacketReason> reasons_of(const PlannedPacket& packet) {
  std::vector<PacketReason> reasons{
      {std::string(barrier_text(packet.flags.barrier)), packet.barrier},
      {fmt::format("acquire {}", aql::scope_name(packet.flags.acquire)), packet.acquire},
      {fmt::format("release {}", aql::scope_name(packet.flags.release)), packet.release}};
  if (needs_less(packet))
    reasons.push_back({"fence checker", "disagrees; sufficient: " + narrower(packet)});
  return reasons;
}

std::string checker_advice(std::span<const PlannedPacket> packets) {
  if (packets.empty() ||
      !std::ranges::all_of(packets, [](const auto& each) { return each.checker.has_value(); }))
    return {};
  const auto less = std::ranges::count_if(packets, needs_less);
  const char* plural = packets.size() == 1 ? "" : "s";
  return less == 0
             ? fmt::format("the fence checker agrees with all {} header{}", packets.size(), plural)
             : fmt::format("the fence checker disagrees with {} of {} header{}", less,
                           packets.size(), plural);
}

std::string about_checker_advice(std::span<const PlannedPacket> packets) {
  if (!std::ranges::any_of(packets, needs_less)) return {};
  return "The fence checker reports fences that one run on the virtual GPU did not need. It does "
         "not know "
         "work before these packets, nor bytes that another run touches.";
}

std::string packets_text(const Report& report, size_t columns) {
  constexpr size_t kWhat = 16;
  if (report.packets.empty()) return {};
  std::string text = "The fewest fences for each packet, and why:\n";
  for (const PacketRun run : runs_of(report.packets)) {
    const PlannedPacket& packet = report.packets[run.first];
    text += '\n' +
            wrapped(fmt::format("{}: header 0x{:04x}", packets_title(report, run),
                                aql::make_header(aql::PacketType::kernel_dispatch, packet.flags)),
                    columns, 2);
    for (const PacketReason& reason : reasons_of(packet))
      text += wrapped(reason.why, columns, 2 + kWhat, fmt::format("  {:<{}}", reason.what, kWhat));
  }
  if (const std::string opinion = checker_advice(report.packets); !opinion.empty())
    text += '\n' +
            wrapped("In short, " + opinion + ". " + about_checker_advice(report.packets), columns);
  return text;
}

}  // namespace uptempo::fence_scope
