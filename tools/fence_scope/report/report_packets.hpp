// The packets of a plan in words: what tables, HTML and conclusions say of them.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope {

// Packets of one queue, one behind the other, of which everything that is said is alike.
struct PacketRun {
  size_t first = 0, count = 0;  // in Report::packets
};
std::vector<PacketRun> runs_of(std::span<const PlannedPacket> packets);

// "packets 3 to 7, 'add' to 'sum'"; where there are two queues, "queue 0, packet 3 'add'".
std::string packets_title(const Report& report, PacketRun run);

// What a packet has, and why: "barrier bit", "the next packet reads what it wrote".
struct PacketReason {
  std::string what, why;
};
// Three: of its barrier bit, its acquire and its release; and one more where the fence checker needs less.
std::vector<PacketReason> reasons_of(const PlannedPacket& packet);

// "the fence checker agrees with all 120 headers", "the fence checker needs less than 1 of 120 headers has"; empty where it was not asked.
std::string checker_advice(std::span<const PlannedPacket> packets);
// What such an opinion is worth; empty where it agrees or was not asked.
std::string about_checker_advice(std::span<const PlannedPacket> packets);

// All of it for a terminal; empty without packets.
std::string packets_text(const Report& report, size_t columns);

}  // namespace uptempo::fence_scope
