#include "tools/fence_scope/sequence/case_message.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace uptempo::fence_scope {
namespace {

using nlohmann::json;

json binary(const std::vector<std::byte>& bytes) {
  std::vector<uint8_t> copy(bytes.size());
  std::ranges::transform(bytes, copy.begin(),
                         [](std::byte byte) { return static_cast<uint8_t>(byte); });
  return json::binary(std::move(copy));
}
std::vector<std::byte> bytes_of(const json& value) {
  const auto& binary = value.get_binary();
  std::vector<std::byte> bytes(binary.size());
  std::ranges::transform(binary, bytes.begin(),
                         [](uint8_t byte) { return static_cast<std::byte>(byte); });
  return bytes;
}

json to_json(const Access& access) {
  return {access.buffer, access.begin, access.bytes, access.writes};
}
Access access_of(const json& value) {
  return {value.at(0).get<size_t>(), value.at(1).get<uint64_t>(), value.at(2).get<uint64_t>(),
          value.at(3).get<bool>()};
}

json to_json(const aql::Size3& size) { return {size.x, size.y, size.z}; }
aql::Size3 size_of(const json& value) {
  return {value.at(0).get<uint32_t>(), value.at(1).get<uint32_t>(), value.at(2).get<uint32_t>()};
}

json to_json(const Step& step) {
  json accesses = json::array(), arguments = json::array();
  for (const Access& access : step.accesses) accesses.push_back(to_json(access));
  for (const Argument& argument : step.arguments)
    arguments.push_back({static_cast<int>(argument.kind), binary(argument.value), argument.buffer,
                         argument.begin, argument.local_bytes});
  return {{"kind", static_cast<int>(step.kind)},
          {"name", step.name},
          {"queue", step.queue},
          {"after", step.after},
          {"accesses", accesses},
          {"kernel", step.kernel},
          {"items", to_json(step.grid.items)},
          {"workgroup", to_json(step.grid.workgroup)},
          {"dimensions", step.grid.dimensions},
          {"arguments", arguments},
          {"from", to_json(step.from)},
          {"to", to_json(step.to)}};
}

Step step_of(const json& value) {
  Step step;
  step.kind = static_cast<Step::Kind>(value.at("kind").get<int>());
  step.name = value.at("name").get<std::string>();
  step.queue = value.at("queue").get<uint32_t>();
  step.after = value.at("after").get<std::vector<size_t>>();
  for (const json& access : value.at("accesses")) step.accesses.push_back(access_of(access));
  step.kernel = value.at("kernel").get<std::string>();
  step.grid.items = size_of(value.at("items"));
  step.grid.workgroup = size_of(value.at("workgroup"));
  step.grid.dimensions = value.at("dimensions").get<uint16_t>();
  for (const json& argument : value.at("arguments"))
    step.arguments.push_back({.kind = static_cast<Argument::Kind>(argument.at(0).get<int>()),
                              .value = bytes_of(argument.at(1)),
                              .buffer = argument.at(2).get<size_t>(),
                              .begin = argument.at(3).get<uint64_t>(),
                              .local_bytes = argument.at(4).get<uint32_t>()});
  step.from = access_of(value.at("from"));
  step.to = access_of(value.at("to"));
  return step;
}

json to_json(const Sequence& sequence) {
  json buffers = json::array(), steps = json::array();
  for (const Buffer& buffer : sequence.buffers)
    buffers.push_back(
        {buffer.name, buffer.bytes, static_cast<int>(buffer.kind), binary(buffer.initial)});
  for (const Step& step : sequence.steps) steps.push_back(to_json(step));
  return {{"name", sequence.name},
          {"description", sequence.description},
          {"code_object", binary(sequence.code_object)},
          {"buffers", buffers},
          {"steps", steps}};
}

Sequence sequence_of(const json& value) {
  Sequence sequence;
  sequence.name = value.at("name").get<std::string>();
  sequence.description = value.at("description").get<std::string>();
  sequence.code_object = bytes_of(value.at("code_object"));
  for (const json& buffer : value.at("buffers"))
    sequence.buffers.push_back({.name = buffer.at(0).get<std::string>(),
                                .bytes = buffer.at(1).get<uint64_t>(),
                                .kind = static_cast<BufferKind>(buffer.at(2).get<int>()),
                                .initial = bytes_of(buffer.at(3))});
  for (const json& step : value.at("steps")) sequence.steps.push_back(step_of(step));
  return sequence;
}

}  // namespace

std::vector<uint8_t> to_bytes(std::span<const Case> cases) {
  std::vector<const Sequence*> sequences;
  json all = json::array(), written = json::array();
  for (const Case& one : cases) {
    const auto found = std::ranges::find(sequences, one.sequence);
    const auto number = found - sequences.begin();
    if (found == sequences.end()) {
      sequences.push_back(one.sequence);
      written.push_back(to_json(*one.sequence));
    }
    json headers = json::array();
    for (const aql::HeaderFlags& flags : one.headers)
      headers.push_back(aql::make_header(aql::PacketType::kernel_dispatch, flags));
    all.push_back({number, headers});
  }
  return json::to_cbor(json{{"sequences", written}, {"cases", all}});
}

Cases from_bytes(std::span<const uint8_t> bytes) {
  const json all = json::from_cbor(bytes.begin(), bytes.end());
  Cases cases;
  for (const json& sequence : all.at("sequences")) cases.sequences.push_back(sequence_of(sequence));
  for (const json& one : all.at("cases")) {
    Cases::One& last = cases.cases.emplace_back(Cases::One{one.at(0).get<size_t>(), {}});
    for (const json& header : one.at(1))
      last.headers.push_back(aql::header_flags(header.get<uint16_t>()));
  }
  return cases;
}

}  // namespace uptempo::fence_scope
