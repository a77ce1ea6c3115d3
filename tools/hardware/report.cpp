#include "tools/hardware/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include <uptempo/dispatch/queue.hpp>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/program/program.hpp>
#include "tools/support/program.hpp"
#include "tools/support/software.hpp"
#include "tools/support/table.hpp"

namespace uptempo::hardware {
namespace {

constexpr size_t kNameColumns = 17;

size_t count_of(const std::vector<Row>& rows, Verdict verdict) {
  return static_cast<size_t>(std::ranges::count_if(
      rows, [verdict](const Row& row) { return row.answer.verdict == verdict; }));
}

}  // namespace

nlohmann::ordered_json describe_machine(const support::Device& device) {
  const support::Software software = support::describe_software();
  std::string choices = device.runtime.describe();
  try {
    choices += Queue(device.gpu).describe();
  } catch (const std::exception& error) {
    choices += fmt::format("a queue: {}\n", error.what());
  }
  std::string no_kernels;
  try {
    const Program program(device.gpu, builtin_kernels::basics());
  } catch (const std::exception& error) {
    no_kernels = error.what();
  }
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  std::istringstream in(choices);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return {{"device", device.name()},
          {"line", device.line()},
          {"target", device.gpu.name()},
          {"isa", device.gpu.isa()},
          {"virtual_gpu", device.is_virtual},
          {"hsa_version", software.hsa_version},
          {"rocr_build", software.rocr_build},
          {"rocr_library", software.rocr_library},
          {"driver", software.driver},
          {"kernel", software.kernel},
          {"operating_system", support::operating_system()},
          {"environment", support::environment_of({"AMD_", "GPU_", "HIP_", "HSA_", "ROCR_"})},
          {"no_kernels", no_kernels},
          {"choices", lines}};
}

std::string text_of(const Row& row) {
  std::string text(name_of(row.answer.verdict));
  if (!row.answer.text.empty()) text += ": " + row.answer.text;
  return support::wrapped(text, support::kTerminalColumns, kNameColumns,
                          fmt::format("{:<{}}", row.probe, kNameColumns));
}

std::string summary_of(const std::vector<Row>& rows) {
  const size_t differs = count_of(rows, Verdict::differs);
  return support::wrapped(fmt::format(
      "{} of {} probes found what the engine assumes, {} something else; {} were not asked.",
      count_of(rows, Verdict::as_assumed), rows.size(), differs,
      count_of(rows, Verdict::not_asked)));
}

nlohmann::ordered_json json_of(const nlohmann::ordered_json& machine, const std::vector<Row>& rows,
                               bool interrupted) {
  nlohmann::ordered_json out{{"format", "uptempo-hardware-check-1"},
                             {"uptempo", support::version()}};
  for (const auto& [key, value] : machine.items())
    if (key != "line") out[key] = value;
  out["interrupted"] = interrupted;
  out["probes"] = nlohmann::ordered_json::array();
  for (const Row& row : rows)
    out["probes"].push_back({{"probe", row.probe},
                             {"rule", row.rule},
                             {"verdict", name_of(row.answer.verdict)},
                             {"text", row.answer.text},
                             {"seconds", row.seconds},
                             {"measured", row.answer.measured},
                             {"stderr", row.stderr_end}});
  return out;
}

}  // namespace uptempo::hardware
