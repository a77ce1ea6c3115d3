#include "tools/fence_scope/verdict/checker_advice.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include <uptempo/runtime/runtime.hpp>
#include "tools/fence_scope/report/report_words.hpp"
#include "tools/fence_scope/run/vgpu_process.hpp"
#include "tools/support/command.hpp"

namespace uptempo::fence_scope {
namespace {

using nlohmann::ordered_json;

void narrow(aql::HeaderFlags& flags, const std::string& part, const std::string& to) {
  if (part == "barrier")
    flags.barrier = aql::Barrier::off;
  else
    (part == "acquire" ? flags.acquire : flags.release) = kByName<aql::FenceScope>.at(to);
}

aql::HeaderFlags flags_of(const ordered_json& header) {
  return {.barrier = header.at("barrier").get<bool>() ? aql::Barrier::on : aql::Barrier::off,
          .acquire = kByName<aql::FenceScope>.at(header.at("acquire").get<std::string>()),
          .release = kByName<aql::FenceScope>.at(header.at("release").get<std::string>())};
}

}  // namespace

std::optional<Headers> narrowed(const Headers& planned, std::span<const std::string> report,
                                const Placement& placement) {
  Headers headers = planned;
  for (const std::string& line : report) {
    try {
      const ordered_json advice = ordered_json::parse(line);
      if (!advice.contains("advice")) continue;  // a finding
      const auto part = advice.at("advice").get<std::string>();
      if (part == "none" || part == "incomplete") return std::nullopt;
      const auto queue = advice.at("queue").get<uint32_t>();
      const auto& listed = advice.at("packets");
      // A long list is truncated. The missing packets have this header.
      if (listed.size() != advice.at("count").get<size_t>() &&
          std::ranges::any_of(placement.packets, [&](const Bench::Packet& packet) {
            return placement.queues.at(packet.queue) == queue &&
                   planned.at(packet.step) == flags_of(advice.at("header"));
          }))
        return std::nullopt;
      for (const auto& index : listed)
        for (const Bench::Packet& packet : placement.packets)
          if (placement.queues.at(packet.queue) == queue && packet.index == index.get<uint64_t>())
            narrow(headers.at(packet.step), part, advice.at("to").get<std::string>());
    } catch (const std::exception& error) {
      throw std::runtime_error("the fence checker's report has an invalid line of advice: " + line +
                               ": " + error.what());
    }
  }
  return headers;
}

std::optional<Headers> advised_by_checker(const Sequence& sequence, const Headers& headers,
                                          std::optional<double> seconds) {
  const test::TemporaryDirectory directory;
  const std::string report = directory.file("report.jsonl");
  const Case one{.sequence = &sequence, .headers = headers};
  const ordered_json out = run_under_vgpu({"--check", "fences,advice", "--report", report},
                                          kAdviceTask, {&one, 1}, {}, seconds);
  Placement placement;
  for (size_t queue = 0; queue < placement.queues.size(); ++queue)
    placement.queues[queue] = out.at("queues").at(queue).get<uint32_t>();
  for (const ordered_json& packet : out.at("packets"))
    placement.packets.push_back({.role = Bench::Packet::Role::dispatch,
                                 .queue = packet.at(0).get<uint32_t>(),
                                 .step = packet.at(2).get<size_t>(),
                                 .index = packet.at(1).get<uint64_t>()});
  std::vector<std::string> lines;
  std::ifstream in(report);
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return narrowed(headers, lines, placement);
}

ordered_json advise(const Cases& cases, const std::vector<std::string>&) {
  const Runtime runtime;
  Bench bench(runtime.gpu(), cases.sequences.at(0));
  const Bench::Run run = bench.run(cases.cases.at(0).headers, Release::gated);
  ordered_json packets = ordered_json::array(), queues = ordered_json::array();
  for (const Bench::Packet& packet : run.packets)
    if (packet.role == Bench::Packet::Role::dispatch)
      packets.push_back({packet.queue, packet.index, packet.step});
  for (const std::optional<uint32_t>& number : device_numbers(bench))
    queues.push_back(number.value());
  return {{"queues", queues}, {"packets", packets}};
}

}  // namespace uptempo::fence_scope
