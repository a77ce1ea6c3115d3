// The lint beside other tools, and corner cases of programs on the HSA API.
#include <dlfcn.h>
#include <hsa/hsa_api_trace.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

namespace {

using nlohmann::json;
using uptempo::test::CommandResult;
using uptempo::test::contains;
using uptempo::test::contents_of;
using uptempo::test::run_command;
using uptempo::test::TemporaryDirectory;

struct Linted {
  std::string err;
  uint64_t published = 0;  // by the program
  std::vector<json> lines;

  uint64_t total(const std::string& count) const {
    uint64_t sum = 0;
    for (const json& line : lines)
      if (line.at("type") == "pair" && !line.at(count).is_null())
        sum += line.at(count).get<uint64_t>();
    return sum;
  }
  uint64_t findings(const std::string& finding) const {
    uint64_t sum = 0;
    for (const json& line : lines)
      if (line.at("type") == "finding" && line.at("finding") == finding)
        sum += line.at("count").get<uint64_t>();
    return sum;
  }
  uint64_t of_queues(const std::string& count, bool of_rocr = false) const {
    uint64_t sum = 0;
    for (const json& line : lines)
      if (line.at("type") == "queue" && line.at("of_rocr") == of_rocr)
        sum += line.at(count).get<uint64_t>();
    return sum;
  }
  std::string notes() const {
    std::string text;
    for (const json& line : lines)
      if (line.at("type") == "run") text += line.at("notes").dump();
    return text;
  }
  json second_tool() const {
    const std::string_view key = "second tool: ";
    const size_t at = err.find(key);
    REQUIRE(at != std::string::npos);
    return json::parse(err.substr(at + key.size(), err.find('\n', at) - at - key.size()));
  }
};

// `tools`: HSA_TOOLS_LIB.
Linted linted(const std::string& what, const std::string& tools = LINT) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("report");
  const CommandResult result =
      run_command({UPTEMPO_VGPU_LAUNCHER, "--", PROGRAM, what},
                  {.environment = {"HSA_TOOLS_LIB=" + tools,
                                   "UPTEMPO_LINT=format=json,sites=off,file=" + file}});
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  Linted made{.err = result.err, .published = json::parse(result.out).at("packets"), .lines = {}};
  std::istringstream text(contents_of(file));
  for (std::string line; std::getline(text, line);) made.lines.push_back(json::parse(line));
  CHECK(made.of_queues("packets") + made.of_queues("not_seen") == made.published);
  return made;
}

const std::string kBoth = std::string(LINT) + " " + SECOND_TOOL;
const std::string kReversed = std::string(SECOND_TOOL) + " " + LINT;

// --- Tables of a test

CoreApiTable below, above;
int created = 0;

hsa_status_t create_in_rocr(hsa_agent_t, uint32_t, hsa_queue_type32_t,
                            void (*)(hsa_status_t, hsa_queue_t*, void*), void*, uint32_t, uint32_t,
                            hsa_queue_t**) {
  ++created;
  return HSA_STATUS_ERROR;
}
hsa_status_t create_in_tool(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                            void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data,
                            uint32_t private_bytes, uint32_t group_bytes, hsa_queue_t** queue) {
  return below.hsa_queue_create_fn(agent, size, type, callback, data, private_bytes, group_bytes,
                                   queue);
}

}  // namespace

TEST_CASE("a second OnLoad on kept tables leaves them alone") {
  setenv("UPTEMPO_LINT", "file=/dev/null", 1);
  void* const library = dlopen(LINT, RTLD_NOW);
  REQUIRE(library != nullptr);
  const auto load =
      reinterpret_cast<bool (*)(HsaApiTable*, uint64_t, uint64_t, const char* const*)>(
          dlsym(library, "OnLoad"));
  const auto unload = reinterpret_cast<void (*)()>(dlsym(library, "OnUnload"));
  REQUIRE((load != nullptr && unload != nullptr));
  CoreApiTable core{};
  AmdExtTable amd{};
  HsaApiTable root{};
  core.version = {1, sizeof core, 0, 0};
  amd.version = {HSA_AMD_EXT_API_TABLE_MAJOR_VERSION, sizeof amd, 0, 0};
  root.version = {1, sizeof root, 0, 0};
  root.core_ = &core;
  root.amd_ext_ = &amd;
  core.hsa_queue_create_fn = create_in_rocr;
  created = 0;
  REQUIRE(load(&root, 0, 0, nullptr));
  // Another tool loads after the lint. Then the program calls hsa_init() again.
  below = core;
  core.hsa_queue_create_fn = create_in_tool;
  above = core;
  CHECK(load(&root, 0, 0, nullptr));
  CHECK(std::memcmp(&core, &above, sizeof core) == 0);
  hsa_queue_t* queue = nullptr;
  CHECK(core.hsa_queue_create_fn({}, 64, 0, nullptr, nullptr, 0, 0, &queue) == HSA_STATUS_ERROR);
  CHECK(created == 1);
  // After OnUnload, ROCr resets its tables, and the lint starts again.
  unload();
  core.hsa_queue_create_fn = create_in_rocr;
  CHECK(load(&root, 0, 0, nullptr));
  CHECK(core.hsa_queue_create_fn != create_in_rocr);
  CHECK(core.hsa_queue_create_fn({}, 64, 0, nullptr, nullptr, 0, 0, &queue) == HSA_STATUS_ERROR);
  CHECK(created == 2);
  unload();
}

TEST_CASE("no signal is loaded once its program may have destroyed it") {
  const Linted there = linted("destroy", kReversed);
  CHECK(there.second_tool().at("loads_of_destroyed") == 0);
  CHECK(there.total("signals") == there.of_queues("packets"));
}

TEST_CASE("two tools are both told of ROCr's own queues, if the lint is the first") {
  const Linted there = linted("loop", kBoth);
  const json tool = there.second_tool();
  CHECK(tool.at("registered") == true);
  uint64_t own = 0;
  for (const json& line : there.lines)
    own += line.at("type") == "queue" && line.at("of_rocr").get<bool>() ? 1 : 0;
  CHECK(tool.at("queues") == own);
  CHECK(!contains(there.notes(), "ROCr's own queues are not listed"));

  const Linted reversed = linted("loop", kReversed);
  CHECK(reversed.second_tool().at("registered") == true);
  CHECK(contains(reversed.notes(), "ROCr's own queues are not listed"));
  for (const json& line : reversed.lines)
    if (line.at("type") == "queue") CHECK(line.at("of_rocr") == false);
}

TEST_CASE("the queue of an interceptor is read, in either order of the tools") {
  const std::string tools =
      GENERATE(std::string(LINT) + " " + INTERCEPTOR, std::string(INTERCEPTOR) + " " + LINT);
  const Linted there = linted("loop", tools);
  CHECK(there.published == 5);
  CHECK(there.of_queues("packets") == 5);
  CHECK(there.of_queues("doorbells") == 5);
  CHECK(there.total("signals") == 5);
  CHECK(there.total("unused_signals") == 0);
}

TEST_CASE("signals are not judged while packets of a queue are unread") {
  const Linted there = linted("unread");
  CHECK(there.of_queues("not_seen") == 1);
  CHECK(there.findings("unused_signal") == 0);
  CHECK(contains(there.notes(), "Unused signals are not known: packets that the lint has not"));
  for (const json& line : there.lines)
    if (line.at("type") == "pair") CHECK(line.at("unused_signals").is_null());
}

TEST_CASE("a signal that hsa_signal_add arms again is followed") {
  const Linted there = linted("add");
  CHECK(there.notes() == "[]");
  CHECK(there.total("signals") == 5);
  CHECK(there.findings("unused_signal") == 0);
}

TEST_CASE("host waits that do not drain the queue are no finding") {
  const std::string what = GENERATE("satisfied", "pipeline");
  const Linted there = linted(what);
  CHECK(there.of_queues("packets") == there.published);
  CHECK(there.findings("host_wait") == 0);
}

TEST_CASE("queues that hsa_shut_down() frees keep their counts") {
  const Linted there = linted("sessions");
  CHECK(there.published == 15);
  CHECK(there.of_queues("packets") == 15);
  CHECK(there.total("signals") == 15);
}
