// Outputs that cannot be written, and the width of tables, of every program that users run.
#include <algorithm>
#include <map>
#include <set>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "test/tools/programs/programs.hpp"

using namespace uptempo::test;

namespace {

using Words = std::vector<std::string>;

// Arguments with which a program does little and prints everything that it prints.
const std::map<std::string, Words> kBriefRuns{
    {"hardware_check", {"--device", "virtual", "--only", "profiling"}},
    {"hardware_check_hip", {"--device", "virtual"}},
    {"aql_dump",
     {"packet", "00010d02", "00000100", "0", "200", "1", "1", "0", "0", "1000", "0", "2000", "0",
      "0", "0", "0", "0"}},
    {"contention_bench", {"--threads", "1", "2", "--batch", "8", "--rounds", "20"}},
    {"dispatch_bench",
     {"--device", "virtual", "--peer", "none", "--rounds", "20", "--batch", "1", "8", "--only",
      "floor", "--no-counts"}},
    {"fence_scope",
     {"scopes", "--device", "virtual", "--workload", "chain", "--kernels", "3", "--bytes", "4K",
      "--rounds", "6"}},
    {"sort_vs_pocl", {"--length", "64", "--pairs", "20"}},
    {"lint_bench",
     {"--device", "virtual", "--rounds", "2", "--launches", "10", "--turns", "2", "--bar", "1e6"}},
    {"stream_bench", {"--device", "virtual", "--rounds", "6"}},
    {"vgpu_bench", {"baseline"}},
    {"vgpu_consume_bench", {"--rounds", "6"}},
    {"wait_bench", {"--device", "virtual", "--rounds", "6"}}};
// They print nothing but help: the output is that of the program that they run.
const std::set<std::string> kLaunchers{"uptempo-vgpu", "uptempo-graphs"};
// Their tables need half a minute or more, on a busy machine minutes. Their own tests run them.
const std::set<std::string> kSlow{"vgpu_consume_bench", "vgpu_bench", "dispatch_bench"};

// Their brief runs print tables to standard output.
const std::set<std::string> kTables{"contention_bench", "sort_vs_pocl", "stream_bench",
                                    "wait_bench"};

bool says_full(const std::string& error, const std::string& what) {
  return contains(error, "cannot write " + what + ": No space left on device");
}

}  // namespace

TEST_CASE("every program has a brief run in this test") {
  for (const Program& program : programs()) {
    CAPTURE(program.name);
    CHECK(kBriefRuns.contains(program.name) != kLaunchers.contains(program.name));
  }
}

TEST_CASE("help and version on a full disk are errors") {
  for (const Program& program : programs()) {
    for (const char* option : {"--help", "--version"}) {
      CAPTURE(program.name, option);
      const CommandResult result = run_redirected({program.file, option}, ">/dev/full");
      CHECK(result.exit_code == 1);
      CHECK(result.err.starts_with(program.name + ": "));
      CHECK(says_full(result.err, "standard output"));
    }
  }
}

TEST_CASE("an output file in no folder is refused at once") {
  size_t tried = 0;
  const std::string nowhere = "/no/such/folder/out";
  // Inputs.
  const std::set<std::string> inputs{"--program", "--replay", "--compare", "--suppressions"};
  for (const Invocation& each : invocations()) {
    for (const DeclaredOption& option : options_in(run_command(each.with({"--help"})).out)) {
      if (!option.value.starts_with("FILE") || inputs.contains(option.name)) continue;
      CAPTURE(each.name(), option.name);
      Words words{option.name, nowhere};
      // It opens its outputs last: only a run empties them.
      if (each.name() == "uptempo-vgpu") words.insert(words.end(), {"--check", "fences", "true"});
      const CommandResult result = run_command(each.with(words));
      CHECK(result.exit_code == 2);
      CHECK(result.out.empty());
      CHECK(contains(result.err, "cannot write '" + nowhere + "': No such file or directory"));
      ++tried;
    }
  }
  CHECK(tried > 30);
}

TEST_CASE("a file without a name is refused at once, by the option's name") {
  size_t tried = 0;
  for (const Invocation& each : invocations()) {
    for (const DeclaredOption& option : options_in(run_command(each.with({"--help"})).out)) {
      if (!option.value.starts_with("FILE")) continue;
      CAPTURE(each.name(), option.name);
      const CommandResult result = run_command(each.with({option.name, ""}));
      CHECK(result.exit_code == 2);
      CHECK(result.out.empty());
      CHECK(contains(result.err, option.name + ": the value is empty"));
      ++tried;
    }
  }
  CHECK(tried > 30);
}

TEST_CASE("a report on a full disk is an error, and tables fit 80 columns") {
  for (const Program& program : programs()) {
    const auto brief = kBriefRuns.find(program.name);
    if (brief == kBriefRuns.end() || kSlow.contains(program.name)) continue;
    CAPTURE(program.name);
    Words words{program.file};
    words.insert(words.end(), brief->second.begin(), brief->second.end());
    const CommandResult full = run_redirected(words, ">/dev/full");
    if (full.exit_code == 77) continue;  // this machine lacks a peer
    CHECK(full.exit_code == 1);
    CHECK(says_full(full.err, "standard output"));

    const bool has_json = contains(run_command({program.file, "--help"}).out, "--json") ||
                          program.name == "fence_scope";
    if (has_json) words.insert(words.end(), {"--json", "/dev/full"});
    const CommandResult result = run_command(words);
    CAPTURE(result.err);
    CHECK(result.exit_code == (has_json ? 1 : 0));
    CHECK(says_full(result.err, "'/dev/full'") == has_json);
    // fence_scope writes files first.
    CHECK(result.out.empty() == (program.name == "fence_scope"));
    const std::string widest = widest_table_line(result.out);
    CAPTURE(widest);
    CHECK(widest.size() <= 80);
    CHECK(widest.empty() != kTables.contains(program.name));
  }
}

TEST_CASE("the tables of fence_scope fit 80 columns") {
  for (const Words& arguments :
       {kBriefRuns.at("fence_scope"),
        Words{"explain", "--device", "virtual", "--workload", "chain", "--kernels", "3", "--rounds",
              "6", "--timing", "each"},
        // The smallest working sets that hold two of the sweep's kernels.
        Words{"sweep", "--device", "virtual", "--kernels", "2,3", "--bytes", "4K", "--working-set",
              "0.015625", "--rounds", "2"},
        Words{"ladder", "--device", "virtual", "--length", "64", "--iterations", "2"},
        Words{"litmus", "--device", "virtual", "--iterations", "1"}}) {
    Words words{FENCE_SCOPE};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const CommandResult result = run_command(words);
    CAPTURE(arguments.front(), result.err);
    CHECK(result.exit_code == 0);
    const std::string widest = widest_table_line(result.out);
    CAPTURE(widest);
    CHECK_FALSE(widest.empty());
    CHECK(widest.size() <= 80);
  }
}

TEST_CASE("a chart or a page on a full disk is an error that names the file") {
  for (const Program& program : programs()) {
    if (program.name != "fence_scope") continue;
    for (const char* option : {"--csv", "--html", "--trace"}) {
      CAPTURE(option);
      Words words{program.file};
      const Words& brief = kBriefRuns.at(program.name);
      words.insert(words.end(), brief.begin(), brief.end());
      words.insert(words.end(), {option, "/dev/full"});
      const CommandResult result = run_command(words);
      CHECK(result.exit_code == 1);
      CHECK(says_full(result.err, "'/dev/full'"));
    }
  }
}
