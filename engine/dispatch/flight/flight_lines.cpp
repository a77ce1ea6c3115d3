// FlightLog::lines(): the file that aql_dump reads. Packets have the fields of the virtual GPU's
// trace; tools/aql_dump/README.md lists the others.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "aql/text.hpp"
#include "aql/whole_file.hpp"
#include "engine/dispatch/flight/flight_log.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo::detail {
namespace {

using Json = nlohmann::ordered_json;
using Content = FlightPackets::Content;

Json json_of(const FlightPackets& packets, uint64_t queue) {
  Json line{{"queue", queue}, {"index", packets.first}, {"packets", packets.count}};
  const aql::Packet64& packet = packets.packet;
  const bool has_body = packets.content == Content::whole || packets.content == Content::headless;
  if (!has_body) {
    line["type"] = packets.content == Content::overwritten   ? "overwritten"
                   : packets.content == Content::unpublished ? "unpublished"
                                                             : "unread";
  } else if (packets.content == Content::headless) {
    line["type"] = "taken";
  } else {
    const aql::HeaderFlags flags = aql::header_flags(packet.header());
    line["type"] = aql::kind_name(packet);
    line["barrier"] = flags.barrier == aql::Barrier::on;
    line["acquire"] = aql::scope_name(flags.acquire);
    line["release"] = aql::scope_name(flags.release);
  }
  if (packets.kernel.empty()) return line;
  line["kernel"] = packets.kernel;
  if (!has_body) return line;
  const auto dispatch = aql::packet_as<hsa_kernel_dispatch_packet_t>(packet);
  line["kernel_object"] = dispatch.kernel_object;
  line["grid"] = {dispatch.grid_size_x, dispatch.grid_size_y, dispatch.grid_size_z};
  line["workgroup"] = {dispatch.workgroup_size_x, dispatch.workgroup_size_y,
                       dispatch.workgroup_size_z};
  line["kernarg"] = reinterpret_cast<uint64_t>(dispatch.kernarg_address);
  line["completion_signal"] = dispatch.completion_signal.handle != 0;
  return line;
}

std::string text_of(const Json& line) {
  // A name that is not UTF-8 must not prevent the report.
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace

std::string FlightLog::lines() const {
  Json head{{"type", "queue"},           {"queue", queue},           {"agent", agent},
            {"ring", ring_size},         {"read_index", read_index}, {"write_index", write_index},
            {"submissions", submissions}};
  if (failure) {
    head["failure"] = failure->text;
    head["status"] = status_name(failure->status);
  }
  std::string lines = text_of(head);
  for (const FlightPackets& packets : unrecorded) lines += text_of(json_of(packets, queue));
  for (const FlightSubmission& each : last) {
    Json line{{"type", "submission"},
              {"queue", queue},
              {"submission", each.entry.number},
              {"value", each.entry.value},
              {"state", name_of(each.state)},
              {"packets", each.entry.packets},
              {"index", each.entry.first}};
    if (each.entry.site.file != nullptr) {
      line["file"] = each.entry.site.file;
      line["line"] = each.entry.site.line;
    }
    if (each.signal) line["signal"] = *each.signal;
    lines += text_of(line);
    for (const FlightPackets& packets : each.packets) {
      Json of_packets = json_of(packets, queue);
      of_packets["submission"] = each.entry.number;
      lines += text_of(of_packets);
    }
  }
  return lines;
}

void save_lines(const std::filesystem::path& file, const std::string& lines, const char* call) {
  const std::string reason = aql::write_whole_file(file.string(), lines, aql::InPlace::written);
  if (reason.empty()) return;
  throw Error({.status = HSA_STATUS_ERROR_INVALID_FILE,
               .call = call,
               .asked = fmt::format("a report in '{}'", file.string()),
               .found = fmt::format("it cannot be written: {}", reason),
               .remedy = "pass a file that may be written"});
}

}  // namespace uptempo::detail
