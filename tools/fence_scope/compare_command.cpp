#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/fence_scope/command_line.hpp"
#include "tools/fence_scope/report/compare.hpp"
#include "tools/fence_scope/report/report_json.hpp"
#include "tools/fence_scope/report/report_table.hpp"
#include "tools/support/command_line.hpp"

namespace uptempo::fence_scope {
namespace {

struct CompareOptions {
  std::string a, b;
  Quantity quantity = Quantity::gated;
  std::string json_file;
};

support::ExitCode run_compare(const CompareOptions& options) {
  const Report a = read_report(options.a), b = read_report(options.b);
  const ReportComparison comparison = compare(a, options.a, b, options.b, options.quantity);
  support::print_report(options.json_file, table(comparison, terminal_columns()));
  support::write_json(options.json_file, fence_scope::json(comparison));
  return comparison.worse() ? support::exit_measured_failure : support::exit_ok;
}

}  // namespace

void declare_compare(support::CommandLine& app, Commands& commands) {
  const auto options = std::make_shared<CompareOptions>();
  support::CommandLine& command = app.command(
      "compare",
      "Compare two reports of the same kind cell by cell; exit code 1 if the second is worse");
  command.option("a A.json", options->a, "Report to compare with, the old one").required();
  command.option("b B.json", options->b, "Report to compare, the new one").required();
  command.option("--times TIMES", options->quantity, kByName<Quantity>,
                 "gated, ungated, device or model (gated)");
  support::add_json_option(command, options->json_file);
  commands.emplace_back(&command, [options](const Invocation&) { return run_compare(*options); });
}

}  // namespace uptempo::fence_scope
