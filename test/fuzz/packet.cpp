// AQL packets and their text. A packet without findings equals its decoded form, and the virtual
// GPU, which reads the specification independently, refuses no header that lint() accepts.
#include <cstring>

#include <uptempo/aql/text.hpp>
#include "cp/packet/aql_packet.hpp"
#include "test/fuzz/fuzz.hpp"
#include "tools/aql_dump/input.hpp"
#include "tools/aql_dump/report.hpp"

namespace uptempo::fuzz {
namespace {

aql::Packet64 refilled(const aql::Packet64& packet) {
  return std::visit(
      [&](const auto& typed) {
        if constexpr (requires(void* slot) { aql::fill(slot, typed); }) {
          return aql::to_packet(typed);
        } else {
          return packet;
        }
      },
      aql::decode(packet));
}

void check(const aql::Packet64& packet) {
  require(!aql::format(packet).empty() && !aql::kind_name(packet).empty(), "a packet has a text");
  require(aql_dump::packets_from_words(aql::format_words(packet)).at(0).word == packet.word,
          "a packet's words read as the packet");
  const bool is_invalid = aql::packet_type(packet.header()) == aql::PacketType::invalid;
  if (is_invalid || !aql::lint(packet).empty()) return;
  require(refilled(packet).word == packet.word, "a packet without findings is its decoded form");
  require(!vgpu::check_header({packet.header()}), "the virtual GPU accepts its header");
  std::byte bytes[sizeof packet];
  std::memcpy(bytes, &packet, sizeof packet);
  require(vgpu::ignored_field(bytes).empty() || std::holds_alternative<aql::Pm4Ib>(decode(packet)),
          "the virtual GPU ignores no field of it");
}

}  // namespace

void packet(Bytes input) {
  aql::Packet64 first{};
  if (!input.empty()) std::memcpy(&first, input.data(), std::min(input.size(), sizeof first));
  check(first);
  const std::string text(text_of(input));
  std::vector<aql::Packet64> packets;
  const auto report = [&] { (void)aql_dump::report_packets(packets, 0, false, true); };
  if (accepts_or<std::runtime_error>(
          [&] { packets = aql_dump::packets_from_bytes(text, "a ring"); }))
    report();
  if (accepts_or<std::runtime_error>([&] { packets = aql_dump::packets_from_words(text); }))
    report();
}

}  // namespace uptempo::fuzz
