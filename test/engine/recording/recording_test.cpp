// Recordings against the packet processor double: what replays run, and that no replay reads a
// patch made after it.
#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/program/metadata.hpp>
#include <uptempo/recording/recording.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/double_device.hpp"
#include "test/engine/error_code.hpp"
#include "test/engine/recording/recording_bench.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/cost_meter.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

std::vector<uint32_t> sequence(uint32_t count, uint32_t times = 1) {
  std::vector<uint32_t> numbers;
  for (uint32_t i = 0; i < count * times; ++i) numbers.push_back(i % count);
  return numbers;
}

}  // namespace

TEST_CASE("nodes that depend on one another may be given other addresses", "[recording]") {
  RecordingBench bench;
  const auto recording = bench.recording(), other = bench.recording();
  const auto kernel = wide_kernel(0xabc0);
  uint32_t word = 0, another = 0;
  const Node first = recording->dispatch(kernel, Grid{64}, 0u, &word, 1u).after_packets({});
  const Node second = recording->dispatch(kernel, Grid{64}, 1u, &word, 1u).after(first);
  const Node third = second;
  recording->set<1>(third, &another);
  recording->dispatch(kernel, Grid{64}, 2u, &word, 1u).after(third, first).reads(&word, 1);
  // Its range moves with its address; the dependencies stay.
  recording->set<1>(recording->node<uint32_t, const uint32_t*, uint32_t>(2), &another);
  const Node foreign = other->dispatch(kernel, Grid{64}, 0u, &word, 1u);
  CHECK(contains(
      error_of<Error>([&] { recording->dispatch(kernel, Grid{64}, 3u, &word, 1u).after(foreign); }),
      "node 3 after node 0 of another recording"));
  CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(bench.ran == std::vector<uint32_t>{0, 1, 2, 3});
  CHECK(contains(recording->explain(), "packet 1: barrier bit: it depends on packet 0;"));
}

TEST_CASE("a replay runs every node once, in order, with one completion signal", "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256}});
  const auto recording = bench.recording();
  const auto kernel = number_kernel(0xabc0);
  for (uint32_t i = 0; i < 100; ++i) recording->dispatch(kernel, Grid{256}.by(64), i);
  CHECK(recording->size() == 100);
  const Counters before = Counters::now();
  CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  const Counters spent = Counters::now() - before;
  CHECK(bench.ran == sequence(100));
  CHECK(spent.batches == 1);
  CHECK(spent.packets == 100);
  CHECK(spent.completion_signals == 1);
  CHECK(spent.doorbells == 2);  // eight packets, and the rest
  CHECK(spent.system_acquires == 1);
  CHECK(spent.system_releases == 1);
  const auto packets = bench.device.processor().completed();
  for (uint32_t i = 0; i < 100; ++i) {
    const auto packet = dispatch_of(packets[i]);
    REQUIRE(packet.kernel_object == 0xabc0);
    REQUIRE(packet.grid_size_x == 256);
    REQUIRE((packet.completion_signal.handle != 0) == (i == 99));
  }
}

TEST_CASE("replays in flight share the blocks of nodes that are not patched", "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256, .paused = true}});
  const auto recording = bench.recording();
  const auto kernel = number_kernel();
  for (uint32_t i = 0; i < 20; ++i) recording->dispatch(kernel, Grid{64}, i);
  Completion last;
  for (int replay = 0; replay < 10; ++replay) last = *recording->try_replay(bench.device.queue());
  bench.device.processor().resume();
  CHECK(last.wait(soon(), kActiveWait));
  CHECK(bench.ran == sequence(20, 10));
  const auto packets = bench.device.processor().completed();
  REQUIRE(packets.size() == 200);
  for (size_t i = 20; i < packets.size(); ++i)
    REQUIRE(dispatch_of(packets[i]).kernarg_address ==
            dispatch_of(packets[i - 20]).kernarg_address);
}

TEST_CASE("a patch applies from the next replay on, and replays in flight keep their arguments",
          "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256, .paused = true}});
  const auto recording = bench.recording();
  const auto kernel = number_kernel();
  recording->dispatch(kernel, Grid{64}, 1u);
  const Node node = recording->dispatch(kernel, Grid{64}, 2u);
  recording->dispatch(kernel, Grid{64}, 3u);
  Completion last;
  for (uint32_t replay = 0; replay < 15; ++replay) {
    recording->set<0>(node, 100 + replay);
    recording->set<0>(node, 200 + replay);  // before the next replay: the same block
    last = *recording->try_replay(bench.device.queue());
  }
  bench.device.processor().resume();
  CHECK(last.wait(soon(), kActiveWait));
  std::vector<uint32_t> expected;
  for (uint32_t replay = 0; replay < 15; ++replay)
    expected.insert(expected.end(), {1, 200 + replay, 3});
  CHECK(bench.ran == expected);
  const auto packets = bench.device.processor().completed();
  std::set<void*> patched, unpatched;
  for (size_t i = 0; i < packets.size(); ++i)
    (i % 3 == 1 ? patched : unpatched).insert(dispatch_of(packets[i]).kernarg_address);
  CHECK(unpatched.size() == 2);
  CHECK(patched.size() == 15);
}

TEST_CASE("with no replay in flight a patch is written in place", "[recording]") {
  RecordingBench bench;
  const auto recording = bench.recording();
  const Node node = recording->dispatch(number_kernel(), Grid{64}, 0u);
  for (uint32_t replay = 1; replay <= 50; ++replay) {
    CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
    recording->set<0>(node, replay);
  }
  const auto packets = bench.device.processor().completed();
  REQUIRE(packets.size() == 50);
  for (uint32_t i = 0; i < 50; ++i) {
    CHECK(bench.ran[i] == i);
    CHECK(dispatch_of(packets[i]).kernarg_address == dispatch_of(packets[0]).kernarg_address);
  }
}

TEST_CASE("a patch waits for a spare block, and its error names the shortage if none is returned",
          "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256, .paused = true}});
  const auto recording = bench.recording({.spare_kernarg_bytes = 128, .patience = 500ms});
  std::vector<Node<uint32_t>> nodes;
  for (uint32_t i = 0; i < 10; ++i)
    nodes.push_back(recording->dispatch(number_kernel(), Grid{64}, i));
  // 64 blocks: 10 in use, 54 to replace them.
  std::vector<uint32_t> expected;
  uint32_t patches = 0;
  std::string error;
  while (error.empty()) {
    REQUIRE(recording->try_replay(bench.device.queue()));
    for (uint32_t i = 0; i < 10; ++i) expected.push_back(10 * (patches / 10) + i);
    for (uint32_t i = 0; i < 10 && error.empty(); ++i, ++patches) {
      const std::string found = error_of<Error>([&] { recording->set<0>(nodes[i], patches + 10); });
      if (found != "no error") error = found;
    }
  }
  CHECK(patches == 55);
  CAPTURE(error);
  CHECK(contains(error, "a kernarg block of 64 bytes"));
  CHECK(contains(error, "6 replays are in flight and hold 54 blocks"));
  CHECK(contains(error, "spare_kernarg_bytes"));
  bench.device.processor().resume();
  // Now it waits, and a block is returned. Its patience is short.
  for (uint32_t i = 4; i < 10; ++i)
    REQUIRE(eventually_succeeds<Error>([&] { recording->set<0>(nodes[i], 60 + i); }));
  for (uint32_t i = 0; i < 10; ++i) expected.push_back(60 + i);
  CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(bench.ran == expected);
}

TEST_CASE("a grid and a kernel may be changed, and a handle to the replaced node is refused",
          "[recording]") {
  RecordingBench bench;
  const auto recording = bench.recording();
  const auto other = bench.recording();
  const Node first = recording->dispatch(number_kernel(0x1000), Grid{64}, 1u);
  const Node second = recording->dispatch(number_kernel(0x1000), Grid{64}, 2u);
  CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  recording->set_grid(first, Grid{512, 4}.by(64, 2));
  const Node<uint32_t, const uint32_t*, uint32_t> wide =
      recording->replace(second, wide_kernel(0x2000), Grid{128}, 7u, nullptr, 8u);
  CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(bench.ran == std::vector<uint32_t>{1, 2, 1, 7});
  const auto packets = bench.device.processor().completed();
  CHECK(dispatch_of(packets[2]).grid_size_x == 512);
  CHECK(dispatch_of(packets[2]).grid_size_y == 4);
  CHECK(dispatch_of(packets[2]).workgroup_size_y == 2);
  CHECK(dispatch_of(packets[2]).setup == 2);
  CHECK(dispatch_of(packets[3]).kernel_object == 0x2000);
  CHECK(dispatch_of(packets[3]).grid_size_x == 128);
  const auto* const block = static_cast<const uint32_t*>(dispatch_of(packets[3]).kernarg_address);
  CHECK(block[4] == 8);
  CHECK(block[6] == 2);  // hidden: workgroups

  CHECK(contains(error_of<Error>([&] { recording->set<0>(second, 1u); }), "replaced 1 times"));
  CHECK(contains(error_of<Error>([&] { other->set<0>(first, 1u); }), "another recording"));
  CHECK(contains(error_of<Error>([&] { recording->set_grid(first, Grid{4096}.by(2048)); }),
                 "workgroup"));
  recording->set<2>(wide, 9u);
  CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(bench.ran.size() == 6);
}

TEST_CASE("declared accesses are planned once, and again when a patch changes them",
          "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256}});
  const auto recording = bench.recording();
  std::vector<uint32_t> data(300);
  std::vector<Node<uint32_t, const uint32_t*, uint32_t>> nodes;
  for (uint32_t i = 0; i < 3; ++i)
    nodes.push_back(recording->dispatch(wide_kernel(0x1000), Grid{64}, i, data.data() + 100 * i, 0u)
                        .writes(data.data() + 100 * i, 100));
  const auto barriers = [&] {
    CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
    std::string bits;
    auto packets = bench.device.processor().completed();
    std::sort(packets.begin(), packets.end(),
              [](const Completed& a, const Completed& b) { return a.index < b.index; });
    for (size_t i = packets.size() - recording->size(); i < packets.size(); ++i)
      bits += aql::header_flags(packets[i].packet.header()).barrier == aql::Barrier::on ? '1' : '0';
    return bits;
  };
  CHECK(barriers() == "101");  // the last one for its signal
  recording->set<2>(nodes[1], 5u);
  CHECK(barriers() == "101");
  recording->set<1>(nodes[1], data.data());
  CHECK(barriers() == "111");
  recording->set<1>(nodes[1], data.data() + 100);
  CHECK(barriers() == "101");
  const auto replaced =
      recording->replace(nodes[1], wide_kernel(0x1000), Grid{64}, 1u, data.data(), 0u)
          .writes(data.data(), 100);
  CHECK(barriers() == "111");
  CHECK(contains(recording->explain(), "touches what packet 0 touches"));
  recording->replace(replaced, wide_kernel(0x1000), Grid{64}, 1u, data.data() + 100, 0u)
      .writes(data.data() + 100, 100);
  CHECK(barriers() == "101");
  recording->dispatch(wide_kernel(0x1000), Grid{64}, 3u, data.data() + 100, 0u)
      .reads(data.data() + 100, 1);
  CHECK(barriers() == "1001");
}

TEST_CASE(
    "a recording longer than the ring is interrupted by a deadline, continues after it, or is "
    "given up",
    "[recording]") {
  RecordingBench bench({.device = {.ring_size = 16, .paused = true}});
  const auto recording = bench.recording();
  const Node node = recording->dispatch(number_kernel(), Grid{64}, 0u);
  for (uint32_t i = 1; i < 40; ++i) recording->dispatch(number_kernel(), Grid{64}, i);
  CHECK(
      contains(error_of<Error>([&] { throw_refusal(recording->try_replay(bench.device.queue())); }),
               "40 packets without waiting"));
  CHECK(contains(
      error_of<Error>([&] { recording->replay(bench.device.queue(), Deadline::after(1ms)); }),
      "16 slots"));
  RecordingBench elsewhere;
  CHECK(contains(error_of<Error>([&] { recording->set<0>(node, 1u); }), "abandon()"));
  CHECK(contains(error_of<Error>([&] { recording->dispatch(number_kernel(), Grid{64}, 1u); }),
                 "abandon()"));
  CHECK(contains(error_of<Error>([&] { recording->replay(elsewhere.device.queue(), soon()); }),
                 "another queue"));
  bench.device.processor().resume();
  CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(bench.ran == sequence(40));
  CHECK(recording->replays() == 1);

  bench.device.processor().pause();
  CHECK(contains(
      error_of<Error>([&] { recording->replay(bench.device.queue(), Deadline::after(1ms)); }),
      "16 slots"));
  bench.device.processor().resume();
  recording->abandon();
  recording->set<0>(node, 77u);
  CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  REQUIRE(bench.ran.size() >= 80);
  CHECK(bench.ran[bench.ran.size() - 40] == 77);
  CHECK(bench.ran[40] == 0);
}

TEST_CASE("a recording is replayed on several queues, and its destructor waits for all of them",
          "[recording]") {
  RecordingBench one, two;
  auto recording = one.recording();
  const Node node = recording->dispatch(number_kernel(), Grid{64}, 0u);
  for (uint32_t i = 1; i < 10; ++i) recording->dispatch(number_kernel(), Grid{64}, i);
  for (uint32_t replay = 0; replay < 8; ++replay) {
    recording->set<0>(node, 100 * replay);
    recording->replay((replay % 2 == 0 ? one : two).device.queue(), soon());
  }
  recording.reset();
  CHECK(one.ran.size() == 40);
  CHECK(two.ran.size() == 40);
  for (uint32_t i = 0; i < 4; ++i) {
    CHECK(one.ran[10 * i] == 200 * i);
    CHECK(two.ran[10 * i] == 200 * i + 100);
  }
}

TEST_CASE(
    "a recording that ends with a finished packet is completed by a barrier packet, recorded once",
    "[recording]") {
  RecordingBench bench;
  const auto recording = bench.recording();
  recording->dispatch(number_kernel(), Grid{64}, 1u);
  recording->raw(aql::to_packet(
      aql::BarrierAnd{.flags = {aql::Barrier::off, aql::FenceScope::none, aql::FenceScope::none}}));
  for (int i = 0; i < 3; ++i)
    CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(bench.device.processor().completed_count() == 9);
  const Node last = recording->dispatch(number_kernel(), Grid{64}, 2u);
  recording->set<0>(last, 3u);
  CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(bench.device.processor().completed_count() == 13);
  CHECK(bench.ran == std::vector<uint32_t>{1, 1, 1, 1, 3});
  aql::Packet64 invalid{};
  invalid.word[0] = aql::first_word(aql::kInvalidHeader);
  CHECK(contains(error_of<Error>([&] { recording->raw(invalid); }), "type is INVALID"));
}

TEST_CASE("an empty recording completes with the work submitted before it", "[recording]") {
  RecordingBench bench;
  const auto recording = bench.recording();
  CHECK(recording->replay(bench.device.queue(), soon()).ready());
  CHECK(recording->replays() == 0);
}

TEST_CASE("a replay overtakes a batch that is being filled, and leaves it unchanged",
          "[recording]") {
  RecordingBench bench;
  const auto recording = bench.recording();
  for (uint32_t i = 0; i < 5; ++i) recording->dispatch(number_kernel(), Grid{64}, i);
  auto batch = bench.device.batch();
  for (uint32_t i = 0; i < 5; ++i) batch.dispatch(number_kernel(), Grid{64}, 10 + i);
  CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(batch.submit().wait(soon(), kActiveWait));
  CHECK(bench.ran == std::vector<uint32_t>{0, 1, 2, 3, 4, 10, 11, 12, 13, 14});
}

TEST_CASE("replays and patches in the steady state allocate nothing and make no calls",
          "[recording]") {
  RecordingBench bench({.device = {.ring_size = 256}});
  const auto recording = bench.recording();
  std::vector<Node<uint32_t>> nodes;
  std::vector<Node<Arguments>> at_run_time;
  const auto untyped = Kernel<Arguments>::of(number_kernel().shared_info());
  for (uint32_t i = 0; i < 10; ++i) {
    nodes.push_back(recording->dispatch(number_kernel(), Grid{64}, i));
    at_run_time.push_back(recording->dispatch(untyped, Grid{64}, std::as_bytes(std::span(&i, 1))));
  }
  bench.ran.reserve(1 << 17);
  uint32_t number = 0;
  const auto round = [&] {
    Completion last;
    for (int replay = 0; replay < 8; ++replay) {
      for (const auto& node : nodes) recording->set<0>(node, number++);
      for (const auto& node : at_run_time) {
        const auto bytes = std::as_bytes(std::span(&++number, 1));
        if (number % 2 == 0) {
          recording->set(node, 0, bytes);
        } else {
          recording->set(node, bytes);
        }
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

TEST_CASE(
    "patched at random and replayed on two queues, every replay runs the values set before it",
    "[recording]") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    RecordingBench one({.device = {.ring_size = 64, .seed = seed}}),
        two({.device = {.ring_size = 64, .seed = seed + 100}});
    std::mt19937_64 random(seed);
    auto recording = one.recording({.spare_kernarg_bytes = 1 << 10});
    std::vector<Node<uint32_t>> nodes;
    std::vector<uint32_t> now, expected_one, expected_two;
    const auto count = static_cast<uint32_t>(random() % 20 + 1);
    for (uint32_t i = 0; i < count; ++i) {
      nodes.push_back(recording->dispatch(number_kernel(), Grid{64}, i));
      now.push_back(i);
    }
    uint32_t number = 1000;
    for (int step = 0; step < 60; ++step) {
      for (auto patches = random() % 8; patches > 0; --patches) {
        const size_t which = random() % nodes.size();
        now[which] = number;
        if (random() % 5 == 0) {
          nodes[which] =
              recording->replace(nodes[which], number_kernel(),
                                 Grid{static_cast<uint32_t>(64 << random() % 4)}, number);
        } else {
          recording->set<0>(nodes[which], number);
        }
        ++number;
      }
      if (random() % 16 == 0) {
        nodes.push_back(recording->dispatch(number_kernel(), Grid{64}, number));
        now.push_back(number++);
      }
      const bool first = random() % 2 == 0;
      auto& expected = first ? expected_one : expected_two;
      expected.insert(expected.end(), now.begin(), now.end());
      const Completion done = recording->replay((first ? one : two).device.queue(), soon());
      if (random() % 8 == 0) REQUIRE(done.wait(soon(), kActiveWait));
    }
    recording.reset();
    CAPTURE(seed);
    REQUIRE(one.ran == expected_one);
    REQUIRE(two.ran == expected_two);
  }
}

TEST_CASE(
    "a node may be replaced before the first replay, and any number of times with none in flight",
    "[recording]") {
  RecordingBench bench;
  const auto recording = bench.recording({.spare_kernarg_bytes = 256});
  std::vector<Node<uint32_t>> nodes;
  for (uint32_t i = 0; i < 64; ++i)
    nodes.push_back(recording->dispatch(number_kernel(), Grid{64}, i));  // a full chunk
  Node narrow = nodes[0];
  for (uint32_t i = 0; i < 100; ++i) {
    const auto wide = recording->replace(narrow, wide_kernel(0x2000), Grid{64}, i, nullptr, 0u);
    if (i % 10 == 5)
      CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
    narrow = recording->replace(wide, number_kernel(), Grid{64}, i);
    recording->set<0>(nodes[1], i);
  }
  CHECK(bench.ran.size() == 640);
}

TEST_CASE(
    "a recording outlives a failed queue, but never rewrites memory that the lost replay may read",
    "[recording]") {
  RecordingBench failed({.device = {.ring_size = 16, .paused = true}}), working;
  const auto recording = working.recording({.spare_kernarg_bytes = 64, .patience = 1ms});
  const Node node = recording->dispatch(number_kernel(), Grid{64}, 0u);
  for (uint32_t i = 1; i < 20; ++i) recording->dispatch(number_kernel(), Grid{64}, i);
  std::thread failure([&] {
    // the replay has filled the ring and waits for room
    CHECK(
        eventually([&] { return failed.device.processor().memory().write_index().load() == 16; }));
    failed.device.processor().fail(HSA_STATUS_ERROR_INVALID_ISA);
  });
  CHECK(
      contains(error_of([&] { recording->replay(failed.device.queue(), soon()); }), "INVALID_ISA"));
  failure.join();
  CHECK(recording->replays() == 1);
  for (int i = 0; i < 40; ++i)
    CHECK(recording->replay(working.device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(working.ran == sequence(20, 40));
  void* const block = dispatch_of(working.device.processor().completed()[0]).kernarg_address;
  recording->set<0>(node, 100u);
  CHECK(recording->replay(working.device.queue(), soon()).wait(soon(), kActiveWait));
  CHECK(dispatch_of(working.device.processor().completed()[800]).kernarg_address != block);
  std::string error = "no error";
  for (int i = 0; i < 200 && error == "no error"; ++i) {
    CHECK(recording->replay(working.device.queue(), soon()).wait(soon(), kActiveWait));
    error = error_of([&] { recording->set<0>(node, 100u); });
  }
  CHECK(contains(error, "a queue failed before it had finished one"));
  CHECK(contains(error, "record it again"));
}

TEST_CASE(
    "a recording of one finished packet replays any number of times and leaves ring space to "
    "others",
    "[recording]") {
  RecordingBench bench;
  const auto recording = bench.recording();
  recording->raw(aql::to_packet(aql::BarrierAnd{}));
  for (uint64_t replay = 1; replay <= 3; ++replay) {
    CAPTURE(replay);
    auto batch = bench.device.batch();
    for (uint32_t i = 0; i < 5; ++i) batch.dispatch(number_kernel(), Grid{64}, i);
    const Completion done = recording->replay(bench.device.queue(), soon());
    REQUIRE(done.wait(soon(), kActiveWait));
    CHECK(recording->size() == 2);
    CHECK(bench.device.processor().completed_count() == 7 * replay - 5);
    REQUIRE(batch.submit().wait(soon(), kActiveWait));
  }
  CHECK(bench.ran == sequence(5, 3));
}

TEST_CASE("a node with a new grid keeps its fence overrides", "[recording]") {
  RecordingBench bench;
  const auto recording = bench.recording();
  for (uint32_t i = 0; i < 2; ++i) recording->dispatch(number_kernel(), Grid{64}, i);
  const Node node =
      recording->dispatch(number_kernel(), Grid{64}, 2u).observed_by(Observer::system);
  recording->dispatch(number_kernel(), Grid{64}, 3u);
  const auto header_of_third = [&] {
    REQUIRE(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
    const auto packets = bench.device.processor().completed();
    return packets[packets.size() - 2].packet.header();
  };
  const uint16_t before = header_of_third();
  REQUIRE(aql::header_flags(before).release == aql::FenceScope::system);
  recording->set_grid(node, Grid{128});
  CHECK(header_of_third() == before);
}

TEST_CASE("the first dispatch after a finished packet acquires at system scope, also after a patch",
          "[recording]") {
  for (const bool replaced : {false, true}) {
    RecordingBench bench;
    const auto recording = bench.recording();
    recording->raw(aql::to_packet(aql::BarrierAnd{
        .flags = {aql::Barrier::off, aql::FenceScope::none, aql::FenceScope::none}}));
    const Node<uint32_t> node = recording->dispatch(number_kernel(), Grid{64}, 2u);
    recording->dispatch(number_kernel(), Grid{64}, 3u);
    CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
    if (replaced)
      recording->replace(node, number_kernel(0x2000), Grid{64}, 5u);
    else
      recording->set_grid(node, Grid{128});
    CHECK(recording->replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
    const auto packets = bench.device.processor().completed();
    REQUIRE(packets.size() == 6);
    CHECK(aql::header_flags(packets[1].packet.header()).acquire == aql::FenceScope::system);
    CAPTURE(replaced);
    CHECK(aql::header_flags(packets[4].packet.header()).acquire == aql::FenceScope::system);
  }
}
