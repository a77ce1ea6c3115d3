// set() of addresses of nodes whose accesses are declared: the declared ranges move with the
// arguments that they start at, and the next replay is fenced for the new addresses. Plans are
// compared with a FencePlan of the ranges as the test keeps them.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <uptempo/recording/recording.hpp>
#include <uptempo/recording/recording_file.hpp>
#include <uptempo/recording/recording_payload.hpp>
#include "test/engine/double_device.hpp"
#include "test/engine/recording/declared_world.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/cost_meter.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

TEST_CASE("a declared range moves with its address, and the next replay is fenced for the new one",
          "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256}});
  const auto recording = bench.recording();
  Words a, b, c, d;
  record_step(*recording, 0, a.data(), b.data());
  const StepNode second = record_step(*recording, 1, a.data(), c.data());
  record_step(*recording, 2, c.data(), d.data());
  const auto apart = planned({step(&a, &b), step(&a, &c), step(&c, &d)});
  CHECK(replay(bench, *recording) == apart);
  CHECK(apart[1].barrier == aql::Barrier::off);

  recording->set<1>(second, b.data());  // it now reads what the first one writes
  CHECK(flags_of(recording->plan()) == apart);
  const auto conflicting = planned({step(&a, &b), step(&b, &c), step(&c, &d)});
  CHECK(replay(bench, *recording) == conflicting);
  CHECK(conflicting[1].barrier == aql::Barrier::on);
  CHECK(conflicting[1].acquire == aql::FenceScope::agent);
  CHECK(contains(recording->explain(), "packet 1: barrier bit: it touches what packet 0 touches"));

  recording->set<2>(second, b.data());
  recording->set<1>(second, a.data());
  CHECK(replay(bench, *recording) == planned({step(&a, &b), step(&a, &b), step(&c, &d)}));
  recording->set<2>(second, c.data());
  CHECK(replay(bench, *recording) == apart);
  CHECK(bench.ran.size() == 12);
}

TEST_CASE("buffers that all nodes swap keep their plan, also while they are equal for a moment",
          "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256}});
  const auto recording = bench.recording();
  Words buffers[2], sum;
  uint32_t *front = buffers[0].data(), *back = buffers[1].data();
  const StepNode nodes[] = {record_step(*recording, 0, front, back),
                            record_step(*recording, 1, front, sum.data()),
                            record_step(*recording, 2, back, sum.data())};
  const auto plan = replay(bench, *recording);
  for (uint32_t replays = 1; replays < 6; ++replays) {
    std::swap(front, back);
    recording->set<1>(nodes[0], front);  // both addresses are equal now
    recording->set<2>(nodes[0], back);
    recording->set<1>(nodes[1], front);
    recording->set<1>(nodes[2], back);
    CHECK(replay(bench, *recording) == plan);
    CHECK(plan == planned({step(front, back), step(front, &sum), step(back, &sum)}));
  }
}

TEST_CASE("each replay in flight has the addresses set before it, and fences that fit them",
          "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256, .paused = true}});
  const auto recording = bench.recording();
  Words a, b, c;
  const StepNode first = record_step(*recording, 0, a.data(), b.data());
  const StepNode second = record_step(*recording, 1, a.data(), c.data());
  std::vector<std::array<uint32_t*, 4>> expected;
  std::vector<aql::HeaderFlags> flags;
  Completion last;
  for (uint32_t i = 0; i < 12; ++i) {
    uint32_t* const in = (i % 3 == 0 ? a : i % 3 == 1 ? b : c).data();
    uint32_t* const out = (i % 2 == 0 ? b : c).data();
    recording->set<1>(second, in);
    recording->set<2>(first, out);
    last = *recording->try_replay(bench.device.queue());
    expected.push_back({a.data(), out, in, c.data()});
    const auto plan = planned({step(&a, out), step(in, &c)});
    flags.insert(flags.end(), plan.begin(), plan.end());
  }
  bench.device.processor().resume();
  CHECK(last.wait(soon(), kActiveWait));
  const std::vector<aql::Packet64> packets = packets_of(bench.device);
  CHECK(flags_of(packets) == flags);
  for (size_t i = 0; i < packets.size(); ++i) {
    const auto* const block = static_cast<uint32_t* const*>(
        aql::packet_as<hsa_kernel_dispatch_packet_t>(packets[i]).kernarg_address);
    CHECK(block[1] == expected[i / 2][i % 2 * 2]);
    CHECK(block[2] == expected[i / 2][i % 2 * 2 + 1]);
    // Replays follow each other whatever they access.
    if (i % 2 == 0) {
      CHECK(flags[i].barrier == aql::Barrier::on);
      CHECK(flags[i].acquire == aql::FenceScope::system);
    } else {
      CHECK(flags[i].release == aql::FenceScope::system);
    }
  }
}

TEST_CASE("a new address is refused where the declared ranges do not tell what it changes",
          "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256}});
  const auto recording = bench.recording();
  Words a, b, c;
  const StepNode inside = recording->dispatch(step_kernel(), Grid{kLength}, 0u, a.data(), b.data())
                              .reads(a.data(), kLength)
                              .writes(b.data() + 1, 8);
  const StepNode unread = recording->dispatch(step_kernel(), Grid{kLength}, 1u, a.data(), b.data())
                              .writes(b.data(), kLength);
  const StepNode untouched =
      recording->dispatch(step_kernel(), Grid{kLength}, 2u, a.data(), b.data()).touches_nothing();
  // The range of `a` may describe accesses through both addresses.
  const StepNode around =
      recording->dispatch(step_kernel(), Grid{kLength}, 3u, a.data(), a.data() + 8)
          .reads(a.data(), kLength)
          .writes(a.data() + 8, 8);
  const auto flags = replay(bench, *recording);
  const auto refused = [](const auto& call) { return error_of<Error>(call); };
  const std::string error = refused([&] { recording->set<1>(inside, c.data()); });
  CHECK(contains(error, "another address for argument 1 of node 0"));
  CHECK(contains(error, "the range of 32 bytes at 0x"));
  CHECK(contains(error, "starts at none of its address arguments"));
  CHECK(contains(error, "replace() the node"));
  CHECK(contains(refused([&] { recording->set<1>(unread, c.data()); }),
                 "no range starts at argument 1"));
  // Through the other address it may access the bytes of the range that would move.
  CHECK(contains(refused([&] { recording->set<2>(unread, c.data()); }),
                 "no range starts at argument 1"));
  CHECK(contains(refused([&] { recording->set<2>(untouched, c.data()); }),
                 "no range starts at argument 1"));
  CHECK(contains(refused([&] { recording->set<1>(around, c.data()); }),
                 "the range of 256 bytes at 0x"));
  // Nothing has changed, and values and equal addresses may be set.
  recording->set<1>(inside, a.data());
  recording->set<0>(untouched, 4u);
  CHECK(replay(bench, *recording) == flags);
  CHECK(bench.ran == std::vector<uint32_t>{0, 1, 2, 3, 0, 1, 4, 3});
  const std::vector<aql::Packet64> packets = packets_of(bench.device);
  for (size_t i = 0; i < packets.size(); ++i) {
    const auto* const block = static_cast<uint32_t* const*>(
        aql::packet_as<hsa_kernel_dispatch_packet_t>(packets[i]).kernarg_address);
    CHECK(block[1] == a.data());
    CHECK(block[2] == (i % 4 == 3 ? a.data() + 8 : b.data()));
  }
  // A null argument needs no range before it is set.
  const StepNode null = recording->dispatch(step_kernel(), Grid{kLength}, 5u, nullptr, b.data())
                            .writes(b.data(), kLength);
  recording->set<2>(null, c.data());
  CHECK(contains(refused([&] { recording->set<1>(null, a.data()); }),
                 "no range starts at argument 1"));
  std::vector<std::vector<Access>> accesses{{{&a, sizeof a, false}, {b.data() + 1, 32, true}},
                                            {{&b, sizeof b, true}},
                                            {},
                                            {{&a, sizeof a, false}, {a.data() + 8, 32, true}},
                                            {{&c, sizeof c, true}}};
  CHECK(replay(bench, *recording) == planned(accesses));
}

TEST_CASE("an address that finds no block changes neither ranges nor plan", "[recording]") {
  DoubleOptions options{.device = {.ring_size = 256, .paused = true}, .signals = 100};
  options.queue.publications = 100;
  RecordingBench bench(options);
  const auto recording = bench.recording({.spare_kernarg_bytes = 64, .patience = 1ms});
  Words a, b, c, d;
  record_step(*recording, 0, a.data(), b.data());
  const StepNode second = record_step(*recording, 1, a.data(), c.data());
  Completion last;
  std::vector<aql::HeaderFlags> flags;
  const auto replay_once = [&](const std::vector<aql::HeaderFlags>& plan) {
    last = *recording->try_replay(bench.device.queue());
    flags.insert(flags.end(), plan.begin(), plan.end());
  };
  replay_once(planned({step(&a, &b), step(&a, &c)}));
  std::string error = "no error";
  for (uint32_t i = 0; error == "no error"; ++i) {
    uint32_t* const out = (i % 2 == 0 ? d : c).data();
    error = error_of<Error>([&] { recording->set<2>(second, out); });
    if (error == "no error") replay_once(planned({step(&a, &b), step(&a, out)}));
  }
  CHECK(contains(error, "a kernarg block of 64 bytes"));
  CHECK(error_of<Error>([&] { recording->set<1>(second, b.data()); }) != "no error");
  replay_once(planned({step(&a, &b), step(&a, &c)}));
  bench.device.processor().resume();
  CHECK(last.wait(soon(), kActiveWait));
  CHECK(flags_of(packets_of(bench.device)) == flags);
}

TEST_CASE("a range at two equal addresses counts for both, until they are equal again",
          "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256}});
  const auto recording = bench.recording();
  Words a, b, c;
  record_step(*recording, 0, c.data(), a.data());
  record_step(*recording, 1, c.data(), b.data());
  const StepNode in_place = record_step(*recording, 2, a.data(), a.data());
  record_step(*recording, 3, c.data(), b.data());
  const std::vector<Access> both{
      {&a, sizeof a, false}, {&a, sizeof a, true}, {&b, sizeof b, false}, {&b, sizeof b, true}};
  const auto with = [&](const std::vector<Access>& third) {
    return planned({step(&c, &a), step(&c, &b), third, step(&c, &b)});
  };
  CHECK(replay(bench, *recording) == with(step(&a, &a)));
  recording->set<2>(in_place, b.data());
  CHECK(replay(bench, *recording) == with(both));
  recording->set<1>(in_place, b.data());
  CHECK(replay(bench, *recording) == with(step(&b, &b)));
  recording->set<1>(in_place, a.data());
  recording->set<2>(in_place, a.data());
  CHECK(replay(bench, *recording) == with(step(&a, &a)));
}

TEST_CASE("swapped at random, every replay is fenced as a plan of its ranges", "[recording]") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    RecordingBench bench({.device = {.ring_size = 256}});
    const auto recording = bench.recording();
    std::vector<Words> buffers(5);
    const auto any = [&] { return buffers[random() % buffers.size()].data(); };
    struct Has {
      const uint32_t* in;
      uint32_t* out;
      size_t read, written;  // words
      bool typed;
    };
    std::vector<Has> nodes;
    for (uint32_t i = 0; i < 2 + random() % 20; ++i) {
      Has node{any(), any(), random() % kLength + 1, random() % kLength + 1, random() % 2 == 0};
      while (node.in == node.out) node.out = any();
      if (node.typed) {
        recording->dispatch(step_kernel(), Grid{kLength}, i, node.in, node.out)
            .reads(node.in, node.read)
            .writes(node.out, node.written);
      } else {
        const void* const arguments[] = {&i, &node.in, &node.out};
        recording
            ->dispatch(Kernel<Arguments>::of(step_kernel().shared_info()), Grid{kLength},
                       Arguments(arguments))
            .writes(node.out, node.written)
            .reads(node.in, node.read);
      }
      nodes.push_back(node);
    }
    for (int change = 0; change < 8; ++change) {
      for (uint32_t i = 0; i < nodes.size(); ++i) {
        Has& node = nodes[i];
        if (random() % 2 == 0) continue;
        node.in = any();
        node.out = any();
        if (node.typed) {
          const auto handle = recording->node<uint32_t, const uint32_t*, uint32_t*>(i);
          recording->set<1>(handle, node.in);
          recording->set<2>(handle, node.out);
        } else if (const auto handle = recording->node<Arguments>(i); random() % 2 == 0) {
          const void* const arguments[] = {&i, &node.in, &node.out};
          recording->set(handle, Arguments(arguments));
        } else {
          recording->set(handle, 2, std::as_bytes(std::span(&node.out, 1)));
          recording->set(handle, 1, std::as_bytes(std::span(&node.in, 1)));
        }
      }
      std::vector<std::vector<Access>> accesses;
      for (const Has& node : nodes)
        accesses.push_back({{node.in, node.read * 4, false}, {node.out, node.written * 4, true}});
      REQUIRE(replay(bench, *recording) == planned(accesses));
    }
  }
}

TEST_CASE("a saved recording has the ranges of its new addresses, and they move again",
          "[recording-file]") {
  RecordingBench bench({.device = {.ring_size = 256}});
  Words buffers[3];
  uint32_t* const memory[] = {buffers[0].data(), buffers[1].data(), buffers[2].data()};
  Bindings bindings;
  for (size_t i = 0; i < 3; ++i) bindings.add(std::string(1, "abc"[i]), &buffers[i], sizeof(Words));
  const auto recording = bench.recording();
  record_step(*recording, 0, memory[0], memory[1]);
  const StepNode second = record_step(*recording, 1, memory[0], memory[2]);
  recording->set<1>(second, memory[1]);
  std::stringstream file;
  save_recording(*recording, file, bindings);
  const auto loaded = detail::load_recording(file, {step_kernel().shared_info()}, bindings,
                                             [&] { return bench.recording(); });
  const auto conflicting = planned({step(memory[0], memory[1]), step(memory[1], memory[2])});
  CHECK(replay(bench, *loaded) == conflicting);
  loaded->set<1>(loaded->node<uint32_t, const uint32_t*, uint32_t*>(1), memory[0]);
  CHECK(replay(bench, *loaded) ==
        planned({step(memory[0], memory[1]), step(memory[0], memory[2])}));
}

TEST_CASE("swaps and replays in the steady state allocate nothing and make no calls",
          "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256}});
  const auto recording = bench.recording();
  Words buffers[2];
  std::vector<StepNode> nodes;
  for (uint32_t i = 0; i < 20; ++i)
    nodes.push_back(record_step(*recording, i, buffers[i % 2].data(), buffers[(i + 1) % 2].data()));
  bench.ran.reserve(1 << 16);
  const auto round = [&] {
    Completion last;
    for (uint32_t swap = 0; swap < 8; ++swap) {
      for (uint32_t i = 0; i < nodes.size(); ++i) {
        recording->set<1>(nodes[i], buffers[(swap + i) % 2].data());
        recording->set<2>(nodes[i], buffers[(swap + i + 1) % 2].data());
      }
      last = recording->replay(bench.device.queue(), soon());
    }
    while (!last.ready()) {
    }
  };
  for (int i = 0; i < 4; ++i) round();
  const support::Cost cost = support::cost_of([&] {
    for (int i = 0; i < 16; ++i) round();
  });
  CHECK(cost.allocations == 0);
  CHECK(cost.locks == 0);
  if (support::sees_system_calls()) CHECK(cost.system_calls == 0);
}
