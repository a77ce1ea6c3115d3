// aql_dump: prints packets, ring dumps, traces and the start of kernels as text.

#include "tools/aql_dump/input.hpp"
#include "tools/aql_dump/kernel_report.hpp"
#include "tools/aql_dump/report.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/program.hpp"
#include "tools/support/trace/trace.hpp"

using namespace uptempo;

int main(int argc, char** argv) {
  support::CommandLine app(
      "aql_dump",
      "Prints AQL packets, ring dumps and packet traces as text, and reports rules that a packet "
      "breaks. Lists what kernels read when they start.");
  app.require_commands(1, 1);
  app.footer(
      "Exit code: 0 no findings, 1 a packet breaks a rule or the input is malformed, 2 usage.");
  std::string json;
  support::add_json_option(app, json);
  app.allow_options_after_command();

  std::vector<std::string> words;
  auto& packet = app.command("packet", "Packets as 32-bit hexadecimal words, 16 each");
  packet.option("word", words, "Words in memory order; without any, standard input");

  std::string ring_file;
  uint64_t first = 0;
  bool skip_invalid = false;
  bool show_words = false;
  auto& ring = app.command("ring", "Packets as raw bytes, 64 each, as copied from a ring");
  ring.option("file", ring_file, "The file, or '-' for standard input").required();
  ring.option("--first", first, "Index of the first packet").show_default();
  ring.flag("--skip-invalid", skip_invalid, "Skip slots whose header is INVALID");
  for (auto* command : {&packet, &ring})
    command->flag("--words", show_words, "Also print the words");

  std::string trace_file;
  int64_t queue = -1;
  bool summary_only = false;
  std::string perfetto_file;
  auto& trace = app.command("trace", "A trace written by uptempo-vgpu --trace");
  trace.option("file", trace_file, "The file, or '-' for standard input").required();
  trace.option("--queue", queue, "Only this queue").not_negative();
  trace.flag("--summary", summary_only, "Only totals per queue");
  trace
      .option("--perfetto FILE|-", perfetto_file,
              "Write it for ui.perfetto.dev and chrome://tracing; prints only totals")
      .output_file();

  std::string kernels_file;
  auto& kernels = app.command(
      "kernels", "What each kernel of a code object, bundle or program reads when it starts");
  kernels.option("file", kernels_file, "The file, or '-' for standard input").required();

  return support::run_program(app, argc, argv, [&] {
    const auto emit = [&](const std::string& text, const nlohmann::ordered_json& document) {
      support::print_report(json, text);
      support::write_json(json, document);
    };
    if (trace.parsed()) {
      const std::string lines = support::read_input(trace_file);
      const auto events = aql_dump::trace_from_lines(lines, trace_file);
      if (perfetto_file == "-" && json == "-")
        throw support::UsageError("--perfetto and --json cannot both use standard output");
      const auto report =
          aql_dump::report_trace(events, queue, summary_only || !perfetto_file.empty());
      if (!perfetto_file.empty()) {
        const std::optional<uint64_t> only =
            queue < 0 ? std::nullopt : std::optional(static_cast<uint64_t>(queue));
        support::write_output(perfetto_file, support::trace_text(support::trace_json(
                                                 support::trace_of_vgpu(lines, trace_file, only))));
        if (perfetto_file == "-") return support::exit_ok;
      }
      emit(report.text, report.json);
      return support::exit_ok;
    }
    if (kernels.parsed()) {
      const auto report = aql_dump::report_kernels(support::read_input(kernels_file), kernels_file);
      emit(report.text, report.json);
      return support::exit_ok;
    }
    std::vector<aql::Packet64> packets;
    if (ring.parsed()) {
      packets = aql_dump::packets_from_bytes(support::read_input(ring_file), ring_file);
    } else {
      std::string text;
      for (const std::string& word : words) text += word + ' ';
      if (words.empty()) text = support::read_input("-");
      try {
        packets = aql_dump::packets_from_words(text);
      } catch (const std::runtime_error& error) {
        if (words.empty()) throw;
        throw support::UsageError(error.what());
      }
    }
    const auto report = aql_dump::report_packets(packets, first, skip_invalid, show_words);
    emit(report.text, report.json);
    return report.findings == 0 ? support::exit_ok : support::exit_measured_failure;
  });
}
