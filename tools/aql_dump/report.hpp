// Output of aql_dump, as text and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <uptempo/aql/packet.hpp>

namespace uptempo::aql_dump {

// Packets in ring order; the first has index `first`.
struct PacketReport {
  std::string text;
  nlohmann::ordered_json json;
  size_t findings = 0;
};
PacketReport report_packets(const std::vector<aql::Packet64>& packets, uint64_t first,
                            bool skip_invalid, bool words);

// Events of a trace, in its order, with a summary per queue. `queue` below 0 selects all.
struct TraceReport {
  std::string text;
  nlohmann::ordered_json json;
};
TraceReport report_trace(const std::vector<nlohmann::ordered_json>& events, int64_t queue,
                         bool summary_only);

}  // namespace uptempo::aql_dump
