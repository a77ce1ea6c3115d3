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
