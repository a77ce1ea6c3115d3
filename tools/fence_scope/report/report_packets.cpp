#include "tools/fence_scope/report/report_packets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <uptempo/aql/text.hpp>
#include "tools/fence_scope/report/report_columns.hpp"

namespace uptempo::fence_scope {
namespace {

std::string_view barrier_text(aql::Barrier barrier) {
  return barrier == aql::Barrier::on ? "barrier bit" : "no barrier bit";
}

// The checker's header without the parts that it cannot judge: barrier bit and acquire of a queue's
// first packet are for work and writes of the host before the sequence, and its run has none.
aql::HeaderFlags judged(const PlannedPacket& packet) {
  aql::HeaderFlags flags = packet.checker.value_or(packet.flags);
  if (packet.packet == 0) {
    flags.barrier = packet.flags.barrier;
    flags.acquire = packet.flags.acquire;
  }
  return flags;
}

bool needed_less(const PlannedPacket& packet) { return judged(packet) != packet.flags; }
bool is_unjudged(const PlannedPacket& packet) {
  return packet.checker && *packet.checker != judged(packet);
}

// for example "no barrier bit, acquire none": the parts of `flags` that `from` does not have.
std::string changed(aql::HeaderFlags flags, aql::HeaderFlags from) {
  std::vector<std::string> parts;
  if (flags.barrier != from.barrier) parts.emplace_back(barrier_text(flags.barrier));
  if (flags.acquire != from.acquire)
    parts.push_back(fmt::format("acquire {}", aql::scope_name(flags.acquire)));
  if (flags.release != from.release)
    parts.push_back(fmt::format("release {}", aql::scope_name(flags.release)));
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
  if (needed_less(packet))
    reasons.push_back(
        {"fence checker", "sufficient in its run: " + changed(judged(packet), packet.flags)});
  if (is_unjudged(packet))
    reasons.push_back({"fence checker", fmt::format("cannot judge {}: nothing precedes its run",
                                                    changed(packet.flags, *packet.checker))});
  return reasons;
}

std::string checker_advice(std::span<const PlannedPacket> packets) {
  if (packets.empty() ||
      !std::ranges::all_of(packets, [](const auto& each) { return each.checker.has_value(); }))
    return {};
  const auto less = std::ranges::count_if(packets, needed_less);
  const std::string headers = counted(packets.size(), "header");
  return less == 0 ? "the fence checker agrees with all " + headers
                   : fmt::format("in the fence checker's one run, {} of {} had a fence too many",
                                 less, headers);
}

std::string about_checker_advice(std::span<const PlannedPacket> packets) {
  std::string text;
  if (std::ranges::any_of(packets, needed_less))
    text =
        "The fence checker knows what its run touched. Another run may touch other bytes that the "
        "steps declare. ";
  if (std::ranges::any_of(packets, is_unjudged))
    text +=
        "It cannot judge whether a queue's first packet must wait for earlier work or acquire what "
        "the host wrote: nothing precedes its run. ";
  if (!text.empty()) text.pop_back();
  return text;
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
