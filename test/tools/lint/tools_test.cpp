// The lint beside other tools, and corner cases of programs on the HSA API.
#include <dlfcn.h>
#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa_api_trace.h>
#include <hsa/hsa_ext_amd.h>

#include <array>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/own_process.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

namespace {

using nlohmann::json;
using uptempo::test::CommandResult;
using uptempo::test::contains;
using uptempo::test::contents_of;
using uptempo::test::in_own_process;
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

std::vector<json> lines_of(const std::string& file) {
  std::vector<json> lines;
  std::istringstream text(contents_of(file));
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

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
  made.lines = lines_of(file);
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

// The lint in this process, without ROCr.
struct LoadedLint {
  explicit LoadedLint(const std::string& settings) {
    setenv("UPTEMPO_LINT", settings.c_str(), 1);
    void* const library = dlopen(LINT, RTLD_NOW);
    REQUIRE(library != nullptr);
    load = reinterpret_cast<decltype(load)>(dlsym(library, "OnLoad"));
    unload = reinterpret_cast<decltype(unload)>(dlsym(library, "OnUnload"));
    REQUIRE((load != nullptr && unload != nullptr));
  }
  bool (*load)(HsaApiTable*, uint64_t, uint64_t, const char* const*) = nullptr;
  void (*unload)() = nullptr;
};

// The parts of a newer ROCr that creates queues by hsa_amd_queue_create: descriptors of 96 bytes,
// and the 87th function of AMD's table (hsa_ext_amd.h and hsa_api_trace.h of July 2026).
namespace newer_rocr {

constexpr size_t kFunctions = 93, kPointerInfo = 28, kQueueCreate = 86;

struct Queue {
  amd_queue_t abi{};
  amd_signal_t doorbell{};
  alignas(64) std::array<std::array<uint64_t, 8>, 64> ring{};

  Queue(uint64_t id, uint32_t size) {
    abi.hsa_queue.id = id;
    abi.hsa_queue.size = size;
    abi.hsa_queue.base_address = ring.data();
    abi.hsa_queue.doorbell_signal.handle = reinterpret_cast<uint64_t>(&doorbell);
    for (auto& slot : ring) slot[0] = HSA_PACKET_TYPE_INVALID;
  }
  hsa_queue_t* handle() { return &abi.hsa_queue; }
};

// The results of the next call: for each descriptor a queue, or null.
std::vector<Queue*> made;
hsa_status_t made_with = HSA_STATUS_SUCCESS;

hsa_status_t create(hsa_agent_t, unsigned char* descriptors, uint32_t count) {
  for (uint32_t i = 0; i < count && i < made.size(); ++i) {
    hsa_queue_t* const queue = made[i] == nullptr ? nullptr : made[i]->handle();
    std::memcpy(descriptors + 96 * i + 32, &queue, sizeof queue);
  }
  return made_with;
}
uint64_t write_index(const hsa_queue_t* queue) {
  return reinterpret_cast<const amd_queue_t*>(queue)->write_dispatch_id;
}
uint64_t read_index(const hsa_queue_t* queue) {
  return reinterpret_cast<const amd_queue_t*>(queue)->read_dispatch_id;
}

struct Tables {
  CoreApiTable core{};
  std::array<void*, 2 + kFunctions> amd{};
  HsaApiTable root{};

  Tables() {
    core.version = {2, sizeof core, 0, 0};
    root.version = {3, sizeof root, 0, 0};
    const ApiTableVersion version{2, sizeof amd, 0x14, 0};
    std::memcpy(amd.data(), &version, sizeof version);
    root.core_ = &core;
    root.amd_ext_ = reinterpret_cast<AmdExtTable*>(amd.data());
    core.hsa_agent_get_info_fn = [](hsa_agent_t, hsa_agent_info_t what, void* value) {
      if (what != HSA_AGENT_INFO_NAME) return HSA_STATUS_ERROR;
      std::strcpy(static_cast<char*>(value), "gfx942");
      return HSA_STATUS_SUCCESS;
    };
    core.hsa_queue_load_write_index_relaxed_fn = write_index;
    core.hsa_queue_load_read_index_relaxed_fn = read_index;
    core.hsa_queue_destroy_fn = [](hsa_queue_t*) { return HSA_STATUS_SUCCESS; };
    core.hsa_signal_store_screlease_fn = [](hsa_signal_t, hsa_signal_value_t) {};
    // ROCr knows the ring of no queue here as an allocation.
    amd[2 + kPointerInfo] =
        reinterpret_cast<void*>(+[](const void*, hsa_amd_pointer_info_t*, void* (*)(size_t),
                                    uint32_t*, hsa_agent_t**) { return HSA_STATUS_ERROR; });
    amd[2 + kQueueCreate] = reinterpret_cast<void*>(&create);
  }
  hsa_status_t call_create(unsigned char* descriptors, uint32_t count) {
    return reinterpret_cast<decltype(&create)>(amd[2 + kQueueCreate])({1}, descriptors, count);
  }
  // Publishes two barrier packets.
  void publish_two(Queue& queue) {
    for (uint64_t index = 0; index < 2; ++index) {
      queue.ring[index][0] = HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE;
      queue.abi.write_dispatch_id = index + 1;
      core.hsa_signal_store_screlease_fn(queue.abi.hsa_queue.doorbell_signal,
                                         static_cast<hsa_signal_value_t>(index));
    }
  }
};

// A descriptor; the contents of its output are undefined before the call.
void describe(unsigned char* at, uint16_t version, uint16_t flags, uint8_t engine) {
  std::memset(at, 0, 96);
  std::memcpy(at, &version, sizeof version);
  std::memcpy(at + 2, &flags, sizeof flags);
  at[4] = engine;
  const uint32_t bytes = 4096;
  std::memcpy(at + 8, &bytes, sizeof bytes);
  std::memset(at + 32, 0x5a, 8);
}

}  // namespace newer_rocr

}  // namespace

TEST_CASE("queues of hsa_amd_queue_create are read or named as unread") {
  using namespace newer_rocr;
  in_own_process("", [] {
    const TemporaryDirectory directory;
    const std::string file = directory.file("report");
    const LoadedLint lint("format=json,sites=off,file=" + file);
    Tables tables;
    REQUIRE(lint.load(&tables.root, 0, 0, nullptr));
    Queue host(1, 64), device(2, 64), copies(3, 4096), after_failure(5, 64);
    made = {&host, &device, &copies, nullptr, &after_failure};
    made_with = HSA_STATUS_ERROR_OUT_OF_RESOURCES;  // of the fourth
    std::array<unsigned char, 96 * 5> descriptors;
    for (size_t i = 0; i < 5; ++i)
      describe(&descriptors[96 * i], 1, i == 1 ? 1 : 0, i == 2 ? 1 : 0);
    CHECK(tables.call_create(descriptors.data(), 5) == made_with);
    for (Queue* const queue : {&host, &device, &after_failure}) tables.publish_two(*queue);
    copies.abi.write_dispatch_id = 256;  // bytes
    CHECK(tables.core.hsa_queue_destroy_fn(copies.handle()) == HSA_STATUS_SUCCESS);
    lint.unload();

    std::map<uint64_t, json> queues;
    std::string notes;
    for (const json& line : lines_of(file)) {
      if (line.at("type") == "queue") queues[line.at("queue").get<uint64_t>()] = line;
      if (line.at("type") == "run") notes = line.at("notes").dump();
    }
    CHECK(queues.size() == 4);
    for (const uint64_t read : {1, 5}) {
      CAPTURE(read);
      CHECK(queues.at(read).at("packets") == 2);
      CHECK(queues.at(read).at("not_seen") == 0);
    }
    CHECK(queues.at(2).at("packets") == 0);
    CHECK(queues.at(2).at("not_seen") == 2);
    CHECK(contains(queues.at(2).at("reason").get<std::string>(), "in the device's memory"));
    CHECK(queues.at(3).at("not_seen").is_null());
    CHECK(contains(queues.at(3).at("reason").get<std::string>(), "its engine"));
    CHECK(contains(notes, "packets that the lint has not seen may wait for them"));
  });
}

TEST_CASE("a report without findings says so of the packets that were read alone") {
  using namespace newer_rocr;
  const uint16_t version = GENERATE(as<uint16_t>{}, 1, 2);
  in_own_process(std::to_string(version), [&] {
    const TemporaryDirectory directory;
    const std::string file = directory.file("report");
    const LoadedLint lint("sites=off,file=" + file);
    Tables tables;
    REQUIRE(lint.load(&tables.root, 0, 0, nullptr));
    Queue device(2, 64);
    made = {&device};
    made_with = HSA_STATUS_SUCCESS;
    std::array<unsigned char, 96> descriptor;
    describe(descriptor.data(), version, 1, 0);
    CHECK(tables.call_create(descriptor.data(), 1) == HSA_STATUS_SUCCESS);
    tables.publish_two(device);
    lint.unload();
    const std::string text = contents_of(file);
    CAPTURE(text);
    CHECK(contains(text, "No finding in the packets that the lint has seen."));
    if (version == 1)
      CHECK(contains(text, "Queue 2 of gfx942: 2 packets not seen: the ring is in the device's"));
    else
      CHECK(contains(text, "1 queue is not listed: the program has used a newer version of"));
  });
}

TEST_CASE("a second OnLoad on kept tables leaves them alone") {
  const LoadedLint lint("file=/dev/null");
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
  REQUIRE(lint.load(&root, 0, 0, nullptr));
  // Another tool loads after the lint. Then the program calls hsa_init() again.
  below = core;
  core.hsa_queue_create_fn = create_in_tool;
  above = core;
  CHECK(lint.load(&root, 0, 0, nullptr));
  CHECK(std::memcmp(&core, &above, sizeof core) == 0);
  hsa_queue_t* queue = nullptr;
  CHECK(core.hsa_queue_create_fn({}, 64, 0, nullptr, nullptr, 0, 0, &queue) == HSA_STATUS_ERROR);
  CHECK(created == 1);
  // After OnUnload, ROCr resets its tables, and the lint starts again.
  lint.unload();
  core.hsa_queue_create_fn = create_in_rocr;
  CHECK(lint.load(&root, 0, 0, nullptr));
  CHECK(core.hsa_queue_create_fn != create_in_rocr);
  CHECK(core.hsa_queue_create_fn({}, 64, 0, nullptr, nullptr, 0, 0, &queue) == HSA_STATUS_ERROR);
  CHECK(created == 2);
  lint.unload();
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
