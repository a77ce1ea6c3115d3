// Runs sequences on the virtual GPU: coherent, under the fence checker, and with stale caches.
#include "tools/fence_scope/run/bench.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include <uptempo/vgpu/query.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/runtime.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/tools/support/trace_rules.hpp"
#include "tools/fence_scope/run/run_packets.hpp"
#include "tools/fence_scope/sequence/program_file.hpp"
#include "tools/fence_scope/sequence/workloads.hpp"
#include "tools/fence_scope/trace/run_trace.hpp"
#include "tools/support/command.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using aql::Barrier;
using aql::FenceScope;

namespace {

// Small shapes, so that a test can try many seeds.
Shape small(const std::string& workload) {
  if (workload == "bitonic-sort") return {.bytes_per_kernel = 2048};
  if (workload == "empty") return {.kernels = 10};
  if (workload == "producer-consumer")
    return {.kernels = 12, .bytes_per_kernel = 1024, .working_set_bytes = 4096};
  return {.kernels = 8, .bytes_per_kernel = 1024};
}

// The number of findings of --check fences so far; 0 without it.
uint64_t findings() {
  const auto query =
      reinterpret_cast<uptempo_vgpu_findings_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_findings"));
  uptempo_vgpu_finding_counts counts{};
  if (query == nullptr || query(&counts) != 0) return 0;
  return counts.unordered + counts.stale + counts.unreleased;
}

constexpr aql::HeaderFlags kNothing{Barrier::off, FenceScope::none, FenceScope::none};

}  // namespace

TEST_CASE_METHOD(
    test::OnDevice,
    "every workload is right with system fences everywhere and with the plan's, gated and "
    "ungated") {
  for (const Workload& workload : workloads()) {
    CAPTURE(workload.name);
    Bench bench(gpu, make_workload(workload.name, small(workload.name)));
    for (const Release release : {Release::gated, Release::ungated}) {
      for (const Headers& headers : {everywhere(bench.sequence()), bench.plan().headers}) {
        for (int i = 0; i < 3; ++i) {
          const Bench::Run run = bench.run(headers, release);
          CHECK(run.correct);
          CHECK(run.wrong_bytes == 0);
          CHECK(run.us > 0);
          CHECK_FALSE(run.device_us.has_value());
        }
      }
    }
    CHECK(findings() == 0);
  }
}

TEST_CASE_METHOD(test::OnDevice, "the reference result is right: the host sorts the same keys") {
  const Sequence sort = make_workload("bitonic-sort", {.bytes_per_kernel = 1024});
  std::vector<uint32_t> keys(256), sorted(256);
  std::memcpy(keys.data(), sort.buffers[0].initial.data(), 1024);
  std::ranges::sort(keys);
  const Bench bench(gpu, sort);
  REQUIRE(bench.reference(0).size() == 1024);
  std::memcpy(sorted.data(), bench.reference(0).data(), 1024);
  CHECK(sorted == keys);
}

TEST_CASE_METHOD(test::OnDevice, "in each timing mode the device's time lies within the host's") {
  for (const TimingMode timing : {TimingMode::batch, TimingMode::each})
    for (const char* workload : {"chain", "producer-consumer", "copy-kernel-copy"}) {
      CAPTURE(workload);
      Bench bench(gpu, make_workload(workload, small(workload)), timing);
      const Bench::Run run = bench.run(bench.plan().headers, Release::ungated);
      CHECK(run.correct);
      REQUIRE(run.device_us.has_value());
      CHECK(*run.device_us > 0);
      CHECK(*run.device_us <= run.us);
    }
}

TEST_CASE_METHOD(
    test::OnDevice,
    "with Timing::each, dispatches and copies have begin and end, in the order of their "
    "dependencies") {
  Bench bench(gpu, make_workload("copy-kernel-copy", small("copy-kernel-copy")), TimingMode::each);
  const Bench::Run run = bench.run(everywhere(bench.sequence()), Release::ungated);
  const Sequence& sequence = bench.sequence();
  REQUIRE(run.spans.size() == sequence.steps.size());
  for (size_t step = 0; step < sequence.steps.size(); ++step) {
    REQUIRE(run.spans[step].has_value());
    CHECK(run.spans[step]->begin_ns <= run.spans[step]->end_ns);
    for (const size_t awaited : sequence.steps[step].after)
      CHECK(run.spans[awaited]->end_ns <= run.spans[step]->begin_ns);
  }
  for (const Bench::Packet& packet : run.packets) {
    REQUIRE(packet.published_ns.has_value());
    if (packet.role == Bench::Packet::Role::dispatch)
      CHECK(*packet.published_ns <= run.spans[packet.step]->end_ns);
  }
}

TEST_CASE_METHOD(test::OnDevice,
                 "timestamps of each packet and copy form a trace that obeys the format's rules") {
  for (const Workload& workload : workloads()) {
    CAPTURE(workload.name);
    Bench bench(gpu, make_workload(workload.name, small(workload.name)), TimingMode::each);
    const Headers headers = bench.plan().headers;
    const Bench::Run run = bench.run(headers, Release::ungated);
    const support::TraceRun trace = trace_of_spans(bench.sequence(), headers, run);
    CHECK(trace.packets.size() ==
          bench.sequence().dispatches(0).size() + bench.sequence().dispatches(1).size());
    CHECK(trace.packets.size() + trace.copies.size() == bench.sequence().steps.size());
    const std::vector<std::string> broken = test::broken_trace_rules(support::trace_json(trace));
    CAPTURE(broken);
    CHECK(broken.empty());
  }
}

TEST_CASE_METHOD(test::OnDevice, "a run reports the placement of each of its packets") {
  for (const Workload& workload : workloads()) {
    CAPTURE(workload.name);
    Bench bench(gpu, make_workload(workload.name, small(workload.name)));
    const Sequence& sequence = bench.sequence();
    std::array<uint64_t, 2> next{};
    for (const Release release : {Release::gated, Release::ungated}) {
      const Bench::Run run = bench.run(bench.plan().headers, release);
      std::vector<size_t> dispatches[2], awaited(sequence.steps.size());
      size_t gates = 0, closing = 0;
      const Bench::Packet* before = nullptr;
      for (const Bench::Packet& packet : run.packets) {
        // Consecutive indices of the ring, after those of earlier runs.
        if (before != nullptr && before->queue == packet.queue)
          CHECK(packet.index == before->index + 1);
        else
          CHECK(packet.index >= next[packet.queue]);
        before = &packet;
        next[packet.queue] = packet.index + 1;
        CHECK_FALSE(packet.published_ns.has_value());
        switch (packet.role) {
          case Bench::Packet::Role::gate:
            ++gates;
            break;
          case Bench::Packet::Role::closing:
            ++closing;
            break;
          case Bench::Packet::Role::waits:
            CHECK(packet.after.size() <= 5);
            awaited[packet.step] += packet.after.size();
            break;
          case Bench::Packet::Role::dispatch:
            dispatches[packet.queue].push_back(packet.step);
            CHECK(awaited[packet.step] == sequence.steps[packet.step].after.size());
        }
      }
      for (const uint32_t queue : {0u, 1u}) CHECK(dispatches[queue] == sequence.dispatches(queue));
      const size_t queues = dispatches[1].empty() ? 1 : 2;
      CHECK(gates == (release == Release::gated ? queues : 0));
      CHECK(closing == queues);
      CHECK(run.spans.empty());
    }
  }
}

TEST_CASE_METHOD(test::OnDevice, "an address is translated to a byte of a buffer") {
  Bench bench(gpu, make_workload("copy-kernel-copy", small("copy-kernel-copy")));
  CHECK_FALSE(bench.place_of(0).has_value());
  // No buffer is at the address of the ring.
  CHECK_FALSE(bench.place_of(reinterpret_cast<uint64_t>(bench.ring(0))).has_value());
  CHECK(bench.ring(0) != bench.ring(1));
}

TEST_CASE_METHOD(test::OnDevice, "a run ends with any headers, and does not affect the next one") {
  for (const Workload& workload : workloads()) {
    CAPTURE(workload.name);
    Bench bench(gpu, make_workload(workload.name, small(workload.name)));
    for (int i = 0; i < 3; ++i) {
      static_cast<void>(
          bench.run(Headers(bench.sequence().steps.size(), kNothing), Release::gated));
      CHECK(bench.run(bench.plan().headers, Release::ungated).correct);
    }
  }
}

TEST_CASE_METHOD(test::OnDevice, "the watch functions are called before and after each run") {
  Bench bench(gpu, make_workload("empty", {.kernels = 2}));
  std::string log;
  bench.watch([&] { log += "before "; }, [&] { log += "after "; });
  CHECK(bench.run(bench.plan().headers, Release::gated).correct);
  CHECK(bench.run(bench.plan().headers, Release::ungated).correct);
  CHECK(log == "before after before after ");
}

TEST_CASE_METHOD(test::OnDevice, "a dry run counts and prints the packets, and sends none") {
  Bench chain(gpu, make_workload("chain", {.kernels = 3, .bytes_per_kernel = 256}));
  const DeviceCounts counts = chain.counts(chain.plan().headers);
  CHECK(counts.packets == 4);  // includes the closing packet
  CHECK(counts.doorbells == 1);
  CHECK(counts.signal_updates == 1);
  CHECK(counts.interrupts == 1);
  CHECK(counts.barrier_bits == 3);
  CHECK(counts.system_acquires == 1);
  CHECK(counts.system_releases == 1);
  CHECK(counts.agent_acquires == 2);
  CHECK(counts.agent_releases == 2);
  CHECK_FALSE(counts.l1_lines_invalidated.has_value());

  const std::string text = dry_run(chain.sequence(), chain.plan().headers);
  CHECK(text.find("queue 0: 'link 0'\nkernel_dispatch barrier acquire=system release=agent") !=
        std::string::npos);
  CHECK(text.find("queue 0: 'link 2'\nkernel_dispatch barrier acquire=agent release=system") !=
        std::string::npos);
  CHECK(text.find("queue 0: closing packet\nbarrier_and barrier acquire=none release=none") !=
        std::string::npos);

  Bench two(gpu, make_workload("producer-consumer", small("producer-consumer")));
  CHECK(
      dry_run(two.sequence(), two.plan().headers).find("queue 1: 'consume 0' waits\nbarrier_and") !=
      std::string::npos);
  CHECK(two.counts(two.plan().headers).interrupts == 2);
  CHECK(two.plan().headers == plan(two.sequence(), &gpu).headers);
}

TEST_CASE_METHOD(test::OnDevice,
                 "a step that this device cannot run is refused, and the error names its place") {
  const auto refused = [&](auto&& change, const std::string& message) {
    Sequence sequence = make_workload("chain", {.kernels = 3, .bytes_per_kernel = 256});
    change(sequence.steps[2]);
    std::string error_text;
    try {
      Bench(gpu, sequence);
    } catch (const SequenceError& error) {
      error_text = error.what();
    }
    CAPTURE(error_text);
    CHECK(error_text.starts_with(message));
  };
  refused([](Step& step) { step.kernel = "combien"; },
          "steps[2].kernel: there is no kernel 'combien'; there are ");
  refused([](Step& step) { step.arguments.pop_back(); },
          "steps[2].arguments: 3 given; 'combine' takes 4");
  refused([](Step& step) { step.arguments[3].value.resize(8); },
          "steps[2].arguments[3]: a value of 8 bytes; 'combine' takes a value of 4 there");
  refused([](Step& step) { std::swap(step.arguments[2], step.arguments[3]); },
          "steps[2].arguments[2]: a value of 4 bytes; 'combine' takes an address of 8 there");
  refused([](Step& step) { step.grid = Grid{64}.by(128); }, "steps[2].grid: ");
}

TEST_CASE_METHOD(test::OnDevice, "a program file with its own code object is run") {
  const test::TemporaryDirectory directory;
  const std::span<const std::byte> code = builtin_kernels::basics();
  std::ofstream(directory.file("basics.co"), std::ios::binary)
      .write(reinterpret_cast<const char*>(code.data()), static_cast<std::streamsize>(code.size()));
  std::ofstream(directory.file("program.json")) << R"({
    "code_object": "basics.co",
    "buffers": [{"name": "in", "bytes": 1024, "kind": "coarse", "initial": {"u32": [1, 2, 3]}},
                {"name": "x", "bytes": 1024, "initial": {"u32": 5}},
                {"name": "total", "bytes": 4, "kind": "fine", "initial": {"u32": 100}}],
    "steps": [
      {"name": "up", "copy": {"from": "in", "to": "x"}},
      {"name": "triple", "kernel": "chain_increment", "grid": 256, "after": ["up"],
       "arguments": [{"buffer": "x"}, {"u32": 1}], "reads": ["x"], "writes": ["x"]},
      {"name": "sum", "kernel": "reduce_lds", "grid": 256, "workgroup": 256,
       "arguments": [{"buffer": "total"}, {"buffer": "x"}, {"u32": 256}], "reads": ["x", "total"], "writes": ["total"]}
    ]})";
  Bench bench(gpu, read_program_file(directory.file("program.json")));
  uint32_t total = 0;
  std::memcpy(&total, bench.reference(2).data(), sizeof total);
  // 256 times 3 v + 1; v takes the values 1, 2, 3, 1, ...
  CHECK(total == 100 + 3 * (85 * 6 + 1) + 256);
  for (const Release release : {Release::gated, Release::ungated})
    CHECK(bench.run(bench.plan().headers, release).correct);
  CHECK(findings() == 0);
}

// Runs in a process of its own, because the device is unusable afterwards.
TEST_CASE_METHOD(test::OnDevice,
                 "a kernel that accesses invalid memory ends the bench with an Error", "[.fault]") {
  Sequence sequence = make_workload("chain", {.kernels = 2, .bytes_per_kernel = 256});
  sequence.steps[1].grid = Grid{1 << 28}.by(64);
  const std::string error_text = test::error_of<Error>([&] { Bench(gpu, sequence); });
  CAPTURE(error_text);
  CHECK(test::contains(error_text, "PacketQueue: steps[1], 'link 1': the GPU accessed address 0x"));
  CHECK(test::contains(error_text, "HSA_STATUS_ERROR_MEMORY_FAULT"));
}

// For seeds_test.cpp: these fail where a missing fence changes the result.
TEST_CASE_METHOD(test::OnDevice, "without any fence or barrier bit", "[.broken]") {
  Bench bench(gpu, make_workload("chain", small("chain")));
  Headers headers = bench.plan().headers;
  for (aql::HeaderFlags& flags : headers) flags = kNothing;
  CHECK(bench.run(headers, Release::gated).correct);
}
TEST_CASE_METHOD(test::OnDevice, "without the first packet's acquire", "[.broken]") {
  Bench bench(gpu, make_workload("chain", small("chain")));
  Headers headers = bench.plan().headers;
  headers.front().acquire = FenceScope::none;
  CHECK(bench.run(headers, Release::gated).correct);
}
TEST_CASE_METHOD(test::OnDevice, "without an acquire in the middle", "[.broken]") {
  Bench bench(gpu, make_workload("bitonic-sort", small("bitonic-sort")));
  Headers headers = bench.plan().headers;
  for (size_t i = 1; i + 1 < headers.size(); ++i) headers[i].acquire = FenceScope::none;
  CHECK(bench.run(headers, Release::gated).correct);
}
TEST_CASE_METHOD(test::OnDevice, "without the last packet's release", "[.broken]") {
  Bench bench(gpu, make_workload("chain", small("chain")));
  Headers headers = bench.plan().headers;
  headers.back().release = FenceScope::agent;
  CHECK(bench.run(headers, Release::gated).correct);
}
