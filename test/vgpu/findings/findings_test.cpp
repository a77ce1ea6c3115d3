// Findings of a program over unmodified ROCr under --check: exit status, closing line, text, JSON.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "programs/run.hpp"
#include "test/support/catch.hpp"
#include "test/support/text.hpp"

namespace uptempo::vgpu {
namespace {

using nlohmann::json;
using uptempo::test::contains;
using uptempo::test::count;

CommandResult check(const std::vector<std::string>& options, const std::string& what,
                    const std::string& how = "return") {
  std::vector<std::string> arguments{options};
  arguments.insert(arguments.end(), {"--", UPTEMPO_VGPU_FINDINGS_PROGRAM, what, how});
  return launch(arguments);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

const std::vector<std::string> kFences{"--check", "fences"};
const std::vector<std::string> kWithStatus{"--check", "fences", "--error-exitcode", "77"};

TEST_CASE("--error-exitcode replaces the status of a program with findings, and keeps its output",
          "[findings]") {
  // The program has a finding. How it ends does not matter, unless a signal ends it.
  for (const char* how : {"return", "fail", "exit"}) {
    CAPTURE(how);
    const CommandResult found = check(kWithStatus, "unordered", how);
    CAPTURE(found.err);
    CHECK(found.exit_code == 77);
    CHECK(found.out == "cout printf");
    CHECK(contains(found.err, "uptempo-vgpu: unordered: "));
  }
  // These do not flush, with or without the option.
  for (const char* how : {"_exit", "_Exit", "quick_exit"}) {
    CAPTURE(how);
    CHECK(check(kWithStatus, "unordered", how).exit_code == 77);
    CHECK(check(kFences, "unordered", how).exit_code == 3);
  }
  CHECK(check(kWithStatus, "unordered", "abort").exit_code == 128 + 6);
}

TEST_CASE("--error-exitcode leaves out no destructor, and the closing line comes after all of them",
          "[findings]") {
  for (const std::string what : {"unordered", "clean"}) {
    const CommandResult run = launch({"--check", "fences", "--error-exitcode", "77", "--",
                                      UPTEMPO_VGPU_FINDINGS_PROGRAM, what, "return"},
                                     {"UPTEMPO_REPORT_END=1"});
    CAPTURE(what, run.err);
    CHECK(run.exit_code == (what == "unordered" ? 77 : 0));
    const auto lines = lines_of(run.err);
    REQUIRE(lines.size() >= 2);
    CHECK(lines[lines.size() - 2] == "library ended");
    CHECK(lines.back().starts_with("uptempo-vgpu: checked "));
  }
}

TEST_CASE("a program without findings keeps its status", "[findings]") {
  for (const auto& [how, status] :
       {std::pair("return", 0), std::pair("fail", 3), std::pair("exit", 3), std::pair("_exit", 3),
        std::pair("quick_exit", 3)}) {
    CAPTURE(how);
    const CommandResult clean = check(kWithStatus, "clean", how);
    CAPTURE(clean.err);
    CHECK(clean.exit_code == status);
  }
  // Advice is no finding.
  const CommandResult advised =
      check({"--check", "fences,advice", "--error-exitcode", "77"}, "clean");
  CAPTURE(advised.err);
  CHECK(contains(advised.err, "advice: "));
  CHECK(advised.exit_code == 0);
  // Without the option, findings change nothing.
  CHECK(check(kFences, "unordered", "return").exit_code == 0);
  // Only what is reported counts.
  CHECK(check(kWithStatus, "specification").exit_code == 0);
  CHECK(check({"--check", "fences,hsa", "--error-exitcode", "77"}, "specification").exit_code ==
        77);
}

TEST_CASE("--error-exitcode also ends a process whose report lacks lines", "[findings]") {
  std::vector<std::string> options = kWithStatus;
  options.insert(options.end(), {"--report", "/dev/full"});
  const CommandResult result = check(options, "clean", "return");
  CAPTURE(result.err);
  CHECK(result.exit_code == 77);
  CHECK(contains(result.err, "uptempo-vgpu: '/dev/full' is incomplete: No space left on device"));
}

TEST_CASE("the last line says what was checked and what was found", "[findings]") {
  const auto closing = [](const std::vector<std::string>& options, const std::string& what) {
    const auto lines = lines_of(check(options, what).err);
    return lines.empty() ? std::string() : lines.back();
  };
  // Each dispatch reads 12 or 16 bytes of arguments. fill writes 256 bytes; add reads and writes as
  // many. The runtime's own dispatches and copies vary.
  const std::regex clean(
      R"(uptempo-vgpu: checked (\d+) dispatches, (\d+) cop(?:y|ies) and (\d+) bytes: no findings)"
      R"(; missing waits not looked for \(fences,waits\))");
  std::smatch numbers;
  const std::string line = closing(kFences, "clean");
  INFO(line);
  REQUIRE(std::regex_match(line, numbers, clean));
  const std::string more_text = closing(kFences, "copy");
  INFO(more_text);
  std::smatch more;
  REQUIRE(std::regex_match(more_text, more, clean));
  CHECK(std::stoull(numbers[1]) >= 2);
  CHECK(std::stoull(numbers[3]) >= 768);
  CHECK(more[1] == numbers[1]);
  CHECK(std::stoull(more[2]) == std::stoull(numbers[2]) + 1);
  CHECK(std::stoull(more[3]) == std::stoull(numbers[3]) + 512);

  CHECK(contains(closing(kFences, "unordered"), " bytes: 1 finding (1 unordered); missing waits"));
  CHECK(contains(closing(kFences, "specification"),
                 " bytes: no findings; 1 more that only the specification forbids (fences,hsa);"));
  CHECK(contains(closing({"--check", "fences,hsa"}, "specification"),
                 " bytes: 1 finding (1 stale); missing waits"));
  CHECK(closing({"--check", "fences,waits"}, "clean").ends_with(" bytes: no findings"));
  const std::string atomics = closing({"--check", "atomics"}, "unordered");
  CHECK(std::regex_match(atomics,
                         std::regex(R"(uptempo-vgpu: checked \d+ dispatches for floating-point )"
                                    R"(atomics without effect: no findings)")));
}

TEST_CASE("a packet that runs before the device sees its doorbell has a publisher, too",
          "[findings]") {
  // Chance decides when the device looks at a doorbell. One run in ten met such a packet.
  for (int run = 0; run < 24; ++run) {
    const std::string err = check({"--check", "fences", "--deterministic"}, "unordered").err;
    INFO(err);
    CHECK(count(err, "uptempo-vgpu: unordered: ") == 1);
    CHECK(count(err, "Program::launch_add at program.cpp:") == 1);
    CHECK(count(err, "Program::launch_fill at program.cpp:") == 1);
  }
}

TEST_CASE("a mistake in a loop is one finding, with the number of its rounds", "[findings]") {
  // One worker, so that fill ends before add begins.
  const CommandResult found = check({"--check", "fences", "--deterministic"}, "repeated");
  INFO(found.err);
  const std::vector<std::string> lines = lines_of(found.err);
  CHECK(count(found.err, "\n    remedy: ") == 1);
  REQUIRE(lines.size() >= 2);
  CHECK(std::regex_match(
      lines[lines.size() - 2],
      std::regex(R"(uptempo-vgpu: unordered: 100 times in all: )"
                 R"(fill\(unsigned int\*, unsigned int\) \(queue 1, packet \d+\) and )"
                 R"(add\(unsigned int const\*, unsigned int\*\) \(queue 1, packet \d+\), )"
                 R"(and others like them)")));
  CHECK(lines.back().ends_with(
      ": 1 finding (1 unordered); missing waits not looked for (fences,waits); 99 repetitions not "
      "shown (fences,repeated)"));

  const CommandResult all = check({"--check", "fences,repeated", "--deterministic"}, "repeated");
  CHECK(count(all.err, "\n    remedy: ") == 100);
  CHECK_FALSE(contains(all.err, "times in all"));
  CHECK(contains(lines_of(all.err).back(), ": 100 findings (100 unordered);"));

  const uptempo::test::TemporaryDirectory directory;
  const std::string file = directory.file("report");
  check({"--check", "fences", "--deterministic", "--report", file}, "repeated");
  std::vector<json> repeated;
  for (const std::string& line : lines_of(uptempo::test::contents_of(file)))
    if (const json one = json::parse(line); one.contains("repeated"))
      repeated.push_back(one["repeated"]);
  REQUIRE(repeated.size() == 1);
  CHECK(repeated[0]["class"] == "unordered");
  CHECK(repeated[0]["conflict"] == "read-after-write");
  CHECK(repeated[0]["writer"]["kernel"] == "_Z4fillPjj.kd");
  CHECK(repeated[0]["reader"]["kernel"] == "_Z3addPKjPj.kd");
  CHECK(repeated[0]["times"] == 100);
}

// The report's line of the program's pair of kernels.
json finding_in(const std::string& report) {
  for (const std::string& line : lines_of(report)) {
    json one = json::parse(line);
    if (one.contains("class")) return one;
  }
  return {};
}

json report_of(std::vector<std::string> options, const std::string& what) {
  const uptempo::test::TemporaryDirectory directory;
  options.insert(options.end(), {"--report", directory.file("report")});
  const CommandResult found = check(options, what);
  CAPTURE(found.err);
  CHECK(found.exit_code == 0);
  // The findings are in the file only.
  CHECK(count(found.err, "\n") == 1);
  CHECK(contains(found.err, " in " + directory.file("report")));
  return finding_in(uptempo::test::contents_of(directory.file("report")));
}

// The part from `begin` to `end`, words with single spaces.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  if (from == std::string::npos) return {};
  return text.substr(from, text.find(end, from) - from);
}

TEST_CASE("a finding names source lines, the host's calls, the allocation and a remedy",
          "[findings]") {
  // One worker, so that fill ends before add begins.
  const std::string err = check({"--check", "fences", "--deterministic"}, "unordered").err;
  INFO(err);
  CHECK(std::regex_search(
      err, std::regex(
               R"(uptempo-vgpu: unordered: add\(unsigned int const\*, unsigned int\*\) )"
               R"(\([^()]*queue 1, packet 2: [a-z ,]+\) reads 256 bytes from address 0x[0-9a-f]+ )"
               R"(on, which fill\(unsigned int\*, unsigned int\) \([^()]*queue 1, packet 1: )")));
  const std::string add = between(err, "    add(unsigned int const*, unsigned int*) reads at",
                                  "    fill(unsigned int*, unsigned int) wrote at");
  const std::string fill =
      between(err, "    fill(unsigned int*, unsigned int) wrote at", "    the address is");
  const std::string memory = between(err, "    the address is", "    remedy: ");
  CHECK(contains(add, " findings.cl:9, published by\n"));
  CHECK(contains(add, "Program::launch_add at program.cpp:"));
  CHECK_FALSE(contains(add, "launch_fill"));
  CHECK(contains(add, "        main at program.cpp:"));
  CHECK(contains(fill, " findings.cl:5, published by\n"));
  CHECK(contains(fill, "Program::launch_fill at program.cpp:"));
  CHECK_FALSE(contains(fill, "launch_add"));
  // ROCr allocates whole pages.
  CHECK(contains(memory, "0 bytes into 4096 bytes of device memory (VRAM), allocated by\n"));
  CHECK(contains(memory, "Program::allocate_words at program.cpp:"));
  // Inlined: TestDevice::allocate() of a header, and a function of the program.
  CHECK(contains(memory, "TestDevice::allocate<unsigned int> at device.hpp:"));
  CHECK(contains(memory, "allocate_inline at program.cpp:"));
  CHECK(contains(err, "    remedy: set the barrier bit of the packet of add("));
}

TEST_CASE("a finding names source lines where a plugin has loaded ROCr", "[findings]") {
  const std::string err = launch({"--check", "fences", "--deterministic", "--",
                                  UPTEMPO_VGPU_FINDINGS_HOST, "unordered", "return"})
                              .err;
  INFO(err);
  CHECK(contains(err, "add(unsigned int const*, unsigned int*) reads at findings.cl:9, published"));
  CHECK(contains(err, "fill(unsigned int*, unsigned int) wrote at findings.cl:5, published"));
}

TEST_CASE("a program of Uptempo is advised in the terms of Uptempo and of the kernel's language",
          "[findings]") {
  const auto remedies = [](const std::string& what, const std::string& mistake) {
    const std::string err =
        launch({"--check", what, "--deterministic", "--", UPTEMPO_VGPU_FINDINGS_ENGINE, mistake})
            .err;
    std::set<std::string> found;
    for (const std::string& line : lines_of(err))
      if (line.starts_with("    remedy: ")) found.insert(line.substr(12));
    CAPTURE(mistake, err);
    CHECK(found.size() == 1);
    return found.empty() ? err : *found.begin();
  };
  const std::string fill = "fill(unsigned int*, unsigned int)";
  const std::string add = "add(unsigned int const*, unsigned int*)";
  CHECK(remedies("fences", "read")
            .starts_with("declare the memory with .reads() and .writes(), or the order with "
                         ".after(), at the dispatches of " +
                         fill + " and " + add));
  CHECK(contains(remedies("fences", "stream"), "call record() on the Stream of "));
  CHECK(remedies("memory", "leak") == "destroy the buffer that owns it before the program ends");
  CHECK(remedies("races", "race") == "call __syncthreads() between the two accesses");
}

TEST_CASE("the report file has the same in JSON", "[findings]") {
  const json found = report_of({"--check", "fences", "--deterministic"}, "unordered");
  INFO(found.dump(1));
  const json& writer = found["writer"];
  const json& reader = found["reader"];
  CHECK(writer["kernel"] == "_Z4fillPjj.kd");
  CHECK(writer["source_name"] == "fill(unsigned int*, unsigned int)");
  CHECK(writer["lines"] == json{"findings.cl:5"});
  CHECK(reader["lines"] == json{"findings.cl:9"});
  const auto called = [](const json& frames, const std::string& function) {
    return std::ranges::any_of(frames, [&](const json& frame) {
      return contains(frame.value("function", ""), function) &&
             frame["module"] == "vgpu_findings_program" &&
             frame.value("source", "").starts_with("program.cpp:");
    });
  };
  CHECK(called(writer["published_by"], "launch_fill("));
  CHECK(called(reader["published_by"], "launch_add("));
  CHECK_FALSE(called(reader["published_by"], "launch_fill("));
  CHECK(called(found["memory"]["allocated_by"], "allocate_words("));
  CHECK(found["memory"]["bytes"] == 4096);
  CHECK(found["memory"]["offset"] == 0);
  CHECK(found["memory"]["address"] == found["address"]);
  CHECK(contains(found["remedy"].get<std::string>(), "barrier bit"));
}

TEST_CASE("a finding in a program for HSA names the queue that the program holds", "[findings]") {
  const uptempo::test::TemporaryDirectory directory;
  const std::regex printed(R"((?:^|\n)hsa_queue_t (0x\w+) of id (\d+)\n)");
  const auto run = [](std::vector<std::string> options) {
    options.insert(options.end(), {"--check", "fences", "--deterministic", "--",
                                   UPTEMPO_VGPU_FINDINGS_PROGRAM, "unordered", "return"});
    return launch(options, {"UPTEMPO_REPORT_QUEUE=1"}).err;
  };
  const std::string err = run({});
  INFO(err);
  std::smatch queue;
  REQUIRE(std::regex_search(err, queue, printed));
  const std::string name =
      "hsa_queue_t " + queue[1].str() + " of id " + queue[2].str() + ", queue 1, packet ";
  CHECK(contains(err, "uptempo-vgpu: unordered: add(unsigned int const*, unsigned int*) (" + name));
  CHECK(contains(err, " which fill(unsigned int*, unsigned int) (" + name));

  const std::string again = run({"--report", directory.file("report")});
  REQUIRE(std::regex_search(again, queue, printed));
  const json found = finding_in(uptempo::test::contents_of(directory.file("report")));
  INFO(found.dump(1));
  for (const char* const task : {"writer", "reader"}) {
    CHECK(found[task]["hsa_queue"] == queue[1].str());
    CHECK(found[task]["hsa_queue_id"] == std::stoull(queue[2]));
    CHECK_FALSE(found[task].contains("stream"));
  }
}

TEST_CASE("the closing line names the report of the process", "[findings]") {
  const uptempo::test::TemporaryDirectory directory;
  const CommandResult found =
      check({"--check", "fences", "--report", directory.file("report.%p")}, "unordered");
  INFO(found.err);
  std::smatch named;
  REQUIRE(std::regex_search(found.err, named, std::regex(R"(\(1 unordered\) in (\S+);)")));
  CHECK(finding_in(uptempo::test::contents_of(named[1]))["class"] == "unordered");
}

TEST_CASE("suppressed findings are counted, and change neither output nor status", "[findings]") {
  const uptempo::test::TemporaryDirectory directory;
  const std::string file = directory.file("rules");
  std::ofstream(file) << "# known\nunordered \"fill(*)\" _Z3add*\nstale other.kd *\n";
  std::vector<std::string> options{kWithStatus};
  options.insert(options.end(), {"--deterministic", "--suppressions", file});
  const CommandResult found = check(options, "unordered");
  CAPTURE(found.err);
  CHECK(found.exit_code == 0);
  CHECK(lines_of(found.err).size() == 1);
  CHECK(contains(found.err,
                 ": no findings; missing waits not looked for (fences,waits); 1 suppressed; unused "
                 "suppressions: " +
                     file + ":3\n"));

  // A finding that would not be reported is not counted as suppressed.
  std::ofstream(file) << "* * *\n";
  const CommandResult harmless = check(options, "specification");
  CAPTURE(harmless.err);
  CHECK(contains(harmless.err,
                 ": no findings; 1 more that only the specification forbids (fences,hsa); missing "
                 "waits not looked for (fences,waits); unused suppressions: " +
                     file + ":1\n"));

  std::ofstream(file) << "unordered fill\n";
  const CommandResult invalid = check(options, "unordered");
  CHECK(invalid.exit_code == 2);
  CHECK(contains(invalid.err, file + ":1: a rule is CLASS WRITER READER"));
}

}  // namespace
}  // namespace uptempo::vgpu
