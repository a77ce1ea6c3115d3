#include "fence_scope/trace.hpp"

#include <unistd.h>
#include <algorithm>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <stdexcept>

#include "support/catch.hpp"
#include "support/program.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using nlohmann::ordered_json;
using uptempo::test::Approx;

namespace {

// The rules of the Trace Event Format that viewers rely upon, as far as these events need them.
void check_rules(const ordered_json& trace) {
  REQUIRE(trace.at("traceEvents").is_array());
  CHECK(trace.at("displayTimeUnit") == "ns");
  struct Slice {
    int64_t begin, end;
  };
  std::map<std::pair<int64_t, int64_t>, std::vector<Slice>> threads;
  std::map<std::tuple<std::string, std::string, std::string>, std::pair<int, int>>
      async;  // cat, id, name: b, e
  std::map<uint64_t, std::vector<ordered_json>> flows;
  std::set<std::pair<int64_t, int64_t>> named_threads;
  std::set<int64_t> named_processes;
  std::map<int64_t, int64_t> process_of_thread;
  std::map<int64_t, double> counter_time;
  double last = -1;
  // A moment in whole nanoseconds.
  const auto ns = [](const ordered_json& value) { return std::llround(value.get<double>() * 1000); };
  for (const ordered_json& event : trace.at("traceEvents")) {
    const auto ph = event.at("ph").get<std::string>();
    REQUIRE(ph.size() == 1);
    REQUIRE(std::string("MbeXsfiC").find(ph) != std::string::npos);
    REQUIRE(event.at("pid").is_number_unsigned());
    REQUIRE(event.at("tid").is_number_unsigned());
    REQUIRE(event.at("name").is_string());
    const auto pid = event["pid"].get<int64_t>(), tid = event["tid"].get<int64_t>();
    if (ph == "M") {
      REQUIRE(event.at("args").at("name").is_string());
      if (event["name"] == "process_name") named_processes.insert(pid);
      if (event["name"] == "thread_name") named_threads.insert({pid, tid});
      continue;
    }
    const double ts = event.at("ts").get<double>();
    REQUIRE(ts >= 0);
    REQUIRE(ts >= last);
    last = ts;
    CHECK(named_processes.contains(pid));
    // A thread is of one process.
    CHECK(process_of_thread.emplace(tid, pid).first->second == pid);
    if (ph == "X") {
      REQUIRE(event.at("dur").get<double>() >= 0);
      CHECK(named_threads.contains({pid, tid}));
      threads[{pid, tid}].push_back({ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])});
    }
    if (ph == "b" || ph == "e") {
      auto& [begins, ends] = async[{event.at("cat"), event.at("id"), event["name"]}];
      ++(ph == "b" ? begins : ends);
      CHECK(begins >= ends);
    }
    if (ph == "s" || ph == "f") flows[event.at("id").get<uint64_t>()].push_back(event);
    if (ph == "i") CHECK(event.at("s") == "t");
    if (ph == "C") {
      for (const auto& [key, value] : event.at("args").items()) CHECK(value.is_number_unsigned());
      CHECK(counter_time[pid] <= ts);
      counter_time[pid] = ts;
    }
  }
  for (auto& [thread, slices] : threads) {
    // No overlap at all, which nests.
    for (size_t i = 1; i < slices.size(); ++i) CHECK(slices[i - 1].end <= slices[i].begin);
  }
  for (const auto& [key, count] : async) CHECK((count.first == 1 && count.second == 1));
  for (const auto& [id, events] : flows) {
    REQUIRE(events.size() == 2);
    const ordered_json &start = events[0], &finish = events[1];
    CHECK(start["ph"] == "s");
    CHECK(finish["ph"] == "f");
    CHECK(finish.at("bp") == "e");
    CHECK(start["cat"] == finish["cat"]);
    CHECK(start["name"] == finish["name"]);
    // Both bind to a slice.
    for (const ordered_json& end : events) {
      const int64_t at = ns(end["ts"]);
      CHECK(std::ranges::any_of(threads[{end["pid"], end["tid"]}], [&](const Slice& slice) {
        return slice.begin <= at && (at < slice.end || slice.begin == slice.end);
      }));
    }
  }
}

std::vector<ordered_json> events_of(const ordered_json& trace, const std::string& ph) {
  std::vector<ordered_json> out;
  for (const ordered_json& event : trace["traceEvents"])
    if (event["ph"] == ph) out.push_back(event);
  return out;
}

// Two dispatches of queue 0 that overlap, one of queue 1 that waits for both, a copy that waits for that.
TraceRun small_run() {
  TraceRun run;
  run.device = "AMD Instinct MI210 (gfx90a)";
  run.is_virtual = true;
  run.packets = {
      {.queue = 0,
       .index = 4,
       .name = "fill <a>",
       .flags = aql::HeaderFlags{},
       .submit_ns = 1000,
       .begin_ns = 1500,
       .end_ns = 3000},
      {.queue = 0, .index = 5, .name = "add", .submit_ns = 1000, .begin_ns = 1600, .end_ns = 2500},
      {.queue = 1, .index = 0, .name = "sum", .begin_ns = 3000, .end_ns = 4001, .after_packets = {0, 1}}};
  run.copies = {{.engine = 0,
                 .name = "copy back",
                 .bytes = 4096,
                 .begin_ns = 5000,
                 .end_ns = 6000,
                 .after_packets = {2}}};
  run.ring = {{0, 1000, 6, 4}, {0, 1500, 6, 5}, {0, 1600, 6, 6}, {1, 2900, 1, 0}, {1, 3000, 1, 1}};
  return run;
}

}  // namespace

TEST_CASE("trace: a small run, event by event") {
  const ordered_json trace = trace_json(small_run());
  check_rules(trace);
  const auto begins = events_of(trace, "b"), slices = events_of(trace, "X");
  REQUIRE(begins.size() == 4);
  REQUIRE(slices.size() == 4);
  CHECK(begins[0]["ts"] == 0);  // submitted; executed half a microsecond later
  CHECK(slices[0]["ts"] == 0.5);
  CHECK(slices[0]["dur"] == 1.5);
  CHECK(slices[0]["args"]["waited_us"] == 0.5);
  CHECK(slices[0]["args"]["acquire"] == "system");
  CHECK(slices[0]["tid"] != slices[1]["tid"]);  // they overlap
  CHECK(slices[0]["pid"] == slices[1]["pid"]);
  CHECK(slices[2]["pid"] != slices[0]["pid"]);
  CHECK(slices[2]["dur"] == 1.001);
  CHECK(slices[3]["args"]["bytes"] == 4096);
  const auto starts = events_of(trace, "s");
  CHECK(starts.size() == 3);
  CHECK(events_of(trace, "f").size() == 3);
  CHECK(events_of(trace, "i").empty());
  const auto counters = events_of(trace, "C");
  REQUIRE(counters.size() == 5);
  CHECK(counters[0]["args"]["packets"] == 2);
  CHECK(counters[2]["args"]["packets"] == 0);
  for (const ordered_json& event : events_of(trace, "M"))
    if (event["name"] == "process_name")
      CHECK(event["args"]["name"].get<std::string>().ends_with("(virtual GPU)"));
  CHECK(trace["otherData"]["time"] == "of a virtual GPU, not of hardware");
}

TEST_CASE("trace: a reader that began before its writer had ended is marked where it began") {
  TraceRun run = small_run();
  run.packets[2].begin_ns = 2999;
  const ordered_json trace = trace_json(run);
  check_rules(trace);
  const auto marks = events_of(trace, "i");
  REQUIRE(marks.size() == 1);
  CHECK(marks[0]["name"] == "began before fill <a> had ended");
  CHECK(marks[0]["ts"] == Approx(1.999));
  CHECK(events_of(trace, "s").size() == 2);
}

TEST_CASE("trace: any run keeps to the rules, executions of no length included") {
  std::mt19937_64 random(2);
  const auto below = [&](uint64_t limit) { return random() % limit; };
  for (int round = 0; round < 60; ++round) {
    TraceRun run;
    run.is_virtual = below(2) == 1;
    const uint64_t origin = 1'700'000'000'000'000'000;  // as clocks of a real machine are
    for (uint64_t count = below(40); count > 0; --count) {
      TraceRun::Packet packet;
      packet.queue = static_cast<uint32_t>(below(3));
      packet.index = run.packets.size();
      packet.name = "p" + std::to_string(packet.index);
      packet.begin_ns = origin + below(1000);
      packet.end_ns = packet.begin_ns + below(200);
      if (below(2) == 1) packet.submit_ns = packet.begin_ns - below(50);
      for (uint64_t edges = below(4); edges > 0 && !run.packets.empty(); --edges)
        packet.after_packets.push_back(below(run.packets.size()));
      run.packets.push_back(packet);
    }
    for (uint64_t count = below(5); count > 0; --count) {
      const uint64_t begin = origin + below(1000);
      run.copies.push_back({.name = "c", .begin_ns = begin, .end_ns = begin + below(100)});
    }
    for (uint64_t count = below(20); count > 0; --count)
      run.ring.push_back({static_cast<uint32_t>(below(3)), origin + below(1000), 9, below(10)});
    check_rules(trace_json(run));
  }
  check_rules(trace_json({}));
}

TEST_CASE("trace: what cannot be is refused by name") {
  const auto refused = [](auto change) {
    TraceRun run = small_run();
    change(run);
    try {
      trace_json(run);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refused([](TraceRun& run) { run.packets[1].end_ns = 1; }) ==
        "packet 1 ('add') ends at 1 ns, before it begins at 1600 ns");
  CHECK(refused([](TraceRun& run) { run.packets[0].submit_ns = 1501; }) ==
        "packet 0 ('fill <a>') is submitted at 1501 ns, after it begins at 1500 ns");
  CHECK(refused([](TraceRun& run) { run.packets[2].after_packets = {3}; }) ==
        "packet 2 ('sum') depends on packet 3 of 3");
  CHECK(refused([](TraceRun& run) { run.copies[0].after_copies = {1}; }) ==
        "copy 0 ('copy back') depends on copy 1 of 1");
  CHECK(refused([](TraceRun& run) { run.ring[3].read_index = 2; }) ==
        "sample 3 of queue 1 has a read index of 2 beyond its write index of 1");
}

TEST_CASE("trace: lines of the virtual GPU become packets, copies and ring occupancy") {
  const std::string lines = R"({"type":"doorbell","queue":1,"value":1,"ns":100}
{"queue":1,"index":0,"type":"kernel_dispatch","barrier":true,"acquire":"system","release":"agent","completion_signal":false,"kernel":"add.kd","grid":[64,1,1],"workgroup":[64,1,1],"kernarg":1,"start_ns":120,"end_ns":150}
{"queue":1,"index":1,"type":"barrier_and","barrier":true,"acquire":"none","release":"none","completion_signal":true,"start_ns":150,"end_ns":160}
{"type":"sdma","engine":"copy_linear","queue":2,"offset":64,"bytes":128,"start_ns":170,"end_ns":190}
{"type":"sdma","engine":"fence","queue":2,"offset":96,"bytes":0,"start_ns":190,"end_ns":190}
)";
  const TraceRun run = trace_of_vgpu(lines, "t.jsonl");
  CHECK(run.is_virtual);
  REQUIRE(run.packets.size() == 2);
  CHECK(run.packets[0].name == "add");
  CHECK(run.packets[0].submit_ns == 100);
  CHECK(run.packets[0].flags ==
        aql::HeaderFlags{aql::Barrier::on, aql::FenceScope::system, aql::FenceScope::agent});
  CHECK(run.packets[1].name == "barrier_and");
  CHECK(run.packets[1].after_packets == std::vector<size_t>{0});
  REQUIRE(run.copies.size() == 1);
  CHECK(run.copies[0].bytes == 128);
  REQUIRE(run.ring.size() == 3);
  CHECK(run.ring[0].write_index - run.ring[0].read_index == 2);
  CHECK(run.ring[1].write_index - run.ring[1].read_index == 1);
  CHECK(run.ring[2].write_index - run.ring[2].read_index == 0);
  check_rules(trace_json(run));
}

TEST_CASE("trace: a line that is none is refused with its number") {
  const auto refusal = [](const std::string& lines) {
    try {
      trace_of_vgpu(lines, "t.jsonl");
    } catch (const support::UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refusal("\n{").starts_with("t.jsonl: line 2 is none of the virtual GPU's trace: "));
  CHECK(
      refusal("{\"type\":\"doorbell\"}").starts_with("t.jsonl: line 1 is none of the virtual GPU's trace: "));
  CHECK(refusal("").starts_with("accepted"));
}

TEST_CASE("trace: what a program does on the virtual GPU is converted whole") {
  const auto file =
      std::filesystem::temp_directory_path() / ("fence_scope_trace_" + std::to_string(getpid()));
  const std::string command = std::string(VGPU) + " --trace " + file.string() + " -- " + FENCE_SCOPE +
                              " litmus --filter message-in-one-queue --iterations 1 >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  REQUIRE(status == 0);
  const std::string lines = support::read_input(file.string());
  std::filesystem::remove(file);
  const TraceRun run = trace_of_vgpu(lines, "trace");
  size_t packets = 0;
  for (size_t at = lines.find("\"barrier\":"); at != std::string::npos;
       at = lines.find("\"barrier\":", at + 1))
    ++packets;
  CHECK(packets > 10);
  CHECK(run.packets.size() == packets);
  CHECK(std::ranges::all_of(run.packets,
                            [](const TraceRun::Packet& packet) { return packet.submit_ns.has_value(); }));
  check_rules(trace_json(run));
}
