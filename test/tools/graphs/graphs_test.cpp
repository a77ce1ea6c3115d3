// Runs uptempo-graphs as a user does: unchanged HIP programs give the same output under it, and the
// report says what it did.
#include <elf.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

using namespace uptempo;

namespace {

using test::CommandResult;
using test::contains;

CommandResult run(std::vector<std::string> arguments) {
  return test::run_command(std::move(arguments));
}

CommandResult plain(const std::string& program) { return run({LAUNCHER, "--", program}); }

// With the report as JSON.
struct Taken {
  CommandResult result;
  nlohmann::json report;

  // Launches that HIP kept for a reason that contains the text.
  uint64_t left(const std::string& reason) const {
    uint64_t launches = 0;
    for (const auto& each : report.at("left"))
      if (each.at("reason").get<std::string>().find(reason) != std::string::npos)
        launches += each.at("launches").get<uint64_t>();
    return launches;
  }
  uint64_t left() const { return left(""); }
  uint64_t taken(const char* what) const { return report.at("taken").at(what).get<uint64_t>(); }
};

Taken taken(const std::string& program, const std::vector<std::string>& options = {},
            const std::vector<std::string>& arguments_of_program = {},
            std::vector<std::string> arguments = {LAUNCHER}) {
  const test::TemporaryDirectory directory;
  const std::string file = directory.file("report.json");
  arguments.insert(arguments.end(), {"--", GRAPHS, "--json", file});
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", program});
  arguments.insert(arguments.end(), arguments_of_program.begin(), arguments_of_program.end());
  CommandResult result = run(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return {.result = std::move(result), .report = nlohmann::json::parse(test::contents_of(file))};
}

}  // namespace

TEST_CASE("a program with every kind of copy gives the same results") {
  const Taken under = taken(COPIES, {"--at-least", "1"});
  INFO(under.result.err);
  const std::string alone = plain(COPIES).out;
  CHECK(under.result.out == alone);
  // HIP keeps two launches if it captures the call.
  const auto left = [&](const std::string& call, const char* name) -> uint64_t {
    const uint64_t launches = under.left("HIP does not describe the node of a captured " + call);
    CHECK(launches == (contains(alone, std::string(name) + ": 2 nodes") ? 2 : 0));
    return launches;
  };
  const uint64_t undescribed =
      left("hipMemcpyPeerAsync", "peer copy") + left("hipMemset3DAsync", "fill of slices");
  CHECK(under.left() == undescribed);
  // added 2 + 2, changed 2 + 2, captured 3, nested 4 * 2, removed 2, undescribed 2 * 2
  CHECK(under.taken("launches") == 25 - undescribed);
}

TEST_CASE("an engine's captured step gives the same results, updated in either way") {
  const Taken under = taken(ENGINE, {"--at-least", "20"});
  INFO(under.result.err);
  CHECK(under.result.out == plain(ENGINE).out);
  CHECK(under.left() == 0);
  CHECK(under.taken("launches") == 12 + 12 + 26);
  CHECK(under.taken("nodes") == 24 * 38 + 26 * 20);
  // one graph in each step but the first, and 12 kernels in each of 12 steps
  CHECK(under.taken("updates") == 11 + 12 * 12);
}

TEST_CASE("graphs of a card's second partition run on it") {
  const Taken under =
      taken(ENGINE, {"--at-least", "20"}, {},
            {"env", "HIP_VISIBLE_DEVICES=1", LAUNCHER, "--gpus", "2", "--partitions", "own-id"});
  INFO(under.result.err);
  CHECK(under.result.out == plain(ENGINE).out);
  CHECK(under.left() == 0);
  CHECK(under.taken("launches") == 12 + 12 + 26);
}

TEST_CASE("destroyed graphs, clones, streams and threads give the same results") {
  const Taken under = taken(LIFETIMES, {"--at-least", "1"}, {"daring"});
  INFO(under.result.err);
  CHECK(under.result.out == plain(LIFETIMES).out);
  CHECK(under.left("host node") == 3);
  CHECK(under.left() == 3);
  // destroyed 10, several 5, streams 18, parallel 30, threads 64, errors 4
  CHECK(under.taken("launches") == 131);
}

TEST_CASE("graphs below the measured break-even stay with HIP") {
  const Taken under = taken(ENGINE);
  INFO(under.result.err);
  CHECK(under.result.out == plain(ENGINE).out);
  CHECK(under.left("fewer than 48 nodes") == 50);
  CHECK(under.taken("launches") == 0);
}

TEST_CASE("graphs with fewer nodes than the limit stay with HIP") {
  const Taken under = taken(ENGINE, {"--at-least", "21"});
  INFO(under.result.err);
  CHECK(under.result.out == plain(ENGINE).out);
  CHECK(under.left("fewer than 21 nodes") == 26);
  CHECK(under.taken("launches") == 24);
  CHECK(under.result.err.find("HIP kept 1 graph, 26 launches and 520 nodes: fewer than 21 nodes "
                              "(--at-least)") != std::string::npos);
}

TEST_CASE("a program that looks functions up by dlsym is taken over") {
  const Taken under = taken(LOOKUPS, {"--at-least", "1"});
  INFO(under.result.err);
  CHECK(under.result.out == plain(LOOKUPS).out);
  CHECK(under.taken("launches") == 1);
  CHECK(under.left() == 0);
  CHECK(under.report.at("unreachable").empty());
}

TEST_CASE("modules whose bytes are freed, and nodes of the driver interface, are taken over") {
  const Taken under = taken(MODULES, {"--at-least", "1"});
  INFO(under.result.err);
  const std::string alone = plain(MODULES).out;
  CHECK(under.result.out == alone);
  CHECK(contains(alone, "equal names: 10 8 6\nequal names, changed: 22 14 12\n"));
  // Where HIP has them. It keeps the copy between host memory.
  const bool has_driver_nodes = contains(alone, "driver");
  CHECK(under.left("hipDrvGraphAddMemcpyNode: a copy with an array, or without device memory") ==
        (has_driver_nodes ? 2 : 0));
  CHECK(under.left() == (has_driver_nodes ? 2 : 0));
  // module 2, equal names 2 + 2, next module 2, driver 2 + 2 + 2
  CHECK(under.taken("launches") == (has_driver_nodes ? 14 : 8));
}

TEST_CASE("the times of launches, instantiations and imports are reported by numbers of nodes") {
  const Taken under = taken(ENGINE, {"--at-least", "21", "--times"});
  INFO(under.result.err);
  CHECK(under.result.out == plain(ENGINE).out);
  REQUIRE(under.report.at("times").size() == 2);
  const nlohmann::json& small = under.report.at("times")[0];
  CHECK(small.at("nodes") == 20);
  CHECK(small.at("launch_by_hip").at("calls") == 26);
  CHECK_FALSE(small.contains("launch_by_uptempo"));
  const nlohmann::json& large = under.report.at("times")[1];
  CHECK(large.at("nodes") == 38);
  CHECK(large.at("launch_by_uptempo").at("calls") == 24);
  CHECK(large.at("launch_by_uptempo").at("microseconds").get<double>() > 0);
  CHECK(large.at("instantiation").at("calls") == large.at("import").at("calls"));
  CHECK(contains(under.result.err, "CPU time of a graph of 38 nodes: launched by Uptempo in "));
  CHECK_FALSE(taken(ENGINE).report.contains("times"));
}

TEST_CASE("a program that calls another libamdhip64 gives the same results and is named") {
  const test::TemporaryDirectory directory;
  const std::string copy = directory.file("libamdhip64.so");
  std::filesystem::copy_file(HIP_LIBRARY, copy);
  const Taken under = taken(LOOKUPS, {"--at-least", "1"}, {copy});
  INFO(under.result.err);
  CHECK(under.result.out == plain(LOOKUPS).out);
  CHECK(under.taken("launches") == 0);
  const std::string sentence =
      std::string(LOOKUPS) +
      " looked up hipGraphLaunch in another libamdhip64: calls by that pointer were out of "
      "reach";
  CHECK(under.report.at("unreachable").dump().find(sentence) != std::string::npos);
  CHECK(under.result.err.find("uptempo-graphs: " + sentence) != std::string::npos);
}

#ifdef DEEP_BINDING  // not with sanitizers
TEST_CASE("a library opened with RTLD_DEEPBIND is taken over, and the flag is reported") {
  const Taken under = taken(DEEP_BINDING, {"--at-least", "1"});
  INFO(under.result.err);
  CHECK(under.result.out == plain(DEEP_BINDING).out);
  CHECK(under.taken("launches") == 2);  // by a call, and by a function that dlsym() found
  CHECK(under.left() == 0);
  CHECK(under.report.at("unreachable").empty());
  CHECK(contains(under.result.err, "is opened without RTLD_DEEPBIND"));
}

TEST_CASE("the library of uptempo-graphs itself drops RTLD_DEEPBIND") {
  // Without a GPU, and without the virtual GPU, whose library does so first.
  const std::string library =
      (std::filesystem::path(GRAPHS).parent_path() / "libuptempo-graphs.so").string();
  const CommandResult deep =
      test::run_command({DEEP_BINDING}, {.environment = {"LD_PRELOAD=" + library}});
  INFO(deep.err);
  CHECK(contains(deep.err, "uptempo-graphs: "));
  CHECK(contains(deep.err,
                 " is opened without RTLD_DEEPBIND, which would hide the functions of "
                 "preloaded libraries\n"));
  const CommandResult apart =
      test::run_command({DEEP_BINDING, "namespace"}, {.environment = {"LD_PRELOAD=" + library}});
  CHECK(contains(apart.err,
                 " is opened in another namespace, which hides the functions of "
                 "preloaded libraries\n"));
}
#endif

TEST_CASE("a program that looks functions up by hipGetProcAddress is taken over") {
  const Taken under = taken(LOOKUPS, {"--at-least", "1"}, {"by_hip"});
  INFO(under.result.err);
  CHECK(under.result.out == plain(LOOKUPS).out);
  CHECK(under.taken("launches") == 1);
  CHECK(under.left() == 0);
}

TEST_CASE("a program without graphs keeps its output and exit code, and the report says so") {
  const CommandResult alone = run({GRAPHS, "--at-least", "x"});
  const CommandResult result = run({LAUNCHER, "--", GRAPHS, "--", GRAPHS, "--at-least", "x"});
  CHECK(result.exit_code == alone.exit_code);
  CHECK(result.out == alone.out);
  CHECK(result.err ==
        alone.err + "uptempo-graphs: the program launched no HIP graph that this library saw\n");
}

TEST_CASE("the tool starts the virtual GPU itself") {
  const CommandResult result = run({GRAPHS, "--device", "virtual", "--", LIFETIMES});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out == plain(LIFETIMES).out);
}

TEST_CASE("usage errors are one sentence") {
  const test::TemporaryDirectory directory;
  const std::string file = directory.file("static");
  Elf64_Ehdr header{};
  std::copy_n(ELFMAG, SELFMAG, header.e_ident);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(&header), sizeof header);
  const std::vector<std::vector<std::string>> usages = {{GRAPHS},
                                                        {GRAPHS, "--"},
                                                        {GRAPHS, "--", "/no/such/program"},
                                                        {GRAPHS, "--", "no_such_program"},
                                                        {GRAPHS, "--", file},
                                                        {GRAPHS, "--at-least", "x", "--", "true"},
                                                        {GRAPHS, "--device", "x", "--", "true"}};
  for (const std::vector<std::string>& usage : usages) {
    const CommandResult result = run(usage);
    INFO(usage.back() << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.starts_with("uptempo-graphs: "));
    CHECK(result.err.find('\n') == result.err.size() - 1);
  }
  CHECK(run({GRAPHS, "--", file}).err.find("statically linked") != std::string::npos);
}
