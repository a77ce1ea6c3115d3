// Runs aql_dump as a user does.
#include <fmt/format.h>
#include <uptempo/kernels/probes_v4.hpp>
#include <uptempo/kernels/workgroups_of_256.hpp>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>
#include <sstream>
#include <string>

#include <uptempo/aql/text.hpp>
#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using namespace uptempo;

namespace {

using uptempo::test::CommandResult;

// `arguments` are words of a shell.
CommandResult aql_dump(const std::string& arguments, const std::string& input = {}) {
  return uptempo::test::run_command({"sh", "-c", std::string(AQL_DUMP) + ' ' + arguments},
                                    {.input = input});
}

aql::Packet64 good_packet() {
  return aql::to_packet(aql::KernelDispatch{.flags = {},
                                            .grid = {512},
                                            .workgroup = {256},
                                            .kernel_object = 0x1000,
                                            .kernarg_address = reinterpret_cast<void*>(0x2000)});
}

// Writes the bytes to a file of that name and returns its path.
std::string file_of(const uptempo::test::TemporaryDirectory& directory, const std::string& name,
                    std::span<const std::byte> bytes) {
  const std::string file = directory.file(name);
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return file;
}

// The kernel of that name, in the first code object of the report.
nlohmann::json kernel_of(const nlohmann::json& report, const std::string& name) {
  for (const auto& kernel : report.at("code_objects").at(0).at("kernels"))
    if (kernel.at("name") == name) return kernel;
  FAIL("no kernel " << name);
  return {};
}

std::string costs_of(const nlohmann::json& kernel) {
  std::string costs;
  for (const auto& cost : kernel.at("costs"))
    costs += (costs.empty() ? "" : ", ") + cost.at("cost").get<std::string>();
  return costs;
}

bool is_one_sentence(const std::string& text) {
  return text.starts_with("aql_dump: ") && text.find('\n') == text.size() - 1;
}

}  // namespace

TEST_CASE("a packet's words, as the library prints them, are decoded to the packet's line",
          "[aql_dump]") {
  const std::string words = aql::format_words(good_packet());
  const std::string expected =
      "     0  " + aql::format(good_packet()) + "\n1 packets, 0 findings\n";
  const CommandResult from_input = aql_dump("packet", words);
  CHECK(from_input.out == expected);
  CHECK(from_input.exit_code == 0);
  std::string as_arguments = words;
  for (char& c : as_arguments) c = c == '\n' ? ' ' : c;
  CHECK(aql_dump("packet " + as_arguments).out == expected);
  CHECK(aql_dump("packet --words", words)
            .out.find("\n        " + words.substr(0, words.find('\n')) + '\n') !=
        std::string::npos);
}

TEST_CASE("a ring dump is read slot by slot; a broken packet is named and makes the exit code 1",
          "[aql_dump]") {
  aql::Packet64 broken = good_packet();
  broken.word[3] = 0;
  const aql::Packet64 ring[] = {good_packet(), aql::Packet64{{aql::kInvalidHeader}}, broken};
  const uptempo::test::TemporaryDirectory directory;
  const std::string file = directory.file("ring");
  std::ofstream(file, std::ios::binary)
      << std::string(reinterpret_cast<const char*>(ring), sizeof ring);

  const CommandResult all = aql_dump("ring --first 100 " + file);
  CHECK(all.exit_code == 1);
  CHECK(all.out == "   100  " + aql::format(ring[0]) + "\n   101  invalid\n   102  " +
                       aql::format(ring[2]) +
                       "\n        grid_size_x: is 0, must be at least 1\n3 packets, 1 findings\n");
  CHECK(aql_dump("ring --skip-invalid " + file).out.find("invalid") == std::string::npos);

  const auto json = nlohmann::json::parse(aql_dump("ring --json - " + file).out);
  CHECK(json["findings"] == 1);
  CHECK(json["packets"].size() == 3);
  CHECK(json["packets"][0]["type"] == "kernel_dispatch");
  CHECK(json["packets"][0]["acquire"] == "system");
  CHECK(json["packets"][0]["grid"] == nlohmann::json{512, 1, 1});
  CHECK(json["packets"][0]["words"][0] == good_packet().word[0]);
  CHECK(json["packets"][2]["findings"][0]["field"] == "grid_size_x");
}

TEST_CASE("a trace prints event by event with totals per queue", "[aql_dump]") {
  const std::string trace =
      R"({"type":"doorbell","queue":1,"value":1,"ns":3})"
      "\n\n"
      R"({"queue":1,"index":0,"type":"kernel_dispatch","barrier":true,"acquire":"system","release":"agent","completion_signal":false,"kernel":"sort.kd","grid":[512,1,1],"workgroup":[256,1,1],"kernarg":4096,"start_ns":10,"end_ns":25})"
      "\n"
      R"({"queue":1,"index":1,"type":"barrier_and","barrier":false,"acquire":"none","release":"system","completion_signal":true,"start_ns":30,"end_ns":31})"
      "\n"
      R"({"type":"sdma","engine":"copy_linear","queue":2,"offset":64,"bytes":4096,"start_ns":4,"end_ns":5})"
      "\n";
  const CommandResult outcome = aql_dump("trace -", trace);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out ==
        "queue 1 doorbell 1\n"
        "queue 1 packet 0 kernel_dispatch barrier acquire=system release=agent kernel=sort.kd "
        "grid=[512,1,1] "
        "workgroup=[256,1,1] kernarg=0x1000 (15 ns)\n"
        "queue 1 packet 1 barrier_and acquire=none release=system completion_signal (1 ns)\n"
        "queue 2 sdma copy_linear offset=64 bytes=4096 (1 ns)\n"
        "total queue 1: 1 barrier_and, 1 kernel_dispatch; 1 doorbells; barrier bit on 1; acquire 1 "
        "none, 1 "
        "system; "
        "release 1 agent, 1 system; completion signal on 1\n"
        "total queue 2: 1 sdma copy_linear; 0 doorbells\n");
  CHECK(aql_dump("trace --queue 2 --summary -", trace).out ==
        "total queue 2: 1 sdma copy_linear; 0 doorbells\n");
  const auto json = nlohmann::json::parse(aql_dump("trace --json - -", trace).out);
  CHECK(json["events"].size() == 4);
  CHECK(json["queues"]["1"]["packets"]["kernel_dispatch"] == 1);
  CHECK(json["queues"]["1"]["completion_signals"] == 1);
}

// probes.cl: spin uses the geometry, which version 4 reads from the packet; meet does not;
// probe_private has an array that is indexed at run time.
TEST_CASE("kernels are listed with what they read at their start, and with remedies",
          "[aql_dump]") {
  const uptempo::test::TemporaryDirectory directory;
  const std::string file = file_of(directory, "probes", test::kernels::probes_v4());
  const CommandResult outcome = aql_dump("kernels " + file);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
  }
  const auto has_line = [&](const std::string& pattern) {
    return std::regex_search(outcome.out, std::regex("(^|\n)" + pattern + "\n"));
  };
  CHECK(has_line("gfx90a, code object version 4 \\(hipv4-amdgcn-amd-amdhsa--gfx90a\\)"));
  CHECK(has_line("kernel +packet queue hidden kernarg preload private scratch"));
  CHECK(has_line("spin +yes +- +\\d+ +\\d+ +- +- +-"));
  CHECK(has_line("meet +- +- +- +\\d+ +- +- +-"));
  CHECK(has_line("probe_private +yes +- +\\d+ +\\d+ +- +\\d+ +yes"));
  CHECK(has_line("  costs    packet \\| geometry \\| scratch"));
  const auto json = nlohmann::json::parse(aql_dump("kernels --json - " + file).out);
  // One code object for each device that the tests use; only gfx90a's compiler cannot preload.
  const size_t objects = json["code_objects"].size();
  const auto remedy = [&](const char* cost, size_t kernels) {
    return fmt::format("  {} ({} of {} kernels): ", cost, kernels * objects, 7 * objects);
  };
  CHECK(outcome.out.find(remedy("packet", 5) + "Every wave reads") != std::string::npos);
  CHECK(outcome.out.find(remedy("scratch", 1)) != std::string::npos);
  CHECK((outcome.out.find("preload (") == std::string::npos) == (objects == 1));

  CHECK(json["code_objects"][0]["target"] == "gfx90a");
  CHECK(json["code_objects"][0]["version"] == 4);
  const auto spin = kernel_of(json, "spin"), meet = kernel_of(json, "meet");
  CHECK(spin["packet"] == true);
  CHECK(spin["kernarg_segment"] == true);
  CHECK(spin["explicit_kernarg_bytes"] == 16);
  CHECK(spin["hidden_arguments_declared"][0] == "global_offset_x");
  CHECK(costs_of(spin) == "packet, geometry");
  CHECK(meet["packet"] == false);
  CHECK(meet["hidden_arguments_declared"].empty());
  CHECK(costs_of(meet).empty());
  // uint values[96]
  CHECK(kernel_of(json, "probe_private")["private_segment_bytes"].get<int>() >= 384);
}

TEST_CASE("kernels that read nothing have no costs, also inside a program", "[aql_dump]") {
  const uptempo::test::TemporaryDirectory directory;
  const std::string file = file_of(directory, "kernels", builtin_kernels::workgroups_of_256());
  const auto alone = nlohmann::json::parse(aql_dump("kernels --json - " + file).out);
  CHECK(costs_of(kernel_of(alone, "saxpy")).empty());
  CHECK(aql_dump("kernels " + file).out.find("geometry") == std::string::npos);

  // This program contains the same bundle, and that of the probes.
  const auto inside = nlohmann::json::parse(
      aql_dump("kernels --json - " + std::filesystem::canonical("/proc/self/exe").string()).out);
  const auto probes =
      nlohmann::json::parse(
          aql_dump("kernels --json - " + file_of(directory, "probes", test::kernels::probes_v4()))
              .out)
          .at("code_objects");
  size_t sorts = 0, spins = 0;
  for (const auto& object : inside["code_objects"]) {
    CHECK(object["origin"].get<std::string>().find(" at offset 0x") != std::string::npos);
    for (const auto& kernel : object["kernels"]) {
      sorts += kernel["name"] == "bitonic_sort";
      spins += kernel["name"] == "spin";
    }
  }
  CHECK(sorts == alone["code_objects"].size());
  CHECK(spins == probes.size());
}

TEST_CASE("names of kernels that hold control characters or no UTF-8 cannot disturb the output",
          "[aql_dump]") {
  const test::TemporaryDirectory directory;
  const auto code = builtin_kernels::workgroups_of_256();
  std::string bytes(reinterpret_cast<const char*>(code.data()), code.size());
  // The same length, so that every offset stays.
  for (size_t at = 0; (at = bytes.find("bitonic_sort", at)) != std::string::npos;)
    bytes.replace(at, 12, "b\x1b[2J\xffsort__");
  const std::string file = file_of(directory, "named", std::as_bytes(std::span(bytes)));
  const CommandResult text = aql_dump("kernels " + file);
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("b\\x1b[2J\\xffsort__") != std::string::npos);
  CHECK(text.out.find('\x1b') == std::string::npos);
  const CommandResult report = aql_dump("kernels --json - " + file);
  CHECK(report.exit_code == 0);
  CHECK(report.out.find("sort__") != std::string::npos);
  CHECK(nlohmann::json::accept(report.out));
}

TEST_CASE("errors are one sentence on standard error, with the exit code of their kind",
          "[aql_dump]") {
  const auto fails = [](const std::string& arguments, const std::string& input, int exit_code,
                        const std::string& named) {
    CAPTURE(arguments);
    const CommandResult outcome = aql_dump(arguments, input);
    CHECK(outcome.exit_code == exit_code);
    CHECK(outcome.out.empty());
    CHECK(is_one_sentence(outcome.err));
    CHECK(outcome.err.find(named) != std::string::npos);
  };
  fails("", "", 2, "subcommand");
  fails("packet --frobnicate", "", 2, "frobnicate");
  fails("packet 1 2 3", "", 2, "3 words given");
  fails("packet", "1 2 zebra", 1, "'zebra'");
  fails("packet", "123456789", 1, "'123456789'");
  fails("ring /no/such/file", "", 2, "/no/such/file");
  fails("ring -", "short", 1, "5 bytes");
  fails("trace -", "{\"type\":\"doorbell\",\"queue\":0,\"value\":1}\nnot json\n", 1, "line 2");
  fails("trace -", "[1]\n", 1, "line 1");
  fails("kernels", "", 2, "file");
  fails("kernels /no/such/file", "", 2, "/no/such/file");
  fails("kernels -", "short", 1, "'-' holds 5 bytes that are neither");
  fails("kernels /bin/true", "", 1, "'/bin/true' holds no offload bundle");
  fails("kernels -", "__CLANG_OFFLOAD_BUNDLE__", 1, "cut off");
  fails("trace --json /no/such/folder/x -", "", 2, "/no/such/folder/x");
}
