// The packets of a plan in words, for tables, HTML and conclusions.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope {

// Consecutive packets of one queue with equal headers and reasons.
struct PacketRun {
  size_t first = 0, count = 0;  // in Report::packets
};
std::vector<PacketRun> runs_of(std::span<const PlannedPacket> packets);

// for example "packets 3 to 7, 'add' to 'sum'"; with two queues, "queue 0, packet 3 'add'".
std::string packets_title(const Report& report, PacketRun run);

// A part of a packet's header and its reason: "barrier bit", "the next packet reads what it wrote".
struct PacketReason {
  std::string what, why;
};
// Three reasons: for barrier bit, acquire and release. More if the fence checker's run needed less,
// and if the checker cannot judge a part of the header.
std::vector<PacketReason> reasons_of(const PlannedPacket& packet);

// for example "the fence checker agrees with all 120 headers"; empty if it was not asked.
std::string checker_advice(std::span<const PlannedPacket> packets);
// The limits of the checker's advice; empty if it agrees with all of every header or was not asked.
std::string about_checker_advice(std::span<const PlannedPacket> packets);

// Everything above as terminal text; empty without packets.
std::string packets_text(const Report& report, size_t columns);

}  // namespace uptempo::fence_scope
