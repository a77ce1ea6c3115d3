// sample_sort as a user runs it, with mpirun. Each rank is a process with a virtual GPU of its own.
#include <regex>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

using uptempo::test::CommandResult;
using uptempo::test::contains;
using uptempo::test::run_command;

namespace {

using Arguments = std::vector<std::string>;

Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Ranks may be root's and may outnumber the cores. Open MPI 4 reads the names that begin with OMPI,
// and Open MPI 5 those that begin with PRTE; other implementations ignore them. With sanitizers:
// Open MPI leaves memory allocated at its end, and has closed the libraries by whose names a
// suppression could find it.
CommandResult run(const Arguments& arguments) {
  return run_command(
      arguments,
      {.environment = {
           "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
           "OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_MCA_hwloc_base_binding_policy=none",
           "PRTE_ALLOW_RUN_AS_ROOT=1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
           "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
           "PRTE_MCA_hwloc_default_binding_policy=none", "ASAN_OPTIONS=detect_leaks=0"}});
}

CommandResult mpirun(const Arguments& arguments) { return run(Arguments{MPIRUN} + arguments); }

const Arguments kProgram{UPTEMPO_VGPU_LAUNCHER, "--workers", "1", "--", SAMPLE_SORT};

// Runs `command` on that many ranks, and the shell's command `last` on the last one. mpirun of Open
// MPI 5.0.7 (Debian 13) crashes with two programs: "mpirun -n 1 true : -n 1 true".
CommandResult with_last(int ranks, const std::string& last, const Arguments& command) {
  const std::string is_last = "[ \"$OMPI_COMM_WORLD_RANK\" = " + std::to_string(ranks - 1) + " ]";
  const std::string shell = is_last + " || exec \"$@\"; exec " + last;
  return mpirun(Arguments{"-n", std::to_string(ranks), "sh", "-c", shell, "sh"} + command);
}

CommandResult sort(const Arguments& arguments) {
  return mpirun(Arguments{"-n", "4"} + kProgram + arguments);
}

// The first group of the first match.
double number_in(const std::string& text, const std::string& pattern) {
  std::smatch found;
  REQUIRE(std::regex_search(text, found, std::regex(pattern)));
  return std::stod(found[1]);
}

}  // namespace

TEST_CASE("four ranks sort, and report keys per second, overlap and the share of each phase") {
  const CommandResult result = sort({"--keys", "20000", "--iterations", "2"});
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.starts_with("gfx90a: 4 ranks on 1 host, one GPU each; "));
  CHECK(contains(result.out, "\n80000 uniform keys, even; 3 rounds of up to 8192 keys per rank\n"));
  CHECK(contains(result.out, ", median of 2 iterations, virtual GPU time\n"));
  CHECK(number_in(result.out, "\n(\\S+) million keys/s: ") > 0);
  CHECK(number_in(result.out, "busy in (\\d+) % of") <= 100);
  CHECK(contains(result.out, "\nVerified: the ranks' keys are in order"));
  double shares = 0;
  for (const char* phase : {"sample", "sort", "exchange", "merge"})
    shares += number_in(result.out, std::string("\n") + phase + " .* (\\S+) %\n");
  CHECK(shares == uptempo::test::Approx(100).epsilon(0.02));  // each point of time has one phase
}

TEST_CASE("every input is sorted, also if ranks begin with none, one or twice the mean") {
  for (const char* distribution : {"uniform", "sorted", "reverse", "equal", "skewed"}) {
    CAPTURE(distribution);
    const CommandResult result =
        sort({"--keys", "9001", "--uneven", "--iterations", "1", "--distribution", distribution});
    CAPTURE(result.out, result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(contains(result.out, std::string("\n36004 ") + distribution + " keys, uneven; "));
    CHECK(contains(result.out, "\nVerified: "));
    CHECK(number_in(result.out, "the fullest rank received (\\S+) times") < 1.25);
  }
}

TEST_CASE("fewer keys than ranks") {
  const CommandResult result = sort({"--total", "3", "--iterations", "1"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(contains(result.out, "\n3 uniform keys, even; 1 round of up to 1 keys per rank\n"));
  CHECK(contains(result.out, "\nVerified: "));
}

TEST_CASE("one rank needs no mpirun") {
  const CommandResult result = run(kProgram + Arguments{"--keys", "3000"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(contains(result.out, "\nVerified: "));
}

TEST_CASE("all ranks use the options of the first one") {
  const CommandResult result = with_last(2, UPTEMPO_VGPU_LAUNCHER " -- " SAMPLE_SORT " --keys 7",
                                         kProgram + Arguments{"--keys", "3000"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(contains(result.out, "\n6000 uniform keys, "));
  CHECK(contains(result.out, "\nVerified: "));
}

TEST_CASE("a device that fails ends all ranks, with one sentence that names rank and host") {
  const CommandResult result = sort({"--keys", "20000", "--fail-rank", "2"});
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "sample_sort: rank 2 of 4 on "));
  CHECK(contains(result.err, " failed: "));
  CHECK(contains(result.err, "the GPU accessed address 0x0"));
  CHECK_FALSE(contains(result.out, "Verified"));
}

TEST_CASE("a rank that dies ends all ranks") {
  const CommandResult result = with_last(4, "sh -c 'kill -9 $$'", kProgram);
  CHECK(result.exit_code != 0);
  CHECK_FALSE(contains(result.out, "Verified"));
}

TEST_CASE("a rank without a device ends all ranks, and is named") {
  const CommandResult result = with_last(
      4, UPTEMPO_VGPU_LAUNCHER " --inject 'open errno=ENOENT count=all' -- " SAMPLE_SORT, kProgram);
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "sample_sort: rank 3 of 4 on "));
  CHECK(contains(result.err, "run under uptempo-vgpu"));
  CHECK_FALSE(contains(result.out, "Verified"));
}

TEST_CASE("a wrong command line is refused") {
  const auto refused = [](const Arguments& arguments, const char* reason) {
    const CommandResult result = run(kProgram + arguments);
    CAPTURE(result.err, reason);
    CHECK(result.exit_code != 0);
    CHECK(result.out.empty());
    CHECK(contains(result.err, reason));
  };
  refused({"--sideways"}, "--sideways");
  refused({"--distribution", "sideways"}, "sideways");
  refused({"--keys", "5", "--total", "6"}, "excludes");
  refused({"--fail-rank", "4"}, "sample_sort: --fail-rank: there is no rank 4 among 1 ranks");
  refused({"--total", "1099511627776", "--rounds", "2"}, "use more --rounds");
}
