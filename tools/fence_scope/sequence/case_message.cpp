#include "tools/fence_scope/sequence/case_message.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

// CBOR has byte strings; nlohmann would write a list of numbers.
template <>
struct nlohmann::adl_serializer<std::vector<std::byte>> {
  static void to_json(json& value, const std::vector<std::byte>& bytes) {
    const auto* const first = reinterpret_cast<const uint8_t*>(bytes.data());
    value = json::binary(std::vector<uint8_t>(first, first + bytes.size()));
  }
  static void from_json(const json& value, std::vector<std::byte>& bytes) {
    const std::span binary = std::as_bytes(std::span(value.get_binary()));
    bytes.assign(binary.begin(), binary.end());
  }
};

namespace uptempo {
namespace aql {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Size3, x, y, z)

// A header of 16 bits.
static void to_json(nlohmann::json& value, const HeaderFlags& flags) {
  value = make_header(PacketType::kernel_dispatch, flags);
}
static void from_json(const nlohmann::json& value, HeaderFlags& flags) {
  flags = header_flags(value.get<uint16_t>());
}
}  // namespace aql

static void to_json(nlohmann::json& value, const Grid& grid) {
  value = {grid.items, grid.workgroup, grid.dimensions};
}
static void from_json(const nlohmann::json& value, Grid& grid) {
  value.at(0).get_to(grid.items);
  value.at(1).get_to(grid.workgroup);
  value.at(2).get_to(grid.dimensions);
}

namespace fence_scope {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Buffer, name, bytes, kind, initial)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Access, buffer, begin, bytes, writes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Argument, kind, value, buffer, begin, local_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Step, kind, name, queue, after, accesses, kernel, grid,
                                   arguments, from, to)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Sequence, name, description, code_object, buffers, steps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Cases::One, sequence, headers)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Cases, sequences, cases)

std::vector<uint8_t> to_bytes(std::span<const Case> cases) {
  std::vector<const Sequence*> sequences;
  json all = json::array(), written = json::array();
  for (const Case& one : cases) {
    const auto found = std::ranges::find(sequences, one.sequence);
    const auto number = static_cast<size_t>(found - sequences.begin());
    if (found == sequences.end()) {
      sequences.push_back(one.sequence);
      written.push_back(*one.sequence);
    }
    all.push_back(Cases::One{number, one.headers});
  }
  return json::to_cbor(json{{"sequences", written}, {"cases", all}});
}

Cases from_bytes(std::span<const uint8_t> bytes) {
  return json::from_cbor(bytes.begin(), bytes.end()).get<Cases>();
}

}  // namespace fence_scope
}  // namespace uptempo
