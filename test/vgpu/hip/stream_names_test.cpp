// Findings in HIP programs name the streams that the program holds.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "programs/run.hpp"
#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/support/temporary_directory.hpp"

namespace uptempo::vgpu {
namespace {

using nlohmann::json;
using uptempo::test::contains;

struct Checked {
  std::string produced_in, used;  // as the program prints them
  std::string text;               // on stderr
  std::vector<json> findings;     // only from a report
};

Checked check(const std::string& how, std::vector<std::string> options,
              const std::vector<std::string>& environment = {}) {
  options.insert(options.end(), {"--", UPTEMPO_VGPU_HIP_STREAM_NAMES, how});
  const CommandResult run = launch(options, environment);
  CAPTURE(how, run.err);
  REQUIRE(run.exit_code == 0);
  Checked checked{.produced_in = {}, .used = {}, .text = run.err, .findings = {}};
  std::istringstream printed(run.out);
  printed >> checked.produced_in >> checked.used;
  REQUIRE_FALSE(checked.used.empty());
  return checked;
}

// The host polls a word that `produce` stores.
bool is_of_host(const json& finding) { return finding["reader"].value("engine", "") == "host"; }

Checked report_of(const std::string& how, const std::vector<std::string>& environment = {}) {
  const uptempo::test::TemporaryDirectory folder;
  Checked checked =
      check(how, {"--check", "fences", "--report", folder.file("report")}, environment);
  std::ifstream in(folder.file("report"));
  for (std::string line; std::getline(in, line);)
    if (json object = json::parse(line); object.contains("class") && !is_of_host(object))
      checked.findings.push_back(std::move(object));
  return checked;
}

bool is_produce(const json& task) { return task.value("source_name", "").starts_with("produce("); }

TEST_CASE("a finding has the streams of both tasks, however they were published", "[hip]") {
  for (const char* how :
       {"kernel", "thread", "null", "per-thread", "upload", "fill", "default-copy", "graph"}) {
    const Checked checked = report_of(how);
    CAPTURE(how);
    REQUIRE_FALSE(checked.findings.empty());
    for (const json& finding : checked.findings) {
      INFO(finding.dump(1));
      const bool writes = is_produce(finding["writer"]);
      REQUIRE(writes != is_produce(finding["reader"]));
      const json& produce = finding[writes ? "writer" : "reader"];
      const json& second = finding[writes ? "reader" : "writer"];
      CHECK(produce.value("stream", "") == checked.produced_in);
      CHECK(second.value("stream", "") == checked.used);
      CHECK_FALSE(produce.contains("hsa_queue"));
      CHECK_FALSE(second.contains("hsa_queue"));
    }
  }
}

TEST_CASE("the sentence names the streams first", "[hip]") {
  const Checked checked = check("kernel", {"--check", "fences"});
  INFO(checked.text);
  CHECK(contains(checked.text,
                 "produce(int*, int const*, int*) (stream " + checked.produced_in + ", queue "));
  CHECK(contains(checked.text, "consume(int const*, int*) (stream " + checked.used + ", queue "));
  CHECK(contains(check("null", {"--check", "fences"}).text,
                 "consume(int const*, int*) (the null stream, queue "));
  CHECK(contains(check("per-thread", {"--check", "fences"}).text,
                 "consume(int const*, int*) (the thread's default stream, queue "));
}

// A thread of HIP publishes: nothing is known of the program's call.
TEST_CASE("without HIP's direct dispatch no stream is named, and no queue of HIP's", "[hip]") {
  const Checked checked = report_of("kernel", {"AMD_DIRECT_DISPATCH=0"});
  REQUIRE_FALSE(checked.findings.empty());
  for (const char* const task : {"writer", "reader"}) {
    INFO(checked.findings[0].dump(1));
    CHECK(checked.findings[0][task].contains("queue"));
    CHECK_FALSE(checked.findings[0][task].contains("stream"));
    CHECK_FALSE(checked.findings[0][task].contains("hsa_queue"));
  }
}

}  // namespace
}  // namespace uptempo::vgpu
