#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "run.hpp"
#include "test/support/catch.hpp"
#include "test/support/text.hpp"

namespace uptempo::vgpu {
namespace {

// Returns the reports of a program's processes, one string for each, without the summary at its end.
// Each process with a summary also says on stderr that nothing was found.
std::multiset<std::string> reports(const std::vector<std::string>& program, int status) {
  const uptempo::test::TemporaryDirectory directory;
  std::vector<std::string> arguments{"--check", "fences,advice", "--report",
                                     directory.file("%p.json"), "--"};
  arguments.insert(arguments.end(), program.begin(), program.end());
  const CommandResult finished = launch(arguments);
  CHECK(finished.exit_code == status);
  std::multiset<std::string> result;
  size_t summaries = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory.file(""))) {
    std::string report = uptempo::test::contents_of(file.path());
    if (const size_t summary = report.find(R"({"summary":)"); summary != std::string::npos) {
      ++summaries;
      CHECK(report.find('\n', summary) == report.size() - 1);
      CHECK(report.find(R"("findings":0,)", summary) != std::string::npos);
      report.resize(summary);
    }
    result.insert(report);
  }
  CAPTURE(finished.err);
  CHECK(uptempo::test::count(finished.err, "\n") == summaries);
  CHECK(uptempo::test::count(finished.err, "uptempo-vgpu: checked ") == summaries);
  CHECK(uptempo::test::count(finished.err, ": no findings in ") == summaries);
  return result;
}

TEST_CASE("without the launcher there is no virtual device", "[process]") {
  const CommandResult finished = run_command({"cat", "/sys/class/kfd/kfd/topology/nodes/1/name"});
  CHECK(finished.exit_code != 0);
}

TEST_CASE("a program that closes all descriptors first can still open the device", "[process]") {
  CHECK(launch({"--", UPTEMPO_VGPU_PROBE, "close-all"}).exit_code == 0);
}

TEST_CASE("ROCr may be loaded late, started three times and unloaded", "[process]") {
  const CommandResult finished = launch({"--", UPTEMPO_VGPU_PROBE, "rocr"});
  CAPTURE(finished.err);
  CHECK(finished.exit_code == 0);
}

TEST_CASE("a program with busy queues ends as on hardware, in every way of ending", "[process]") {
  struct Case {
    const char* how;
    int status;
  };
  for (const Case& each : {Case{"return", 3}, Case{"exit", 3}, Case{"_exit", 3},
                           Case{"quick_exit", 3}, Case{"exec", 3}, Case{"abort", 128 + 6},
                           Case{"segfault", 128 + 11}, Case{"terminate", 128 + 15}}) {
    const CommandResult finished = launch({"--", UPTEMPO_VGPU_ENDING, each.how});
    CAPTURE(each.how, finished.err);
    CHECK(finished.exit_code == each.status);
  }
}

TEST_CASE("advice is written when a program ends by itself, for each of its processes",
          "[process]") {
  const auto advice = [](const char* part) {
    return std::string(R"({"advice":")") + part +
           R"(","queue":1,"kernel":"barrier packet","header":{"barrier":true,"acquire":"system","release":"system"},"to":")" +
           (std::string(part) == "barrier" ? "clear" : "none") +
           R"(","packets":[0],"count":1,"of":1,"saved_ns":0,"basis":"estimate","device":"gfx90a"})" +
           '\n';
  };
  const std::string all = advice("barrier") + advice("acquire") + advice("release");
  for (const char* how : {"return", "exit"}) {
    CAPTURE(how);
    CHECK(reports({UPTEMPO_VGPU_ENDING, how}, 3) == std::multiset<std::string>{all});
  }
  CHECK(reports({UPTEMPO_VGPU_ENDING, "fork"}, 3) == std::multiset<std::string>{all, all});
  for (const char* how : {"_exit", "quick_exit"}) {
    CAPTURE(how);
    CHECK(reports({UPTEMPO_VGPU_ENDING, how}, 3) == std::multiset<std::string>{""});
  }
}

TEST_CASE("a program without packets gets no advice", "[process]") {
  CHECK(reports({UPTEMPO_VGPU_PROBE, "rocr"}, 0) == std::multiset<std::string>{""});
  CHECK(reports({"true"}, 0) == std::multiset<std::string>{});
}

TEST_CASE("ordinary programs run unchanged", "[process]") {
  CHECK(launch({"--", "ls", "-l", "/dev/null", "/sys/devices/virtual/kfd"}).out.find("/dev/null") !=
        std::string::npos);
  CHECK(launch({"--", "cat", "/proc/self/comm"}).out == "cat\n");
  CHECK(launch({"--", "stat", "-c", "%F", "/dev/kfd"}).out == "character special file\n");
}

TEST_CASE("programs that list directories find virtual directories", "[process]") {
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes";
  CHECK(launch({"--", "find", nodes, "-name", "gpu_id"}).out ==
        nodes + "/0/gpu_id\n" + nodes + "/1/gpu_id\n");
  CHECK(launch({"--", "grep", "-rl", "simd_count", nodes}).out ==
        nodes + "/0/properties\n" + nodes + "/1/properties\n");
  CHECK(launch({"--", "bash", "-c", "echo /dev/dri/*"}).out == "/dev/dri/renderD128\n");
  const CommandResult listed = launch({"--", "ls", "-lR", nodes});
  CHECK(listed.exit_code == 0);
  CHECK(listed.err.empty());
}

}  // namespace
}  // namespace uptempo::vgpu
