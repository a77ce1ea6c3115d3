// The ring content of a recording that was replayed and patched, compared with a new recording of
// the same final state.
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <uptempo/program/metadata.hpp>
#include <uptempo/recording/recording.hpp>
#include "test/engine/double_device.hpp"
#include "test/engine/recording/recording_bench.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

enum class Kind : uint8_t { number, other_number, wide, local, nothing, finished };
constexpr uint32_t kKinds = 5;  // except for finished packets, which cannot be patched

enum class Declared : uint8_t { nothing, without_barrier, fences, observed, untouched };
constexpr uint32_t kDeclarations = 5;

// Everything that defines a node.
struct Content {
  Kind kind = Kind::number;
  uint32_t grid = 64;
  uint32_t number = 0;
  Declared declared = Declared::nothing;
};

using Number = Kernel<uint32_t>;
using Wide = Kernel<uint32_t, const uint32_t*, uint32_t>;
using Local = Kernel<uint32_t, LocalBytes>;
using Nothing = Kernel<>;

struct Kernels {
  Number number = number_kernel(0x1000), other_number = number_kernel(0x2000);
  Wide wide = wide_kernel(0x3000);
  Local local = kernel_of<uint32_t, LocalBytes>(
      {.name = "local",
       .object = 0x4000,
       .kernarg_bytes = 8,
       .arguments = {argument(ArgumentKind::by_value, 0, 4),
                     argument(ArgumentKind::dynamic_shared_pointer, 4, 4)}});
  Nothing nothing = kernel_of<>({.name = "nothing", .object = 0x5000});
};

struct Bytes {
  uint32_t offset, size;
};
// The arguments in a kernarg block, explicit and hidden. Bytes between them are unspecified.
std::vector<Bytes> arguments_of(Kind kind) {
  switch (kind) {
    case Kind::number:
    case Kind::other_number:
      return {{0, 4}, {8, 2}};
    case Kind::wide:
      return {{0, 4}, {8, 8}, {16, 4}, {24, 4}};
    case Kind::local:
      return {{0, 4}, {4, 4}};
    case Kind::nothing:
    case Kind::finished:
      break;
  }
  return {};
}

const uint32_t* pointer_of(uint32_t number) {
  return reinterpret_cast<const uint32_t*>(uintptr_t{number} << 20);
}
LocalBytes local_of(uint32_t number) { return {16 * (number % 7)}; }

// A device of its own, with kernarg memory for a recording.
struct Bench {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  explicit Bench(uint32_t ring_size, const RecordingOptions& options)
      : memory(8192),
        device({.device = {.ring_size = ring_size, .duration = [](const auto&) { return 1u; }},
                .signals = 512}),
        recording(device.recording({memory.front().bytes, memory.size() * sizeof(Line)}, options)) {
  }

  std::vector<Line> memory;
  DoubleDevice device;
  std::unique_ptr<Recording> recording;
};

template <class Ref>
void declare(Ref node, Declared declared) {
  switch (declared) {
    case Declared::nothing:
      return;
    case Declared::without_barrier:
      node.without_barrier();
      return;
    case Declared::fences:
      node.fences(aql::FenceScope::none, aql::FenceScope::system);
      return;
    case Declared::observed:
      node.observed_by(Observer::system);
      return;
    case Declared::untouched:
      node.touches_nothing();
      return;
  }
}

// Calls f(kernel, arguments...) for the content's kernel.
template <class F>
auto with_dispatch(const Content& content, F&& f) {
  static const Kernels kernels;
  switch (content.kind) {
    case Kind::number:
      return f(kernels.number, content.number);
    case Kind::other_number:
      return f(kernels.other_number, content.number);
    case Kind::wide:
      return f(kernels.wide, content.number, pointer_of(content.number), content.number + 1);
    case Kind::local:
      return f(kernels.local, content.number, local_of(content.number));
    case Kind::nothing:
    case Kind::finished:
      break;
  }
  return f(kernels.nothing);
}

template <class... Args>
Node<Args...> node_for(const Recording& recording, size_t index, const Kernel<Args...>&) {
  return recording.node<Args...>(index);
}

void record(Recording& recording, const Content& content) {
  if (content.kind == Kind::finished)
    return recording.raw(aql::to_packet(aql::BarrierAnd{.flags = {aql::Barrier::off, {}, {}}}));
  with_dispatch(content, [&](const auto& kernel, const auto&... arguments) {
    declare(recording.dispatch(kernel, Grid{content.grid}, arguments...), content.declared);
  });
}

void replace(Recording& recording, size_t index, const Content& old, const Content& content) {
  with_dispatch(old, [&](const auto& old_kernel, const auto&...) {
    const auto node = node_for(recording, index, old_kernel);
    with_dispatch(content, [&](const auto& kernel, const auto&... arguments) {
      declare(recording.replace(node, kernel, Grid{content.grid}, arguments...), content.declared);
    });
  });
}

void set_grid(Recording& recording, size_t index, const Content& content) {
  with_dispatch(content, [&](const auto& kernel, const auto&...) {
    recording.set_grid(node_for(recording, index, kernel), Grid{content.grid});
  });
}

// Sets another number in a node whose kernel takes one.
bool set_number(Recording& recording, size_t index, Content& content, uint32_t number) {
  switch (content.kind) {
    case Kind::number:
    case Kind::other_number:
      recording.set<0>(recording.node<uint32_t>(index), number);
      break;
    case Kind::wide: {
      if (content.declared == Declared::untouched)
        return false;  // addresses of declared nodes stay
      const auto node = recording.node<uint32_t, const uint32_t*, uint32_t>(index);
      recording.set<0>(node, number);
      recording.set<1>(node, pointer_of(number));
      recording.set<2>(node, number + 1);
      break;
    }
    case Kind::local:  // the LDS array's size is part of the packet
    case Kind::nothing:
    case Kind::finished:
      return false;
  }
  content.number = number;
  return true;
}

// The packets that a replay stored in the ring, in ring order, without the barrier packets at the
// ends of the parts of a replay that is longer than the ring.
std::vector<aql::Packet64> replayed(Bench& bench) {
  const uint64_t from = bench.device.state().writer().next_index();
  const Completion done = bench.recording->replay(bench.device.queue(), soon());
  // Sleeps, since the packet processor needs the core.
  const uint64_t end = bench.device.state().writer().next_index();
  REQUIRE(bench.device.processor().wait_completed(end));
  REQUIRE(done.wait(soon(), kActiveWait));  // its signal follows
  const std::vector<Completed> all = bench.device.processor().completed();
  std::vector<aql::Packet64> packets(end - from);
  for (const Completed& completed : all)
    if (completed.index >= from) packets[completed.index - from] = completed.packet;
  const aql::Packet64 last = packets.back();
  packets.pop_back();
  std::erase_if(packets, [](const aql::Packet64& packet) {
    return aql::packet_type(packet.header()) == aql::PacketType::barrier_and &&
           aql::packet_as<hsa_barrier_and_packet_t>(packet).completion_signal.handle != 0;
  });
  packets.push_back(last);
  return packets;
}

// Compares the packets of two recordings: equal except for the addresses of blocks and signals,
// with equal arguments in the blocks.
std::string difference(const aql::Packet64& one, const aql::Packet64& other, Kind kind) {
  aql::Packet64 a = one, b = other;
  const auto of_a = aql::packet_as<hsa_kernel_dispatch_packet_t>(a),
             of_b = aql::packet_as<hsa_kernel_dispatch_packet_t>(b);
  if ((of_a.completion_signal.handle != 0) != (of_b.completion_signal.handle != 0)) return "signal";
  if ((of_a.kernarg_address != nullptr) != (of_b.kernarg_address != nullptr)) return "block";
  for (const Bytes& bytes : arguments_of(kind)) {
    if (std::memcmp(static_cast<const std::byte*>(of_a.kernarg_address) + bytes.offset,
                    static_cast<const std::byte*>(of_b.kernarg_address) + bytes.offset,
                    bytes.size) != 0)
      return "argument at " + std::to_string(bytes.offset);
  }
  for (aql::Packet64* packet : {&a, &b}) {
    packet->set_kernarg_address(nullptr);
    packet->set_completion_signal({0});
  }
  for (size_t word = 0; word < a.word.size(); ++word)
    if (a.word[word] != b.word[word]) return "word " + std::to_string(word);
  return {};
}

void check_like_a_fresh_one(Bench& bench, const std::vector<Content>& contents, uint32_t ring_size,
                            const RecordingOptions& options) {
  Bench fresh(ring_size, options);
  for (const Content& content : contents) record(*fresh.recording, content);
  const auto expected = replayed(fresh), found = replayed(bench);
  // After a finished packet at the end, a barrier packet carries the completion signal.
  const size_t closing = contents.back().kind == Kind::finished ? 1 : 0;
  REQUIRE(found.size() == contents.size() + closing);
  REQUIRE(expected.size() == found.size());
  if (closing != 0) REQUIRE(difference(found.back(), expected.back(), Kind::finished) == "");
  for (size_t i = 0; i < contents.size(); ++i) {
    CAPTURE(i);
    REQUIRE(difference(found[i], expected[i], contents[i].kind) == "");
  }
}

// Mostly one kernel in a row, so that there are runs to break. Unless `silent`, some nodes have
// declarations and others are finished packets.
std::vector<Content> some_contents(std::mt19937_64& random, size_t count, bool undeclared) {
  std::vector<Content> contents;
  Content content;
  while (contents.size() < count) {
    if (random() % 40 == 0) content.kind = static_cast<Kind>(random() % kKinds);
    if (random() % 40 == 0) content.grid = static_cast<uint32_t>(64 << random() % 3);
    content.number = static_cast<uint32_t>(random() % 100'000);
    content.declared = undeclared || random() % 3 != 0
                           ? Declared::nothing
                           : static_cast<Declared>(random() % kDeclarations);
    contents.push_back(content);
    if (!undeclared && count > 1 && random() % 16 == 0) contents.back().kind = Kind::finished;
  }
  return contents;
}

void patch_some(Recording& recording, std::vector<Content>& contents, std::mt19937_64& random,
                bool undeclared) {
  for (auto patches = random() % 10; patches > 0; --patches) {
    const size_t index = random() % contents.size();
    Content& content = contents[index];
    if (content.kind == Kind::finished) continue;
    switch (random() % 4) {
      case 0:
        content.grid = static_cast<uint32_t>(64 << random() % 3);
        set_grid(recording, index, content);
        break;
      case 1: {
        const Content old = content;
        content = some_contents(random, 1, undeclared)[0];
        content.kind = static_cast<Kind>(random() % kKinds);
        replace(recording, index, old, content);
        break;
      }
      default:
        set_number(recording, index, content, static_cast<uint32_t>(random() % 100'000));
    }
  }
}

void replay_patch_and_compare(bool undeclared) {
  const std::array<RecordingOptions, 3> ways{
      RecordingOptions{},
      {.timing = Timing::batch, .chunking = {.lead = 0, .chunk = 50}},
      {.timing = Timing::each}};
  for (const size_t count : {1u, 2u, 3u, 63u, 64u, 65u, 66u, 129u, 300u}) {
    for (const uint32_t ring_size : {64u, 1024u}) {
      for (uint64_t seed = 1; seed <= 6; ++seed) {
        CAPTURE(count, ring_size, seed);
        std::mt19937_64 random(seed * 1000 + count);
        const RecordingOptions& options = ways[seed % ways.size()];
        Bench bench(ring_size, options);
        std::vector<Content> contents = some_contents(random, count, undeclared);
        for (const Content& content : contents) record(*bench.recording, content);
        check_like_a_fresh_one(bench, contents, ring_size, options);
        for (int round = 0; round < 5; ++round) {
          patch_some(*bench.recording, contents, random, undeclared);
          // Some patches run with a replay in flight, so their nodes move to other blocks.
          if (random() % 2 == 0) {
            bench.recording->replay(bench.device.queue(), soon());
            patch_some(*bench.recording, contents, random, undeclared);
          }
          check_like_a_fresh_one(bench, contents, ring_size, options);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("Invariant 2: a patched recording stores the same packets in the ring as a new one",
          "[invariant]") {
  SECTION("without declarations") { replay_patch_and_compare(true); }
  SECTION("with fences and finished packets") { replay_patch_and_compare(false); }
}
