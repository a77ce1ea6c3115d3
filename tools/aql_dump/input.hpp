// Input of aql_dump: packets as hexadecimal words or as raw bytes, and the virtual GPU's trace
// (format: tools/vgpu/device/trace.hpp).
//
// Errors: std::runtime_error naming the source, the position and what was expected.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <uptempo/aql/packet.hpp>

namespace uptempo::aql_dump {

// Sixteen 32-bit words per packet, with or without 0x, separated by spaces, commas or lines.
std::vector<aql::Packet64> packets_from_words(const std::string& text);

// 64 bytes per packet, as copied from a ring.
std::vector<aql::Packet64> packets_from_bytes(const std::string& bytes, const std::string& name);

// One JSON object per line; skips empty lines.
std::vector<nlohmann::ordered_json> trace_from_lines(const std::string& lines,
                                                     const std::string& name);

}  // namespace uptempo::aql_dump
