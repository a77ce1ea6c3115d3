// Ranges that move with set() of addresses (declared_addresses_test.cpp): values that hold
// addresses, equal addresses, kernargs in device memory, replays and files between two changes.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <uptempo/recording/recording.hpp>
#include <uptempo/recording/recording_file.hpp>
#include <uptempo/recording/recording_payload.hpp>
#include "test/engine/recording/declared_world.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

TEST_CASE("an address in a value keeps the range that it points into where it is", "[recording]") {
  struct Value {
    const uint32_t* address;
    uint64_t number;
  };
  const auto kernel = kernel_of<uint32_t, uint32_t*, Value, uint64_t>(
      {.name = "follow",
       .object = 0x8000,
       .kernarg_bytes = 40,
       .arguments = {
           argument(ArgumentKind::by_value, 0, 4), argument(ArgumentKind::global_buffer, 8, 8),
           argument(ArgumentKind::by_value, 16, 16), argument(ArgumentKind::by_value, 32, 8)}});
  RecordingBench bench({.device = {.ring_size = 256}});
  const auto recording = bench.recording();
  Words a, b, c, d;
  const Value of_a{a.data(), 7};
  record_step(*recording, 0, c.data(), b.data());
  const auto node = recording->dispatch(kernel, Grid{kLength}, 1u, a.data(), of_a, uint64_t{9})
                        .writes(a.data(), kLength);
  record_step(*recording, 2, c.data(), d.data());
  const auto with = [&](const Words& written) {
    return planned({step(&c, &b), {{&written, sizeof written, true}}, step(&c, &d)});
  };
  CHECK(replay(bench, *recording) == with(a));
  const auto refusal = [&] { return error_of<Error>([&] { recording->set<1>(node, b.data()); }); };
  CHECK(contains(refusal(), "another address for argument 1 of node 1"));
  CHECK(contains(refusal(), "bytes 0 to 7 of argument 2, a value, are an address in the range"));
  CHECK(contains(refusal(), "replace() the node"));
  recording->set<2>(node, Value{nullptr, reinterpret_cast<uintptr_t>(a.data() + kLength) - 1});
  CHECK(contains(refusal(), "bytes 8 to 15 of argument 2"));
  recording->set<2>(node, Value{a.data() + kLength, 7});  // no byte of the range
  recording->set<3>(node, reinterpret_cast<uintptr_t>(a.data() + 1));
  CHECK(contains(refusal(), "bytes 0 to 7 of argument 3"));
  uint32_t* const moved = b.data();
  const uint32_t number = 1;
  const uint64_t last = 9;
  const void* const all[] = {&number, &moved, &of_a, &last};
  const auto any = recording->node<Arguments>(1);
  CHECK(contains(error_of<Error>([&] { recording->set(any, Arguments(all)); }),
                 "of argument 3, a value"));
  CHECK(replay(bench, *recording) == with(a));

  recording->set<3>(node, last);
  recording->set<1>(node, b.data());
  CHECK(replay(bench, *recording) == with(b));
  CHECK(with(a)[1].barrier == aql::Barrier::off);
  CHECK(with(b)[1].barrier == aql::Barrier::on);
}

TEST_CASE("a range at three equal addresses counts for each of them", "[recording]") {
  const auto kernel = kernel_of<uint32_t, uint32_t*, uint32_t*, uint32_t*>(
      {.name = "three",
       .object = 0x9000,
       .kernarg_bytes = 32,
       .arguments = {argument(ArgumentKind::by_value, 0, 4),
                     argument(ArgumentKind::global_buffer, 8, 8),
                     argument(ArgumentKind::global_buffer, 16, 8),
                     argument(ArgumentKind::global_buffer, 24, 8)}});
  RecordingBench bench({.device = {.ring_size = 256}});
  const auto recording = bench.recording();
  Words a, b, c, d;
  const auto node = recording->dispatch(kernel, Grid{kLength}, 0u, a.data(), a.data(), a.data())
                        .writes(a.data(), kLength);
  record_step(*recording, 1, d.data(), c.data());
  record_step(*recording, 2, d.data(), d.data());
  const auto with = [&](const std::vector<Access>& first) {
    return planned({first, step(&d, &c), step(&d, &d)});
  };
  CHECK(replay(bench, *recording) == with({{&a, sizeof a, true}}));
  recording->set<2>(node, b.data());
  recording->set<3>(node, c.data());
  const auto all = with({{&a, sizeof a, true}, {&b, sizeof b, true}, {&c, sizeof c, true}});
  CHECK(replay(bench, *recording) == all);
  CHECK(all[1].barrier == aql::Barrier::on);
  recording->set<3>(node, b.data());
  CHECK(replay(bench, *recording) == with({{&a, sizeof a, true}, {&b, sizeof b, true}}));
  recording->set<1>(node, d.data());
  CHECK(replay(bench, *recording) == with({{&d, sizeof d, true}, {&b, sizeof b, true}}));
}

TEST_CASE("a range up to the end of the address space still ends there when it has moved",
          "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256}});
  const auto recording = bench.recording();
  std::array<Words, 4> words;  // in ascending order
  const auto step_from = [&](size_t from) {
    return std::vector<Access>{{&words[from], SIZE_MAX, false}, {&words[0], sizeof(Words), true}};
  };
  const StepNode node =
      recording->dispatch(step_kernel(), Grid{kLength}, 0u, words[3].data(), words[0].data())
          .reads(words[3].data(), SIZE_MAX)
          .writes(words[0].data(), kLength);
  record_step(*recording, 1, words[1].data(), words[2].data());
  record_step(*recording, 2, words[1].data(), words[1].data());
  const auto with = [&](size_t from) {
    return planned({step_from(from), step(&words[1], &words[2]), step(&words[1], &words[1])});
  };
  CHECK(replay(bench, *recording) == with(3));
  CHECK(with(3)[1].barrier == aql::Barrier::off);
  recording->set<1>(node, words[2].data());
  CHECK(replay(bench, *recording) == with(2));
  CHECK(with(2)[1].barrier == aql::Barrier::on);
  recording->set<1>(node, words[1].data());  // with all bytes from there on
  CHECK(replay(bench, *recording) == with(1));
}

TEST_CASE("addresses of kernargs in device memory move their ranges, too", "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256}});
  alignas(64) std::byte line[64] = {};
  const auto recording = detail::StateAccess::recording(std::make_unique<detail::RecordingState>(
      bench.device.state(), bench.lend(80 << 10), RecordingOptions{.spare_kernarg_bytes = 16 << 10},
      detail::DeviceWrites(nullptr, line)));
  Words a, b, c;
  record_step(*recording, 0, a.data(), b.data());
  const StepNode second = record_step(*recording, 1, a.data(), c.data());
  record_step(*recording, 2, a.data(), a.data());
  const auto with = [&](const Words& in) {
    return planned({step(&a, &b), step(&in, &c), step(&a, &a)});
  };
  CHECK(replay(bench, *recording) == with(a));
  for (int round = 0; round < 3; ++round) {
    recording->set<1>(second, b.data());
    CHECK(replay(bench, *recording) == with(b));
    const auto* const block = static_cast<uint32_t* const*>(
        aql::packet_as<hsa_kernel_dispatch_packet_t>(packets_of(bench.device).rbegin()[1])
            .kernarg_address);
    CHECK(block[1] == b.data());
    recording->set<1>(second, a.data());
    CHECK(replay(bench, *recording) == with(a));
  }
}

TEST_CASE("a replay that is partly published keeps its addresses, ranges and plan", "[recording]") {
  RecordingBench bench({.device = {.ring_size = 64, .paused = true}});
  const auto recording = bench.recording();
  Words a, b, c;
  std::vector<StepNode> nodes;
  for (uint32_t i = 0; i < 80; ++i)
    nodes.push_back(record_step(*recording, i, a.data(), (i % 2 == 0 ? b : c).data()));
  CHECK(contains(
      error_of<Error>([&] { recording->replay(bench.device.queue(), Deadline::after(1ms)); }),
      "of 80 packets"));
  CHECK(contains(error_of<Error>([&] { recording->set<1>(nodes[79], b.data()); }), "a patch"));
  bench.device.processor().resume();
  CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  const auto blocks = packets_of(bench.device);
  const auto* const block = static_cast<uint32_t* const*>(
      aql::packet_as<hsa_kernel_dispatch_packet_t>(blocks.back()).kernarg_address);
  CHECK(block[1] == a.data());
  recording->set<1>(nodes[79], b.data());
  CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(block[1] == b.data());
}

TEST_CASE("a recording saved in the middle of a swap counts its ranges for both addresses",
          "[recording-file]") {
  RecordingBench bench({.device = {.ring_size = 256}});
  Words a, b, c;
  Bindings bindings;
  bindings.add("a", &a, sizeof a).add("b", &b, sizeof b).add("c", &c, sizeof c);
  const auto recording = bench.recording();
  const StepNode first = record_step(*recording, 0, a.data(), b.data());
  record_step(*recording, 1, b.data(), c.data());
  recording->set<1>(first, b.data());
  std::stringstream file;
  save_recording(*recording, file, bindings);
  const auto loaded = detail::load_recording(file, {step_kernel().shared_info()}, bindings,
                                             [&] { return bench.recording(); });
  loaded->set<2>(loaded->node<uint32_t, const uint32_t*, uint32_t*>(0), a.data());
  recording->set<2>(first, a.data());
  const auto swapped = planned({step(&b, &a), step(&b, &c)});
  CHECK(replay(bench, *recording) == swapped);
  const std::vector<Access> both{
      {&b, sizeof b, false}, {&a, sizeof a, false}, {&b, sizeof b, true}, {&a, sizeof a, true}};
  CHECK(replay(bench, *loaded) == planned({both, step(&b, &c)}));
  CHECK(planned({both, step(&b, &c)}) != swapped);
}

TEST_CASE("nodes that are replaced and set again and again keep as many ranges as they declare",
          "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256}});
  const auto recording = bench.recording();
  Words a, b, c;
  StepNode one = record_step(*recording, 0, a.data(), a.data());
  StepNode two = record_step(*recording, 1, a.data(), c.data());
  const auto& accesses = detail::RecordingState::of(*recording, "the test").publication().accesses;
  const auto replace = [&](StepNode& node, uint32_t* in, uint32_t* out) {
    node = recording->replace(node, step_kernel(), Grid{kLength}, 2u, in, out);
    node.reads(in, kLength);
  };
  size_t most = 0;
  for (int round = 0; round < 10'000; ++round) {
    replace(one, a.data(), a.data());
    replace(two, a.data(), c.data());
    one.writes(a.data(), kLength);
    two.writes(c.data(), kLength);
    recording->set<2>(one, b.data());
    most = std::max(most, accesses.size());
  }
  CHECK(most <= 20);
  const std::vector<Access> both{
      {&a, sizeof a, false}, {&a, sizeof a, true}, {&b, sizeof b, false}, {&b, sizeof b, true}};
  CHECK(replay(bench, *recording) == planned({both, step(&a, &c)}));
}
