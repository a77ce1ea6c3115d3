// When the launcher empties the files of --trace and --report.
#include <sys/stat.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "run.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

namespace fs = std::filesystem;
using uptempo::test::contents_of;
using uptempo::test::TemporaryDirectory;

TEST_CASE("a call that is refused leaves its outputs as they were", "[launcher]") {
  const TemporaryDirectory directory;
  const std::string kept = directory.file("kept"), fresh = directory.file("new");
  std::ofstream(kept) << "kept";
  const std::vector<std::vector<std::string>> refused{
      {"--no-such-option", "true"},
      {"--seed", "x", "true"},
      {"--check", "fences", "--incoherent", "1", "true"},
      {"--gpus", "2", "--bar", "lazy", "1", "true"},
      {"--sockets", "9", "true"},
      {},
      {"--", "no-such-program-anywhere"},
      {"--", "/etc/passwd"},
      {"--check", "fences", "--report", "/no/such/folder/report", "true"}};
  for (const char* option : {"--trace", "--report"}) {
    for (const std::string& file : {kept, fresh}) {
      for (std::vector<std::string> arguments : refused) {
        const bool has_report = std::ranges::find(arguments, "--report") != arguments.end();
        if (has_report && option == std::string("--report")) continue;
        arguments.insert(arguments.begin(), {option, file});
        const CommandResult result = launch(arguments);
        CAPTURE(arguments, result.err);
        CHECK(result.exit_code != 0);
        CHECK(contents_of(kept) == "kept");
        CHECK_FALSE(fs::exists(fresh));
      }
    }
  }
  CHECK(launch({"--trace", kept, "--check", "fences", "--report", fresh, "true"}).exit_code == 0);
  CHECK(contents_of(kept).empty());
  CHECK(fs::exists(fresh));
}

TEST_CASE("an output is neither the program, nor its rules, nor the other output", "[launcher]") {
  const TemporaryDirectory directory;
  const std::string program = directory.file("program"), link = directory.file("link"),
                    rules = directory.file("rules"), file = directory.file("file"),
                    unmade = directory.file("unmade");
  std::ofstream(program) << "#!/bin/sh\nexit 0\n";
  REQUIRE(chmod(program.c_str(), 0755) == 0);
  fs::create_hard_link(program, link);
  std::ofstream(rules) << "# none\n";
  std::ofstream(file) << "kept";
  struct Case {
    std::vector<std::string> arguments;
    const char* says;
  };
  for (const Case& each :
       {Case{{"--trace", program}, "is the program"}, Case{{"--trace", link}, "is the program"},
        Case{{"--check", "fences", "--report", program}, "is the program"},
        Case{{"--check", "fences", "--suppressions", rules, "--report", rules},
             "is the file of --suppressions"},
        Case{{"--check", "fences", "--trace", file, "--report", file}, "is the file of --"},
        Case{{"--check", "fences", "--trace", unmade, "--report", unmade}, "is the file of --"},
        Case{{"--check", "fences", "--trace", unmade + ".%p", "--report", unmade + ".%p"},
             "is the file of --"}}) {
    std::vector<std::string> arguments = each.arguments;
    arguments.insert(arguments.end(), {"--", program});
    const CommandResult result = launch(arguments);
    CAPTURE(arguments, result.err);
    CHECK(result.exit_code == 2);
    CHECK(holds(result.err, each.says));
    CHECK(contents_of(program) == "#!/bin/sh\nexit 0\n");
    CHECK(contents_of(rules) == "# none\n");
    CHECK(contents_of(file) == "kept");
    CHECK_FALSE(fs::exists(unmade));
  }
  // The other output may be that of a launcher around this one.
  const CommandResult nested =
      launch({"--trace", directory.file("./file"), "--", UPTEMPO_VGPU_LAUNCHER, "--check", "fences",
              "--report", file, "--", program});
  CHECK(nested.exit_code == 2);
  CHECK(holds(nested.err, "is the file of --trace"));
  // Lines of both may go to a device.
  CHECK(
      launch({"--trace", "/dev/null", "--check", "fences", "--report", "/dev/null", "--", program})
          .exit_code == 0);
}

}  // namespace
}  // namespace uptempo::vgpu
