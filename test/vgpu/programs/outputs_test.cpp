// When the launcher empties the files of --trace and --report.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
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

TEST_CASE("a file without a name is refused by the option's name", "[launcher]") {
  for (const std::string option : {"--trace", "--report", "--suppressions"})
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{option, ""}, {option + '='}}) {
      std::vector<std::string> arguments{"--check", "fences"};
      arguments.insert(arguments.end(), words.begin(), words.end());
      arguments.push_back("true");
      const CommandResult result = launch(arguments);
      CAPTURE(option, result.err);
      CHECK(result.exit_code == 2);
      CHECK(holds(result.err, option + ": the value is empty"));
    }
}

TEST_CASE("the launcher does not wait for a pipe's reader, nor end its input", "[launcher]") {
  const TemporaryDirectory directory;
  const std::string pipe = directory.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(launch({"--trace", pipe, "--", "true"}).exit_code == 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  // The program finds the same reader.
  CHECK(launch({"--trace", pipe, "--", "sh", "-c", "echo line >\"$0\"", pipe}).exit_code == 0);
  char text[10];
  CHECK(read(reader, text, sizeof text) == 5);
  close(reader);
}

TEST_CASE("a file that a program of another run writes is not emptied", "[launcher]") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("file"), ready = directory.file("ready"),
                    end = directory.file("end");
  for (const std::string& pipe : {ready, end}) REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  {
    test::RunningCommand first({UPTEMPO_VGPU_LAUNCHER, "--trace", file, "--", "sh", "-c",
                                "exec 3<>/dev/kfd; echo line >>$0; echo >$1; read line <$2", file,
                                ready, end});
    std::string none;
    CHECK(std::getline(std::ifstream(ready), none));
    const CommandResult second = launch({"--trace", file, "true"});
    CHECK(second.exit_code == 2);
    CHECK(holds(second.err, "--trace: a program of another run writes '" + file + "'"));
    CHECK(contents_of(file) == "line\n");
    std::ofstream(end) << '\n';
    CHECK(first.finish().exit_code == 0);
  }
  CHECK(launch({"--trace", file, "true"}).exit_code == 0);
  CHECK(contents_of(file).empty());
}

TEST_CASE("a file size limit below the device's memory is a sentence, and no signal",
          "[launcher]") {
  const CommandResult result =
      run_command({"sh", "-c", "ulimit -f 1; exec \"$@\" 2>&1 | cat", "sh", UPTEMPO_VGPU_LAUNCHER,
                   "--", "sh", "-c", "exec 3<>/dev/kfd"});
  CHECK(holds(result.out, "the device cannot be opened: "));
  CHECK(holds(result.out, "the file size limit (ulimit -f) allows "));
}

}  // namespace
}  // namespace uptempo::vgpu
