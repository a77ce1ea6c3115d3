// Converts runs to traces: which packets, copies and dependencies a trace has, depending on the
// times that are known.
#include "tools/fence_scope/trace/run_trace.hpp"

#include <nlohmann/json.hpp>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/tools/support/trace_rules.hpp"
#include "tools/fence_scope/sequence/workloads.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using aql::Barrier;
using aql::FenceScope;
using support::trace_json;
using support::TraceRun;
using Role = Bench::Packet::Role;
using Places = std::vector<size_t>;

namespace {

constexpr aql::HeaderFlags kOn{Barrier::on, FenceScope::agent, FenceScope::agent};
constexpr aql::HeaderFlags kOff{Barrier::off, FenceScope::none, FenceScope::none};

// A copy to the device, one kernel in each queue, a kernel that joins them, a copy back.
struct Example {
  Example() {
    sequence.buffers = {{.name = "host", .bytes = 256, .kind = BufferKind::coarse_grained},
                        {.name = "x", .bytes = 256}};
    const Access host{.buffer = 0, .begin = 0, .bytes = 256},
        x{.buffer = 1, .begin = 0, .bytes = 256};
    const auto copy = [](const char* name, const Access& from, const Access& to,
                         std::vector<size_t> after) {
      return Step{.kind = Step::Kind::copy,
                  .name = name,
                  .after = std::move(after),
                  .from = from,
                  .to = to};
    };
    sequence.steps = {copy("up", host, x, {}),
                      {.name = "left", .queue = 0, .after = {0}},
                      {.name = "right", .queue = 1, .after = {0}},
                      {.name = "join", .queue = 0, .after = {2}},
                      copy("down", x, host, {3})};
    headers = {{}, kOn, kOn, kOn, {}};
    const auto packet = [&](Role role, uint32_t queue, size_t step, uint64_t index) {
      Bench::Packet made{
          .role = role, .queue = queue, .step = step, .index = index, .published_ns = 1000};
      if (role == Role::waits) made.after = sequence.steps[step].after;
      run.packets.push_back(made);
    };
    packet(Role::waits, 0, 1, 70);
    packet(Role::dispatch, 0, 1, 71);
    packet(Role::waits, 0, 3, 72);
    packet(Role::dispatch, 0, 3, 73);
    packet(Role::closing, 0, Bench::Packet::kNoStep, 74);
    packet(Role::waits, 1, 2, 40);
    packet(Role::dispatch, 1, 2, 41);
    packet(Role::closing, 1, Bench::Packet::kNoStep, 42);
    run.spans = {Bench::Span{1100, 1200}, Bench::Span{1300, 1500}, Bench::Span{1250, 1600},
                 Bench::Span{1700, 1800}, Bench::Span{1900, 2000}};
  }
  Sequence sequence;
  Headers headers;
  Bench::Run run;
};

void check_rules(const TraceRun& trace) {
  const std::vector<std::string> broken = test::broken_trace_rules(trace_json(trace));
  CAPTURE(broken);
  CHECK(broken.empty());
}

}  // namespace

TEST_CASE(
    "with timestamps only, a dispatch depends on what the packets between it and its predecessor "
    "waited for") {
  const Example example;
  const TraceRun trace = trace_of_spans(example.sequence, example.headers, example.run);
  REQUIRE(trace.packets.size() == 3);
  REQUIRE(trace.copies.size() == 2);
  const auto& [left, join, right] = std::tie(trace.packets[0], trace.packets[1], trace.packets[2]);
  CHECK(left.name == "left");
  CHECK(left.index == 71);
  CHECK(left.submit_ns == 1000);
  CHECK(left.begin_ns == 1300);
  CHECK(left.flags == kOn);
  CHECK(left.after_copies == Places{0});
  CHECK(right.queue == 1);
  CHECK(right.after_copies == Places{0});
  CHECK(join.name == "join");
  // `join` depends on `left` through its barrier bit, and on `right` through the barrier packet
  // before it, which has no times. Dependencies of `left` itself are not drawn again.
  CHECK(join.after_packets == Places{0, 2});
  CHECK(trace.copies[1].name == "down");
  CHECK(trace.copies[1].after_packets == Places{1});
  CHECK_FALSE(trace.is_virtual);
  CHECK(trace.ring.empty());
  check_rules(trace);
}

TEST_CASE("a step without times is omitted, and its dependents take over its dependencies") {
  Example example;
  example.run.spans[3].reset();
  example.run.spans[0].reset();
  const TraceRun trace = trace_of_spans(example.sequence, example.headers, example.run);
  REQUIRE(trace.packets.size() == 2);
  REQUIRE(trace.copies.size() == 1);
  CHECK(trace.packets[0].after_copies.empty());
  CHECK(trace.copies[0].after_packets == Places{0, 1});
  check_rules(trace);
}

TEST_CASE("slightly different clocks give no packet that begins before its submission") {
  Example example;
  example.run.packets[1].published_ns = 1301;
  CHECK(trace_of_spans(example.sequence, example.headers, example.run).packets[0].submit_ns ==
        1300);
}

TEST_CASE("the virtual GPU's records of a run are found by queue, index and address") {
  const Example example;
  Recorded recorded{
      .queues = {4u, 6u}, .begin_ns = 1000, .end_ns = 3000, .place_of = [](uint64_t address) {
        return address < 512 ? std::optional(Bench::Place{address / 256, address % 256})
                             : std::nullopt;
      }};
  TraceRun& lines = recorded.lines;
  const auto packet = [&](uint32_t queue, uint64_t index, const char* type, aql::HeaderFlags flags,
                          uint64_t begin) {
    lines.packets.push_back({.queue = queue,
                             .index = index,
                             .name = "k",
                             .type = type,
                             .flags = flags,
                             .submit_ns = begin - 10,
                             .begin_ns = begin,
                             .end_ns = begin + 50});
  };
  packet(4, 69, "kernel_dispatch", kOn, 900);  // before the run
  packet(4, 70, "barrier_and", kOff, 1200);
  packet(4, 71, "kernel_dispatch", kOn, 1300);
  packet(4, 72, "barrier_and", kOff, 1600);
  packet(4, 73, "kernel_dispatch", kOn, 1700);
  packet(4, 74, "barrier_and", kOn, 1800);
  packet(6, 40, "barrier_and", kOff, 1200);
  packet(6, 41, "kernel_dispatch", kOn, 1350);
  packet(6, 42, "barrier_and", kOn, 1500);
  packet(5, 71, "kernel_dispatch", kOn, 1400);  // a packet of the runtime
  const auto copy = [&](uint64_t from, uint64_t to, uint64_t bytes, uint64_t begin) {
    lines.copies.push_back({.engine = 9,
                            .name = "copy_linear",
                            .bytes = bytes,
                            .from = from,
                            .to = to,
                            .begin_ns = begin,
                            .end_ns = begin + 20});
  };
  copy(0, 256, 256, 800);  // a copy by the bench, before the run
  copy(0, 256, 128, 1050);
  copy(128, 384, 128, 1080);  // the second half of "up"
  copy(256, 0, 256, 1900);
  copy(9999, 0, 256, 1950);  // a foreign copy
  lines.ring = {
      {4, 950, 70, 69}, {4, 1190, 75, 70}, {5, 1200, 3, 2}, {6, 1190, 43, 40}, {4, 3001, 76, 75}};

  const TraceRun trace = trace_of_recorded(example.sequence, example.run, recorded);
  REQUIRE(trace.packets.size() == 8);
  CHECK(trace.packets[0].name == "'left' waits");
  CHECK(trace.packets[0].after_copies == Places{0});
  CHECK(trace.packets[1].name == "left");
  CHECK(trace.packets[1].after_packets == Places{0});
  CHECK(trace.packets[2].after_packets == Places{6});  // "right", in the other queue
  CHECK(trace.packets[3].after_packets == Places{1, 2});
  CHECK(trace.packets[4].name == "closing packet");
  CHECK(trace.packets[6].queue == 1);
  CHECK(trace.packets[6].begin_ns == 1350);
  REQUIRE(trace.copies.size() == 2);
  CHECK(trace.copies[0].name == "up");
  CHECK(trace.copies[0].bytes == 256);
  CHECK(trace.copies[0].begin_ns == 1050);
  CHECK(trace.copies[0].end_ns == 1100);
  CHECK(trace.copies[1].name == "down");
  CHECK(trace.copies[1].after_packets == Places{3});
  REQUIRE(trace.ring.size() == 2);
  CHECK(trace.ring[0].queue == 0);
  CHECK(trace.ring[0].write_index - trace.ring[0].read_index == 5);
  CHECK(trace.ring[1].queue == 1);
  CHECK(trace.is_virtual);
  check_rules(trace);

  std::erase_if(lines.packets,
                [](const TraceRun::Packet& each) { return each.queue == 6 && each.index == 41; });
  CHECK(test::error_of<std::runtime_error>([&] {
          (void)trace_of_recorded(example.sequence, example.run, recorded);
        }) == "the virtual GPU's trace has no packet 41 of queue 1: 'right'");
}
