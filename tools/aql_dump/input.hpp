// What aql_dump reads: packets as hexadecimal words or as raw bytes, and the virtual GPU's trace (format: tools/vgpu/device/trace.hpp).
// All throw std::runtime_error naming the source, the place in it and what was expected.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "aql/packet.hpp"

namespace uptempo::aql_dump {

// Sixteen 32-bit words a packet, with or without 0x, separated by spaces, commas or lines.
std::vector<aql::Packet64> packets_from_words(const std::string& text);

// 64 bytes a packet, as copied from a ring.
std::vector<aql::Packet64> packets_from_bytes(const std::string& bytes, const std::string& name);

// One JSON object a line; empty lines are skipped.
std::vector<nlohmann::ordered_json> trace_from_lines(const std::string& lines, const std::string& name);

}  // namespace uptempo::aql_dump
