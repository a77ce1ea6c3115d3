// fence_scope as a user runs it, on the virtual GPU.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

using nlohmann::json;
using uptempo::test::CommandResult;
using uptempo::test::contents_of;
using uptempo::test::run_command;
using uptempo::test::TemporaryDirectory;

namespace {

CommandResult fence_scope(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), FENCE_SCOPE);
  return run_command(arguments);
}

// Runs on the virtual GPU, with few rounds.
CommandResult quick(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--device", "virtual", "--rounds", "2"});
  return fence_scope(arguments);
}

json report_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", "-"});
  const CommandResult result = quick(arguments);
  CAPTURE(result.err, result.out);
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out);
}

json verdict_of(const json& cell) { return cell["judgement"]["verdict"]; }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Checks that a workload has a correct baseline, and one recommended cell that is correct and no
// more expensive.
void check_choice(const std::string& workload) {
  CAPTURE(workload);
  std::vector<std::string> arguments{"scopes", "--workload", workload, "--kernels",
                                     "4",      "--position", "last"};
  if (workload != "empty") arguments.insert(arguments.end(), {"--bytes", "1024"});
  const json out = report_of(arguments);
  REQUIRE(out["cells"].size() >= 1 + 18);
  CHECK(out["cells"][0]["baseline"] == true);
  CHECK(verdict_of(out["cells"][0]) == "correct");
  CHECK(std::ranges::count_if(out["cells"],
                              [](const json& cell) { return cell["recommended"] == true; }) == 1);
  for (const json& cell : out["cells"]) {
    if (cell["recommended"] == false) continue;
    CHECK(verdict_of(cell) == "correct");
    CHECK(cell["counts"]["system_acquires"] <= out["cells"][0]["counts"]["system_acquires"]);
    CHECK(cell["counts"]["barrier_bits"] <= out["cells"][0]["counts"]["barrier_bits"]);
  }
}

}  // namespace

TEST_CASE("ladder measures and verifies each rung of the sort's ladder") {
  const CommandResult result = fence_scope(
      {"ladder", "--device", "virtual", "--length", "256", "--iterations", "2", "--json", "-"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json out = json::parse(result.out);
  CHECK(out["experiment"] == "ladder");
  REQUIRE(out["cells"].size() == 6);
  CHECK(out["cells"][0]["baseline"] == true);
  for (const json& cell : out["cells"]) {
    CHECK(verdict_of(cell) == "correct");
    CHECK(cell["kernels"] == 36);
  }
  CHECK(out["cells"][0]["counts"]["system_acquires"] == 36);
  CHECK(out["cells"][5]["counts"]["system_acquires"] == 1);
}

TEST_CASE(
    "ladder restates the article's figures on the virtual GPU, and predicts other lengths and "
    "devices") {
  const auto contains = [](const std::string& text, const char* words) {
    return text.find(words) != std::string::npos;
  };
  const auto ladder = [](std::vector<std::string> more) {
    std::vector<std::string> command{"ladder", "--device", "virtual", "--iterations", "1"};
    command.insert(command.end(), more.begin(), more.end());
    return fence_scope(command).out;
  };
  const std::string article = ladder({});
  CHECK(contains(article, "model fiji: restated, not reproduced"));
  CHECK(contains(article, "1943"));
  CHECK(contains(article, "1137"));
  const std::string shorter = ladder({"--length", "1024"});
  CHECK(contains(shorter, "model fiji: predicted"));
  CHECK_FALSE(contains(shorter, "restated"));
  const std::string other = ladder({"--length", "1024", "--profile", "mi210"});
  CHECK(contains(other, "model mi210: predicted"));
}

TEST_CASE("ladder prints its conclusion first, then the device and the sort's own table") {
  const CommandResult result =
      fence_scope({"ladder", "--device", "virtual", "--length", "16", "--iterations", "1"});
  REQUIRE(result.exit_code == 0);
  CHECK(first_line(result.out).starts_with("All rungs sort correctly"));
  CHECK(result.out.find(
            "\nDevice: virtual GPU, AMD Instinct MI210 (gfx90a); times are the virtual GPU's\n") !=
        std::string::npos);
  CHECK(result.out.find("+ avoid-host-sync") != std::string::npos);
}

TEST_CASE(
    "scopes tries all 18 settings of a sort's interior packets, each with the counts of its "
    "fences") {
  const json out = report_of({"scopes", "--bytes", "1024"});
  CHECK(out["experiment"] == "scopes");
  CHECK(out["time_kind"] == "virtual_gpu");
  REQUIRE(out["cells"].size() == 1 + 18);
  size_t recommended = 0;
  for (const json& cell : out["cells"]) {
    CAPTURE(cell.dump());
    CHECK(cell["workload"] == "bitonic-sort");
    REQUIRE(cell["kernels"] == 36);
    CHECK(cell["counts"]["doorbells"] == 1);
    CHECK(cell["counts"]["interrupts"] == 1);
    recommended += cell["recommended"] == true;
    if (cell["baseline"] == true) {
      CHECK(cell["position"] == "all");
      CHECK(cell["counts"]["barrier_bits"] == 36);
      CHECK(cell["counts"]["system_acquires"] == 36);
      CHECK(cell["counts"]["system_releases"] == 36);
      CHECK(verdict_of(cell) == "correct");
      continue;
    }
    CHECK(cell["position"] == "interior");
    CHECK(cell["counts"]["system_acquires"] == (cell["acquire"] == "system" ? 35 : 1));
    CHECK(cell["counts"]["system_releases"] == (cell["release"] == "system" ? 35 : 1));
    const bool needed =
        cell["barrier"] == true && cell["acquire"] != "none" && cell["release"] != "none";
    CHECK((verdict_of(cell) == "correct") == needed);
    if (cell["barrier"] == false) CHECK(verdict_of(cell) == "unordered");
    if (cell["recommended"] == true) {
      CHECK(cell["barrier"] == true);
      CHECK(cell["acquire"] == "agent");
      CHECK(cell["release"] == "agent");
    }
  }
  CHECK(recommended == 1);
}

TEST_CASE(
    "the first line of the table is the conclusion, and times are labelled as the virtual GPU's") {
  const CommandResult result = quick({"scopes", "--bytes", "1024"});
  REQUIRE(result.exit_code == 0);
  CHECK(first_line(result.out)
            .starts_with("Cheapest correct: barrier, acquire agent, release agent"));
  CHECK(result.out.find("AMD Instinct MI210 (gfx90a)") != std::string::npos);
  CHECK(result.out.find("virtual GPU") != std::string::npos);
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}

TEST_CASE("the recommended choice for a chain is correct and no more expensive than the baseline") {
  check_choice("chain");
}
TEST_CASE("the same holds for the choice for independent kernels and for empty ones", "[.long]") {
  check_choice("independent");
  check_choice("empty");
}
TEST_CASE("the same holds for the choice for two queues") { check_choice("producer-consumer"); }
TEST_CASE("the same holds for the choice with copies before and after", "[.long]") {
  check_choice("copy-kernel-copy");
}

TEST_CASE(
    "sweep compares the baseline with the plan for each size, and varies one size at a time") {
  const json out =
      report_of({"sweep", "--kernels", "2,4", "--bytes", "1K", "--working-set", "0.03125"});
  REQUIRE(out["cells"].size() == 4 * 3);
  for (size_t i = 0; i < out["cells"].size(); ++i) {
    CHECK(out["cells"][i]["baseline"] == (i % 3 == 0));
    CHECK(verdict_of(out["cells"][i]) == "correct");
  }
  CHECK(out["cells"][0]["kernels"] == 2);
  CHECK(out["cells"][3]["kernels"] == 4);
  CHECK(out["conclusion"].get<std::string>().find(" saves ") != std::string::npos);
}

TEST_CASE(
    "explain gives each packet's header, and why it needs no more and no less, in every report "
    "format") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("report.json"), cells = directory.file("packets.csv"),
                    page = directory.file("page.html");
  const CommandResult result = quick({"explain", "--workload", "chain", "--kernels", "4", "--bytes",
                                      "1024", "--json", file, "--csv", cells, "--html", page});
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(first_line(result.out).starts_with("Cheapest correct: as planned"));
  // No packet precedes it, so the checker cannot know earlier work.
  CHECK(
      result.out.find("\n  fence checker   cannot judge barrier bit: nothing precedes its run\n") !=
      std::string::npos);
  CHECK(result.out.find("the fence checker agrees with all 4 headers") != std::string::npos);
  for (const char* line : {"\npacket 0 'link 0': header 0x0d02\n",
                           "\npackets 1 to 2, 'link 1' to 'link 2': header 0x0b02\n",
                           "\n  barrier bit     it reads what the packet before it wrote\n",
                           "\n  acquire agent   it reads what the packet before it wrote\n",
                           "\n  release agent   the next packet reads what it wrote\n",
                           "\n  release system  last packet: the host reads the results\n"}) {
    CAPTURE(line);
    CHECK(result.out.find(line) != std::string::npos);
  }
  const json packets = json::parse(contents_of(file))["packets"];
  REQUIRE(packets.size() == 4);
  CHECK(packets[1]["name"] == "link 1");
  CHECK(packets[1]["header"] == "0x0b02");
  CHECK(packets[0]["checker"] ==
        json{{"barrier", false}, {"acquire", "system"}, {"release", "agent"}});
  CHECK(packets[1]["checker"] ==
        json{{"barrier", true}, {"acquire", "agent"}, {"release", "agent"}});
  CHECK(packets[1]["because"]["release"] == "the next packet reads what it wrote");
  const std::string records = contents_of(cells);
  CHECK(std::ranges::count(records, '\n') == 1 + 4);
  CHECK(records.find("link 2,0x0b02,true,agent,agent,it reads what the packet before it wrote,") !=
        std::string::npos);
  CHECK(contents_of(page).find("<td>the next packet reads what it wrote</td>") !=
        std::string::npos);
}

TEST_CASE("--dry-run prints the packets of the selected cells, and sends none") {
  const CommandResult result = quick({"scopes", "--workload", "chain", "--kernels", "3", "--filter",
                                      "no barrier, acquire none, release none", "--dry-run"});
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.starts_with("# barrier, acquire system, release system\n"));
  CHECK(result.out.find("# no barrier, acquire none, release none\n") != std::string::npos);
  size_t packets = 0;
  for (size_t at = 0; (at = result.out.find("kernel_dispatch", at)) != std::string::npos; ++at)
    ++packets;
  CHECK(packets == 2 * 3);
}

TEST_CASE("--dry-run needs no device and dispatches nothing") {
  const TemporaryDirectory directory;
  const std::string trace = directory.file("trace");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"scopes"},
        {"scopes", "--workload", "producer-consumer", "--kernels", "8"},
        {"explain", "--workload", "copy-kernel-copy"},
        {"sweep"}}) {
    CAPTURE(command);
    std::vector<std::string> words{VGPU, "--trace", trace, "--", FENCE_SCOPE};
    words.insert(words.end(), command.begin(), command.end());
    words.push_back("--dry-run");
    const CommandResult traced = run_command(words);
    CHECK(traced.exit_code == 0);
    CHECK(traced.out.find("kernel_dispatch") != std::string::npos);
    CHECK(contents_of(trace).empty());  // neither a packet nor a doorbell
    // Neither hardware nor a launcher of the virtual GPU.
    words.erase(words.begin(), words.begin() + 4);
    words.insert(words.end(), {"--device", "virtual"});
    const CommandResult alone =
        run_command(words, {.environment = {"UPTEMPO_VGPU=/nonexistent/uptempo-vgpu"}});
    CHECK(alone.exit_code == 0);
    CHECK(alone.out == traced.out);
  }
}

TEST_CASE("--seconds bounds reference runs, too, and names what was left out") {
  const CommandResult none = quick({"scopes", "--seconds", "0"});
  CHECK(none.exit_code == 1);
  CHECK(none.err == "fence_scope: --seconds left no time for a reference run of the sequence\n");
  // The second size has 20,000 steps, too many for the share of reference runs.
  const json out = report_of(
      {"sweep", "--kernels", "2,20000", "--bytes", "1K", "--working-set", "0.5", "--seconds", "4"});
  CHECK(out["cells"].size() == 3);
  CHECK(out["warnings"].dump().find(
            "--seconds left no time for 3 of 4 sizes, from 20000 kernels") != std::string::npos);
}

TEST_CASE("--list names commands, workloads and cells, and needs no device") {
  const CommandResult all = fence_scope({"--list"});
  CHECK(all.exit_code == 0);
  for (const char* name : {"ladder", "scopes", "sweep", "explain", "litmus", "producer-consumer"})
    CHECK(all.out.find(name) != std::string::npos);
  const CommandResult cells =
      fence_scope({"scopes", "--list", "--filter", "acquire none, release none"});
  CHECK(cells.exit_code == 0);
  CHECK(cells.out.find("bitonic-sort, interior: no barrier, acquire none, release none\n") !=
        std::string::npos);
  CHECK(cells.out.find("release agent") == std::string::npos);
}

TEST_CASE(
    "a report can be replayed: same command and seed, and only the outputs that are requested "
    "now") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("report.json"), again = directory.file("again.json"),
                    cells = directory.file("cells.csv"), page = directory.file("page.html");
  REQUIRE(quick({"scopes", "--workload", "chain", "--kernels", "3", "--bytes=1024", "--seed", "7",
                 "--json", file, "--csv=" + cells, "--html", page})
              .exit_code == 0);
  REQUIRE_FALSE(contents_of(cells).empty());
  CHECK(contents_of(page).find("<html") != std::string::npos);
  std::filesystem::remove(cells);
  const std::string before = contents_of(file);
  const CommandResult result = fence_scope({"--replay", file, "--json", again});
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  const json first = json::parse(before), second = json::parse(contents_of(again));
  CHECK(second["command"] == first["command"]);
  CHECK(second["seed"] == 7);
  CHECK(second["cells"].size() == first["cells"].size());
  CHECK(contents_of(file) == before);
  CHECK_FALSE(std::filesystem::exists(cells));
}

TEST_CASE("a stranger's report writes and reads no file that it names") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("report.json"), victim = directory.file("victim"),
                    theirs = directory.file("theirs.json");
  REQUIRE(quick({"scopes", "--workload", "empty", "--kernels", "3", "--json", file}).exit_code ==
          0);
  const json honest = json::parse(contents_of(file));
  std::ofstream(victim) << "precious";
  std::vector<std::vector<std::string>> commands{{"litmus", "--json", victim},
                                                 {"compare", file, file, "--json", victim},
                                                 {"explain", "--program", victim},
                                                 {"scopes", "--list"},
                                                 {"--replay", file, "--json", victim}};
  for (const char* command : {"scopes", "sweep", "explain", "ladder"}) {
    for (const std::string option : {"--json", "--csv", "--html", "--trace"}) {
      commands.push_back({command, option, victim});
      commands.push_back({command, "--seed", "1", option + '=' + victim});
      // The option's name as another option's value.
      commands.push_back({command, "--profile", option, option, victim});
    }
  }
  for (const std::vector<std::string>& command : commands) {
    CAPTURE(command);
    json report = honest;
    report["command"] = command;
    std::ofstream(theirs) << report;
    const CommandResult result = fence_scope({"--replay", theirs});
    CAPTURE(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.starts_with("fence_scope: " + theirs + ": "));
    CHECK(contents_of(victim) == "precious");
  }
}

TEST_CASE("a user's program file serves as an experiment's sequence, like a workload") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("steps.json");
  std::ofstream(file) << R"({"name": "twice", "description": "two increments",
    "buffers": [{"name": "x", "bytes": 1024}], "steps": [
    {"kernel": "chain_increment", "grid": 256, "arguments": [{"buffer": "x"}, {"u32": 1}], "reads": ["x"], "writes": ["x"]},
    {"kernel": "chain_increment", "grid": 256, "arguments": [{"buffer": "x"}, {"u32": 1}], "reads": ["x"], "writes": ["x"]}]})";
  const json out = report_of({"scopes", "--program", file, "--position", "last"});
  REQUIRE(out["cells"].size() == 1 + 18);
  CHECK(out["description"] == "two increments");
  for (const json& cell : out["cells"]) {
    CHECK(cell["workload"] == "twice");
    CHECK(cell["kernels"] == 2);
    // The host reads what the last packet wrote.
    if (cell["recommended"] == true) CHECK(cell["release"] == "system");
  }
  CHECK(fence_scope({"scopes", "--program", file, "--workload", "chain"}).exit_code == 2);
}

TEST_CASE("a report compared with itself shows nothing worse") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("report.json");
  REQUIRE(
      quick({"explain", "--workload", "chain", "--kernels", "3", "--bytes", "1024", "--json", file})
          .exit_code == 0);
  const CommandResult same = fence_scope({"compare", file, file});
  CAPTURE(same.out, same.err);
  CHECK(same.exit_code == 0);
  const CommandResult cells =
      fence_scope({"compare", file, file, "--times", "ungated", "--json", "-"});
  REQUIRE(cells.exit_code == 0);
  CHECK(json::parse(cells.out).is_object());
  // No cell has timestamps.
  CHECK(fence_scope({"compare", file, file, "--times", "device"}).exit_code == 2);
}

TEST_CASE("a file that is not a report cannot be replayed") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("report.json");
  std::ofstream(file) << "{\"schema\": 1}";
  for (const std::string& name : {file, directory.file("missing.json")}) {
    const CommandResult result = fence_scope({"--replay", name});
    CHECK(result.exit_code == 2);
    CHECK(result.err.find(name) != std::string::npos);
  }
}

TEST_CASE("a wrong command line ends with 2 and one sentence") {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{},
        {"steps"},
        {"scopes", "--bytes", "5"},
        {"scopes", "--workload", "no-such", "--list"},
        {"scopes", "--list", "--filter", "no such"},
        {"scopes", "--workload", "chain", "--kernels", "2", "--list"},
        {"scopes", "--position", "middle"},
        {"scopes", "--rounds", "0"},
        {"scopes", "--precision", "0"},
        {"scopes", "--timing", "some"},
        {"scopes", "--json", "-", "--csv", "-"},
        {"scopes", "--json", "/no/such/folder/report.json"},
        {"sweep", "--kernels", "0x"},
        {"sweep", "--kernels", "0"},
        {"sweep", "--program", "steps.json"},
        {"ladder", "--iterations", "0"},
        {"ladder", "--length", "5"},
        {"--json", "-"}}) {
    const CommandResult result = fence_scope(arguments);
    CAPTURE(result.err, arguments);
    CHECK(result.exit_code == 2);
    CHECK(result.err.starts_with("fence_scope: "));
    CHECK(result.err.find('\n') == result.err.size() - 1);
  }
}

TEST_CASE("fence_scope ends with 77 if hardware is requested under the virtual GPU") {
  for (const char* command : {"scopes", "sweep", "explain", "ladder"}) {
    const CommandResult result =
        run_command({VGPU, "--", FENCE_SCOPE, command, "--device", "hardware"});
    CHECK(result.exit_code == 77);
    CHECK(result.err.starts_with("fence_scope: "));
  }
}
