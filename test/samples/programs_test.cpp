// The samples streams, many_streams and task_graph, as a user runs them.
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

using uptempo::test::CommandResult;
using uptempo::test::contains;
using uptempo::test::run_command;

namespace {

std::string output_of(const std::string& program) {
  const CommandResult result = run_command({UPTEMPO_VGPU_LAUNCHER, "--", program});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK(contains(result.out, "virtual GPU"));  // the source of its times
  CHECK(contains(result.out, "Verified: "));
  return result.out;
}

std::vector<std::smatch> matches(const std::string& text, const std::regex& pattern) {
  return {std::sregex_iterator(text.begin(), text.end(), pattern), {}};
}

}  // namespace

TEST_CASE("many_streams: the same packets with any number of idle streams") {
  const std::string out = output_of(MANY_STREAMS);
  const auto rows = matches(out, std::regex(" +(\\d+) +(\\d+) +(\\d+) +(\\S+)\n"));
  CAPTURE(out);
  REQUIRE(rows.size() == 5);
  const char* const idle_streams[] = {"0", "1", "8", "32", "64"};
  for (size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i][1] == idle_streams[i]);
    CHECK(std::stoul(rows[i][2]) > 0);
    CHECK(std::stoul(rows[i][3]) > 0);
    CHECK(rows[i][4] == "2");
  }
}

TEST_CASE("streams: each batch is uploaded, computed and downloaded in this order, on its stream") {
  const std::string out = output_of(STREAMS);
  // A step may be shorter than a column, and the next one is drawn over its end.
  const auto rows = matches(
      out, std::regex("  batch (\\d), stream (\\d) \\|(?=[.ukd]{58}\\|)\\.*u*k*d+\\.*\\|\n"));
  CAPTURE(out);
  REQUIRE(rows.size() == 16);
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t batch = i % 8, streams = i < 8 ? 1 : 4;
    CHECK(rows[i][1] == std::to_string(batch));
    CHECK(rows[i][2] == std::to_string(batch % streams));
  }
  CHECK(contains(out, "\n1 stream: "));
  CHECK(contains(out, "\n4 streams: "));
}

TEST_CASE("task_graph: the plan needs a barrier bit for each level, and no system fence within") {
  const std::string out = output_of(TASK_GRAPH);
  const auto rows = matches(
      out,
      std::regex("((?:planned|barrier everywhere|system everywhere) *( \\d+)( +\\d+)( +\\d+)) "));
  CAPTURE(out);
  REQUIRE(rows.size() == 3);
  const auto has = [](const std::smatch& row, const char* name, int system, int barriers,
                      int agent) {
    CHECK(row[1].str().starts_with(name));
    CHECK(std::stoi(row[2]) == system);
    CHECK(std::stoi(row[3]) == barriers);
    CHECK(std::stoi(row[4]) == agent);
  };
  // One creation, two advances, three joins: six levels. Each task but the last one is read by
  // another one, and each level but the first one acquires.
  has(rows[0], "planned", 2, 6, 30 + 5);
  has(rows[1], "barrier everywhere", 2, 31, 2 * 30);
  has(rows[2], "system everywhere", 2 * 31, 31, 0);
  CHECK(matches(out, std::regex("\npacket \\d+, ")).size() == 31);
  CHECK(contains(out, "packet 24, join 1 into 0: barrier bit: it touches what packet 17 touches"));
}
