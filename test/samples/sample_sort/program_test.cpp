// sample_sort as a user runs it, with mpirun. Each rank is a process with a virtual GPU of its own.
#include <nlohmann/json.hpp>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/command.hpp"

using nlohmann::json;
using uptempo::test::Approx;
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

const Arguments kProgram{SAMPLE_SORT, "--device", "virtual"};

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

}  // namespace

TEST_CASE("four ranks sort, and report keys per second, overlap and the share of each phase") {
  const CommandResult result = sort({"--keys", "20000", "--iterations", "2", "--json", "-"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json report = json::parse(result.out);
  CHECK(report["verified"] == true);
  CHECK(report["virtual_gpu"] == true);
  CHECK(report["ranks"] == 4);
  CHECK(report["hosts"] == 1);
  CHECK(report["keys"] == 80000);
  CHECK(report["rounds"] == 3);
  CHECK(report["seconds_of_iterations"].size() == 2);
  CHECK(report["keys_per_second"].get<double>() == Approx(80000 / report["seconds"].get<double>()));
  CHECK(report["overlap"] >= 0.0);
  CHECK(report["overlap"] <= 1.0);
  uint64_t received = 0;
  for (const json& keys : report["received"]) received += keys.get<uint64_t>();
  CHECK(received == 80000);
  double shares = 0;
  for (const json& phase : report["phases"]) shares += phase["share"].get<double>();
  CHECK(shares == Approx(1).epsilon(0.02));  // each point of time has one phase
}

TEST_CASE("every input is sorted, also if ranks begin with none, one or twice the mean") {
  for (const char* distribution : {"uniform", "sorted", "reverse", "equal", "skewed"}) {
    CAPTURE(distribution);
    const CommandResult result = sort({"--keys", "9001", "--uneven", "--iterations", "1",
                                       "--distribution", distribution, "--json", "-"});
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    const json report = json::parse(result.out);
    CHECK(report["verified"] == true);
    CHECK(report["uneven"] == true);
    CHECK(report["keys"] == 36004);
    CHECK(report["fullest_rank"] < 1.25);
  }
}

TEST_CASE("fewer keys than ranks") {
  const CommandResult result = sort({"--total", "3", "--iterations", "1"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.starts_with("Device: virtual GPU, "));
  CHECK(contains(result.out, "times are the virtual GPU's\n4 ranks on 1 host, one GPU each with "));
  CHECK(contains(result.out, "\n3 uniform keys, even; 1 round of up to 1 keys per rank\n"));
  CHECK(contains(result.out, "Verified: the ranks' keys are in order"));
}

TEST_CASE("one rank needs no mpirun") {
  const CommandResult result = run(kProgram + Arguments{"--keys", "3000", "--json", "-"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(json::parse(result.out)["verified"] == true);
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

TEST_CASE("if one rank has no device, all ranks end with 77, and one names it") {
  const CommandResult result = with_last(4, SAMPLE_SORT " --device 7", kProgram);
  CAPTURE(result.err);
  CHECK(result.exit_code == 77);
  CHECK(contains(result.err, "sample_sort: rank 3 on "));
  CHECK(contains(result.err, " has no device: "));
  CHECK_FALSE(contains(result.out, "Verified"));
}

TEST_CASE("a wrong command line ends with 2") {
  const auto refused = [](const CommandResult& result, const char* reason) {
    CAPTURE(result.err, reason);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, reason));
  };
  const auto alone = [](const Arguments& arguments) { return run(kProgram + arguments); };
  refused(alone({"--sideways"}), "sample_sort: ");
  refused(alone({"--fail-rank", "4"}),
          "sample_sort: --fail-rank: there is no rank 4 among 1 ranks");
  refused(alone({"--total", "1099511627776", "--rounds", "2"}), "use more --rounds");
  refused(
      with_last(2, SAMPLE_SORT " --device virtual --seed 2", kProgram + Arguments{"--seed", "1"}),
      "sample_sort: the ranks were given different options");
}
