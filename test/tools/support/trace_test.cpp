#include "tools/support/trace/trace.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "test/support/catch.hpp"
#include "test/tools/support/trace_rules.hpp"
#include "tools/support/command.hpp"
#include "tools/support/program.hpp"

using namespace uptempo;
using namespace uptempo::support;
using nlohmann::ordered_json;
using uptempo::test::Approx;

namespace {

void check_rules(const ordered_json& trace) {
  const std::vector<std::string> broken = test::broken_trace_rules(trace);
  CAPTURE(broken);
  CHECK(broken.empty());
}

std::vector<ordered_json> events_of(const ordered_json& trace, const std::string& ph) {
  std::vector<ordered_json> out;
  for (const ordered_json& event : trace["traceEvents"])
    if (event["ph"] == ph) out.push_back(event);
  return out;
}

// Two dispatches of queue 0 that overlap, one of queue 1 that depends on both, and a copy that
// depends on that one.
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
      {.queue = 1,
       .index = 0,
       .name = "sum",
       .begin_ns = 3000,
       .end_ns = 4001,
       .after_packets = {0, 1}}};
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
  CHECK(begins[0]["ts"] == 0);  // the submission; the execution begins half a microsecond later
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

TEST_CASE("trace: every broken rule of the format is reported") {
  const auto broken = [](const std::function<void(ordered_json & event)>& change) {
    ordered_json trace = trace_json(small_run());
    for (ordered_json& event : trace["traceEvents"]) change(event);
    const std::vector<std::string> all = test::broken_trace_rules(trace);
    return all.empty() ? std::string("nothing") : all[0].substr(0, all[0].find(':'));
  };
  CHECK(broken([](ordered_json&) {}) == "nothing");
  const auto with = [](const char* ph, const std::function<void(ordered_json & event)>& change) {
    return [ph, change](ordered_json& event) {
      if (event["ph"] == ph) change(event);
    };
  };
  CHECK(broken(with("b", [](ordered_json& event) { event.erase("id"); })) == "no category and id");
  CHECK(broken(with("b", [](ordered_json& event) { event["cat"] = "other"; })) ==
        "async events are no pair");
  CHECK(broken(with("e", [](ordered_json& event) { event["id"] = 1; })) ==
        "async events are no pair");
  CHECK(broken(with("e", [](ordered_json& event) { event["name"] = "x"; })) ==
        "async events of two names");
  CHECK(broken(with("e", [](ordered_json& event) { event["ts"] = 0.0; })) ==
        "async ends before it begins");
  CHECK(broken(with("e", [](ordered_json& event) { event["pid"] = 1u; })) ==
        "async events of two processes");
  CHECK(broken(with("X", [](ordered_json& event) { event["dur"] = -1; })) == "no duration");
  CHECK(broken(with("X", [](ordered_json& event) {
          event["tid"] = 200000u;
          event["dur"] = 1.4;
        })).starts_with("slices of a thread overlap"));
  CHECK(broken(with("s", [](ordered_json& event) { event["ts"] = 100.0; })) ==
        "flow ends before it begins");
  CHECK(broken(with("s", [](ordered_json& event) { event["ts"] = 0.0; })) ==
        "a flow lies in no slice");
  CHECK(broken(with("s", [](ordered_json& event) { event["name"] = "x"; })) ==
        "flow events of two names");
  CHECK(broken(with("s", [](ordered_json& event) { event["id"] = 7777; })) ==
        "flow events are no pair");
  CHECK(broken(with("f", [](ordered_json& event) { event.erase("bp"); })) ==
        "a flow binds to the next slice");
  CHECK(broken(with("f", [](ordered_json& event) { event["tid"] = 9999u; })) ==
        "a flow lies in no slice");
  CHECK(broken(with("C", [](ordered_json& event) { event["args"]["packets"] = "2"; })) ==
        "a counter's value is no number");
  CHECK(broken(with("C", [](ordered_json& event) { event.erase("args"); })) ==
        "a counter without series");
  CHECK(broken(with("C", [](ordered_json& event) { event["pid"] = 77u; })) ==
        "a process without name");
  CHECK(broken(with("M", [](ordered_json& event) { event["args"].erase("name"); })) ==
        "metadata without a name");
  CHECK(broken(with("M", [](ordered_json& event) {
          if (event["name"] == "thread_name") event["tid"] = 200000u;
        })) == "named twice");
  CHECK(broken([](ordered_json& event) { event.erase("pid"); }) == "no number pid");
  CHECK(broken([](ordered_json& event) { event["ph"] = "Z"; }) == "no time");
  CHECK(test::broken_trace_rules(ordered_json::array()).size() == 1);
  // The rules allow any order of events.
  ordered_json trace = trace_json(small_run());
  std::ranges::reverse(trace["traceEvents"]);
  check_rules(trace);
}

TEST_CASE(
    "trace: a packet depends on the packets that its barrier bit or an earlier barrier packet "
    "waits for") {
  using aql::Barrier;
  const auto flags = [](Barrier barrier) {
    return aql::HeaderFlags{barrier, aql::FenceScope::none, aql::FenceScope::none};
  };
  TraceRun run;
  const auto add = [&](uint32_t queue, Barrier barrier, const char* type = "kernel_dispatch") {
    run.packets.push_back(
        {.queue = queue, .index = run.packets.size(), .type = type, .flags = flags(barrier)});
  };
  using Packets = std::vector<size_t>;
  add(0, Barrier::on);
  add(0, Barrier::off);
  add(1, Barrier::on);  // another queue's packet
  add(0, Barrier::off);
  add(0, Barrier::on);
  add(0, Barrier::off, "barrier_and");
  add(0, Barrier::off);
  add(0, Barrier::off);
  add(0, Barrier::on);
  add(0, Barrier::off);
  std::ranges::reverse(run.packets);  // the packets' index decides, not their position
  add_queue_order(run);
  const auto after = [&](uint64_t index) {
    Packets indices;
    for (const size_t place : run.packets[9 - index].after_packets)
      indices.push_back(run.packets[place].index);
    return indices;
  };
  CHECK(after(0).empty());
  CHECK(after(1).empty());
  CHECK(after(2).empty());
  CHECK(after(3).empty());
  CHECK(after(4) == Packets{0, 1, 3});
  CHECK(after(5).empty());
  CHECK(after(6) == Packets{5});
  CHECK(after(7) == Packets{5});
  CHECK(after(8) == Packets{4, 5, 6, 7});
  CHECK(after(9).empty());
}

TEST_CASE("trace: a reader that began before its writer ended is marked at its begin") {
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

TEST_CASE(
    "trace: a barrier packet waits while it executes, so its dependencies may end during it") {
  TraceRun run = small_run();
  run.packets[2].type = "barrier_and";
  run.packets[2].begin_ns = 1600;  // it ends at 4001, the others at 3000 and 2500
  const ordered_json trace = trace_json(run);
  check_rules(trace);
  CHECK(events_of(trace, "i").empty());
  const auto finishes = events_of(trace, "f");
  REQUIRE(finishes.size() == 3);
  CHECK(finishes[0]["ts"] == Approx(1.5));
  CHECK(finishes[1]["ts"] == Approx(2.0));
  run.packets[2].end_ns = 2999;
  const ordered_json early = trace_json(run);
  check_rules(early);
  REQUIRE(events_of(early, "i").size() == 1);
  CHECK(events_of(early, "i")[0]["name"] == "ended before fill <a> had ended");
}

TEST_CASE("trace: any run obeys the rules, including executions of no length") {
  std::mt19937_64 random(2);
  const auto below = [&](uint64_t limit) { return random() % limit; };
  for (int round = 0; round < 60; ++round) {
    TraceRun run;
    run.is_virtual = below(2) == 1;
    const uint64_t origin = 1'700'000'000'000'000'000;  // a time of a real machine's clock
    for (uint64_t count = below(40); count > 0; --count) {
      TraceRun::Packet packet;
      packet.queue = static_cast<uint32_t>(below(3));
      packet.index = run.packets.size();
      packet.name = "p" + std::to_string(packet.index);
      if (below(4) == 0) packet.type = "barrier_and";
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

TEST_CASE("trace: impossible runs are refused, and the error names the packet") {
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
{"type":"sdma","engine":"copy_linear","queue":2,"offset":64,"bytes":128,"from":4096,"to":8192,"start_ns":170,"end_ns":190}
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
  REQUIRE(run.copies.size() == 2);  // also a fence, which moves no bytes
  CHECK(run.copies[0].bytes == 128);
  CHECK(run.copies[0].from == 4096);
  CHECK(run.copies[0].to == 8192);
  REQUIRE(run.doorbells.size() == 1);
  CHECK(run.packets[0].details["grid"] == ordered_json{64, 1, 1});
  REQUIRE(run.ring.size() == 3);
  CHECK(run.ring[0].write_index - run.ring[0].read_index == 2);
  CHECK(run.ring[1].write_index - run.ring[1].read_index == 1);
  CHECK(run.ring[2].write_index - run.ring[2].read_index == 0);
  check_rules(trace_json(run));
}

TEST_CASE("trace: an invalid line is refused with its number") {
  const auto refusal = [](const std::string& lines) {
    try {
      trace_of_vgpu(lines, "t.jsonl");
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refusal("\n{").starts_with("t.jsonl: line 2 is not a line of the virtual GPU's trace: "));
  CHECK(refusal("{\"type\":\"doorbell\"}")
            .starts_with("t.jsonl: line 1 is not a line of the virtual GPU's trace: "));
  CHECK(refusal("").starts_with("accepted"));
}

TEST_CASE("trace: a whole program's run on the virtual GPU is converted") {
  const test::TemporaryDirectory directory;
  const std::string file = directory.file("trace");
  const test::CommandResult result =
      test::run_command({VGPU, "--trace", file, "--", FENCE_SCOPE, "litmus", "--filter",
                         "message-in-one-queue", "--iterations", "1"});
  REQUIRE(result.exit_code == 0);
  const std::string lines = support::read_input(file);
  const TraceRun run = trace_of_vgpu(lines, "trace");
  size_t packets = 0;
  for (size_t at = lines.find("\"barrier\":"); at != std::string::npos;
       at = lines.find("\"barrier\":", at + 1))
    ++packets;
  CHECK(packets > 10);
  CHECK(run.packets.size() == packets);
  CHECK(std::ranges::all_of(
      run.packets, [](const TraceRun::Packet& packet) { return packet.submit_ns.has_value(); }));
  check_rules(trace_json(run));
}
