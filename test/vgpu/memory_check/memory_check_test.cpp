// --check memory over unmodified ROCr and HIP: what it finds, and where it says the mistake is.
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "programs/run.hpp"
#include "test/support/catch.hpp"
#include "test/support/text.hpp"

namespace uptempo::vgpu {
namespace {

using nlohmann::json;
using uptempo::test::contains;

struct Checked {
  int status = 0;
  std::string text;
  std::vector<json> findings;
  json summary;
};

Checked check(const std::string& program, std::vector<std::string> arguments,
              std::vector<std::string> options = {}) {
  const uptempo::test::TemporaryDirectory folder;
  const std::string report = folder.file("report");
  options.insert(options.begin(),
                 {"--check", "memory", "--error-exitcode", "77", "--report", report});
  arguments.insert(arguments.begin(), {"--", program});
  options.insert(options.end(), arguments.begin(), arguments.end());
  const CommandResult result = launch(options);
  Checked checked{.status = result.exit_code, .text = result.err, .findings = {}, .summary = {}};
  std::ifstream in(report);
  for (std::string line; std::getline(in, line);) {
    json object = json::parse(line);
    if (object.contains("summary"))
      checked.summary = object["summary"];
    else
      checked.findings.push_back(std::move(object));
  }
  return checked;
}
Checked check_hsa(const std::string& mistake, std::vector<std::string> options = {}) {
  return check(UPTEMPO_VGPU_MEMORY_CHECK_PROGRAM, {mistake}, std::move(options));
}
Checked check_many(const std::string& allocations, const std::string& stride) {
  return check(UPTEMPO_VGPU_MEMORY_CHECK_PROGRAM, {"many", allocations, stride});
}
Checked check_hip(const std::string& mistake, std::vector<std::string> options = {}) {
  return check(UPTEMPO_VGPU_HIP_MEMORY_ERRORS, {mistake}, std::move(options));
}

// The only finding, which the exit status tells of.
json one(const Checked& checked) {
  INFO(checked.text);
  REQUIRE(checked.findings.size() == 1);
  CHECK(checked.status == 77);
  CHECK(checked.summary["findings"] == 1);
  CHECK(checked.summary[checked.findings[0]["class"].get<std::string>()] == 1);
  return checked.findings[0];
}

// Whether a function of the program is among the calls.
bool calls(const json& frames, const std::string& function) {
  for (const json& frame : frames)
    if (frame.value("function", "").starts_with(function)) return true;
  return false;
}

TEST_CASE("a write beyond the end names buffer, distance, line and lane", "[memory_check]") {
  const json found = one(check_hip("after"));
  CHECK(found["class"] == "out-of-bounds");
  CHECK(found["access"] == "write");
  CHECK(found["source_name"] == "store(int*, int)");
  CHECK(found["line"] == "memory_errors.hip:16");
  CHECK(found["lane"] == 61);
  CHECK(found["lanes"] == 3);
  CHECK(found["bytes"] == 4);
  CHECK(found["memory"]["bytes"] == 1000);
  CHECK(found["memory"]["after"] == 0);
  CHECK(found["stream"] == "null");
  CHECK(calls(found["memory"]["allocated_by"], "allocate"));
  CHECK(calls(found["published_by"], "main"));
}

TEST_CASE("a write before the begin names the buffer after it", "[memory_check]") {
  const json found = one(check_hip("before"));
  CHECK(found["class"] == "out-of-bounds");
  CHECK(found["lane"] == 0);
  CHECK(found["lanes"] == 2);
  CHECK(found["memory"]["bytes"] == 256);
  CHECK(found["memory"]["before"] == 8);
}

TEST_CASE("allocations in one block of ROCr are kept apart", "[memory_check]") {
  const json found = one(check_hsa("neighbour"));
  CHECK(found["class"] == "out-of-bounds");
  CHECK(found["line"] == "memory_check.cl:2");
  CHECK(found["lane"] == 62);
  CHECK(found["memory"]["bytes"] == 256);
  CHECK(found["memory"]["after"] == 0);
  CHECK(found.value("hsa_queue", "").starts_with("0x"));
  CHECK(calls(found["memory"]["allocated_by"], "(anonymous namespace)::Program::take"));
}

TEST_CASE("use after free is found although the size is allocated again", "[memory_check]") {
  const json found = one(check_hip("freed"));
  CHECK(found["class"] == "use-after-free");
  CHECK(found["access"] == "read");
  CHECK(found["line"] == "memory_errors.hip:19");
  CHECK(found["memory"]["bytes"] == 512);
  CHECK(found["memory"]["offset"] == 0);
  CHECK(calls(found["memory"]["allocated_by"], "allocate"));
  CHECK(calls(found["memory"]["freed_by"], "release"));
}

TEST_CASE("memory that HIP keeps for a graph is freed for the program", "[memory_check]") {
  const json found = one(check_hip("freed_graph"));
  CHECK(found["class"] == "use-after-free");
  CHECK(found["line"] == "memory_errors.hip:19");
  CHECK(found["memory"]["bytes"] == 512);
  CHECK(calls(found["memory"]["freed_by"], "release"));
}

TEST_CASE("a pool's memory is used again after hipFree", "[memory_check]") {
  const Checked checked = check_hip("pool");
  INFO(checked.text);
  CHECK(checked.status == 0);
  CHECK(checked.findings.empty());
}

TEST_CASE("memory freed under a running kernel is found at the free", "[memory_check]") {
  // The kernel stores afterwards.
  const Checked checked = check_hsa("in_use");
  INFO(checked.text);
  REQUIRE(checked.findings.size() == 2);
  CHECK(checked.findings[0]["class"] == "freed-in-use");
  CHECK(checked.findings[0]["kernel"] == "hold.kd");
  CHECK(checked.findings[0]["memory"]["bytes"] == 256);
  CHECK(checked.findings[0]["use"] == "argument");
  CHECK(checked.findings[0]["argument_offset"] == 0);
  CHECK(calls(checked.findings[0]["memory"]["freed_by"], "(anonymous namespace)::Program::give"));
  CHECK(checked.findings[1]["class"] == "use-after-free");
  CHECK(checked.findings[1]["access"] == "write");
}

TEST_CASE("memory freed twice is found, and the second free fails", "[memory_check]") {
  const json found = one(check_hsa("twice"));
  CHECK(found["class"] == "double-free");
  CHECK(calls(found["memory"]["freed_by"], "(anonymous namespace)::Program::give"));
  CHECK(calls(found["freed_again_by"], "(anonymous namespace)::Program::give"));
}

TEST_CASE("memory freed twice with HIP is found, each time at its place", "[memory_check]") {
  const Checked checked = check_hip("twice");
  INFO(checked.text);
  CHECK(checked.status == 77);
  REQUIRE(checked.findings.size() == 2);
  for (const json& found : checked.findings) {
    CHECK(found["class"] == "double-free");
    CHECK(calls(found["memory"]["allocated_by"], "allocate"));
    CHECK(calls(found["memory"]["freed_by"], "release"));
    CHECK(calls(found["freed_again_by"], "main"));
    CHECK_FALSE(calls(found["freed_again_by"], "release"));
  }
  CHECK(checked.findings[0]["memory"]["bytes"] == 512);
  CHECK(checked.findings[1]["memory"]["bytes"] == 100 << 20);
  const json host = one(check_hip("twice_host"));
  CHECK(host["class"] == "double-free");
  CHECK(host["memory"]["bytes"] == 512);
}

TEST_CASE("words behind a kernel's arguments are none of its arguments", "[memory_check]") {
  const Checked checked = check_hsa("stale_argument");
  INFO(checked.text);
  CHECK(checked.status == 0);
  CHECK(checked.findings.empty());
}

TEST_CASE("tens of thousands of small allocations are checked", "[memory_check]") {
  // Each has a redzone. With a mapping for each of both, they would exceed vm.max_map_count.
  const Checked checked = check_many("40000", "1000000");
  INFO(checked.text);
  CHECK(checked.status == 0);
  CHECK(checked.findings.empty());
  CHECK_FALSE(contains(checked.text, "vm.max_map_count"));
}

TEST_CASE("without mappings for the host's stores, the check says so and finds less",
          "[memory_check]") {
  // Every second allocation differs from its neighbours, and so do their mappings.
  const Checked checked = check_many("70000", "2");
  INFO(checked.text);
  CHECK(checked.status == 0);
  CHECK(checked.findings.empty());
  uint64_t most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  if (most < 70'000)
    CHECK(contains(checked.text,
                   " allocations count as stored to by the host, because the process "
                   "has too many mappings"));
}

TEST_CASE("a copy beyond an allocation is found at its first byte beyond", "[memory_check]") {
  const json found = one(check_hsa("copy_beyond"));
  CHECK(found["class"] == "out-of-bounds");
  CHECK(found["engine"] == "copy_linear");
  CHECK(found["access"] == "write");
  CHECK(found["bytes"] == 24);
  CHECK(found["memory"]["bytes"] == 1000);
  CHECK(found["memory"]["after"] == 0);
}

TEST_CASE("reads of memory without contents are found", "[memory_check]") {
  const json found = one(check_hip("empty"));
  CHECK(found["class"] == "uninitialised-read");
  CHECK(found["line"] == "memory_errors.hip:19");
  CHECK(found["lanes"] == 64);
  CHECK(found["memory"]["bytes"] == 1000);
  CHECK(found["memory"]["offset"] == 0);
  // A copy passes on that bytes have no contents; a store of the host gives them to its page.
  const json copied = one(check_hsa("copied_empty"));
  CHECK(copied["class"] == "uninitialised-read");
  CHECK(copied["memory"]["bytes"] == 512);
  CHECK(copied["memory"]["offset"] == 256);
  const json stored = one(check_hsa("host_stored"));
  CHECK(stored["class"] == "uninitialised-read");
  CHECK(stored["memory"]["bytes"] == 8192);
  CHECK(stored["memory"]["offset"] == 4096);
}

TEST_CASE("reads of LDS beyond the packet's segment, or without contents, are found",
          "[memory_check]") {
  const json beyond = one(check_hip("lds_beyond"));
  CHECK(beyond["class"] == "lds-out-of-bounds");
  CHECK(beyond["line"] == "memory_errors.hip:25");
  CHECK(beyond["lane"] == 61);
  CHECK(beyond["lanes"] == 3);
  CHECK(beyond["address"] == 256);
  CHECK(beyond["group_segment_bytes"] == 256);
  const json empty = one(check_hip("lds_empty"));
  CHECK(empty["class"] == "lds-uninitialised-read");
  CHECK(empty["line"] == "memory_errors.hip:31");
  CHECK(empty["lane"] == 32);
  CHECK(empty["lanes"] == 32);
  CHECK(empty["address"] == 256);
}

TEST_CASE("leaks are grouped by their place, without those of the runtime", "[memory_check]") {
  const json hip = one(check_hip("leak"));
  CHECK(hip["class"] == "leak");
  CHECK(hip["allocations"] == 3);
  CHECK(hip["bytes"] == 300);
  CHECK(calls(hip["memory"]["allocated_by"], "allocate"));
  const json hsa = one(check_hsa("leak"));
  CHECK(hsa["allocations"] == 3);
  CHECK(hsa["bytes"] == 3000);
}

TEST_CASE("the remedy of a leak names the function that frees such memory", "[memory_check]") {
  const auto remedy = [](const Checked& checked) {
    return one(checked)["remedy"].get<std::string>();
  };
  CHECK(remedy(check_hip("leak")) == "free it with hipFree before the program ends");
  CHECK(remedy(check_hip("leak_host")) == "free it with hipHostFree before the program ends");
  CHECK(remedy(check_hsa("leak")) ==
        "free it with hsa_amd_memory_pool_free before the program ends");
}

TEST_CASE("correct programs have no findings", "[memory_check]") {
  for (const Checked& checked :
       {check_hip("clean"), check_hsa("clean"), check_hip("clean", {"--gpus", "2"}),
        check_hip("clean", {"--bar", "small"}), check_hip("clean", {"--incoherent", "1"})}) {
    INFO(checked.text);
    CHECK(checked.status == 0);
    CHECK(checked.findings.empty());
    CHECK(checked.summary["findings"] == 0);
    CHECK(contains(checked.text, "for errors of memory: no findings"));
  }
}

TEST_CASE("the text names the same things in sentences", "[memory_check]") {
  const CommandResult result =
      launch({"--check", "memory", "--", UPTEMPO_VGPU_HIP_MEMORY_ERRORS, "after"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(contains(result.err,
                 "uptempo-vgpu: out-of-bounds: store(int*, int) (the null stream, queue "));
  CHECK(contains(result.err, ") writes 4 bytes at address 0x"));
  CHECK(contains(result.err,
                 "in workgroup (0,0,0), wave 0, lane 61 and 2 others, at memory_errors.hip:16"));
  CHECK(
      contains(result.err,
               "the address is directly after the end of 1000 bytes of device memory (VRAM) at "));
  CHECK(contains(result.err, "        allocate at memory_errors.hip:"));
  CHECK(contains(result.err, "remedy: compare the index"));
  CHECK(contains(result.err, "for errors of memory: 1 finding (1 out-of-bounds)"));
}

TEST_CASE("suppressions name class, kernel and allocating function", "[memory_check]") {
  const uptempo::test::TemporaryDirectory folder;
  const std::string rules = folder.file("rules");
  const auto status = [&](const std::string& rule) {
    std::ofstream(rules) << rule << '\n';
    return check_hip("after", {"--suppressions", rules}).status;
  };
  CHECK(status("out-of-bounds store* allocate") == 0);
  CHECK(status("out-of-bounds \"store(int*, int)\" *") == 0);
  CHECK(status("* * main") == 0);
  CHECK(status("out-of-bounds add* *") == 77);
  CHECK(status("out-of-bounds * release") == 77);
  CHECK(status("leak * *") == 77);
}

TEST_CASE("options that exclude the check are refused by name", "[memory_check]") {
  const auto refused = [](std::vector<std::string> options, const std::string& text) {
    options.push_back("true");
    const CommandResult result = launch(options);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, text));
  };
  refused({"--check", "memory,fences"}, "memory and fences exclude each other");
  refused({"--check", "memory,hsa"}, "use atomics, memory[,buffers][,repeated]");
  refused({"--check", "memory", "--bar", "lazy", "1"},
          "--check memory and --bar lazy exclude each other");
}

}  // namespace
}  // namespace uptempo::vgpu
