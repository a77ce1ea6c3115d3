// The packets of a run, without a device: their order, doorbells, dependencies and signals.
#include "tools/fence_scope/run/run_packets.hpp"

#include <stdexcept>
#include <string>

#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using aql::Barrier;
using aql::FenceScope;
using Role = Bench::Packet::Role;

namespace {

constexpr aql::HeaderFlags kAgentFences{Barrier::on, FenceScope::agent, FenceScope::agent};
constexpr aql::HeaderFlags kSystemFences{Barrier::off, FenceScope::system, FenceScope::system};
constexpr aql::HeaderFlags kNothing{Barrier::off, FenceScope::none, FenceScope::none};
constexpr hsa_signal_t kGate{0x100};

// Two steps of queue 0; a copy that waits for the first; a step of queue 1 that waits for the copy.
struct Example {
  Example() {
    sequence.steps = {{.name = "first"},
                      {.name = "second"},
                      {.kind = Step::Kind::copy, .name = "copy", .after = {0}},
                      {.name = "last", .queue = 1, .after = {2}}};
    sequence.steps[2].to.bytes = 64;
    for (uint64_t i = 0; i < sequence.steps.size(); ++i)
      dispatches.push_back({.grid = {64}, .workgroup = {64}, .kernel_object = 0x1000 + i});
    signals = {
        .gate = kGate, .closing = {{{0x200}, {0x201}}}, .of_step = {{0x300}, {}, {0x302}, {}}};
    headers = {kAgentFences, kSystemFences, {}, kAgentFences};
  }
  std::vector<Action> actions(Release release) const {
    return fence_scope::actions(sequence, dispatches, signals, headers, release);
  }
  Sequence sequence;
  std::vector<aql::KernelDispatch> dispatches;
  SignalHandles signals;
  Headers headers;
};

std::string in_words(const Action& action, const Sequence& sequence) {
  if (action.packets.empty()) return sequence.steps[action.copy].name;
  std::string text = std::to_string(action.queue) + ":";
  for (const Bench::Packet& role : action.roles)
    text += " " + fence_scope::in_words(role, sequence);
  return text;
}

aql::Packet64 barrier(aql::HeaderFlags flags, std::array<hsa_signal_t, 5> dependencies,
                      hsa_signal_t completion = {}) {
  return aql::to_packet(aql::BarrierAnd{flags, dependencies, completion});
}

}  // namespace

TEST_CASE("a copy divides a run's packets; those between copies share a doorbell of their queue",
          "[run_packets]") {
  const Example example;
  const std::vector<Action> all = example.actions(Release::ungated);
  REQUIRE(all.size() == 4);
  CHECK(in_words(all[0], example.sequence) == "0: 'first' 'second'");
  CHECK(in_words(all[1], example.sequence) == "copy");
  CHECK(in_words(all[2], example.sequence) == "0: closing packet");
  CHECK(in_words(all[3], example.sequence) == "1: 'last' waits 'last' closing packet");
}

TEST_CASE("each used queue of a gated run starts with a packet that waits for the gate",
          "[run_packets]") {
  Example example;
  const std::vector<Action> all = example.actions(Release::gated);
  REQUIRE(all.size() == 5);
  CHECK(in_words(all[0], example.sequence) == "0: gate 'first' 'second'");
  CHECK(in_words(all[1], example.sequence) == "1: gate");
  CHECK(all[0].packets[0] == barrier(kNothing, {kGate}));
  CHECK(all[1].packets[0] == all[0].packets[0]);

  example.sequence.steps[3].queue = 0;
  for (const Action& action : example.actions(Release::gated)) CHECK(action.queue == 0);
  CHECK(is_used(example.sequence, 0));
  CHECK_FALSE(is_used(example.sequence, 1));
}

TEST_CASE("a dispatch has its step's header and signal, and all else unchanged", "[run_packets]") {
  const Example example;
  const std::vector<Action> all = example.actions(Release::ungated);
  aql::KernelDispatch first = example.dispatches[0], second = example.dispatches[1];
  first.flags = kAgentFences;
  first.completion_signal = {0x300};
  second.flags = kSystemFences;
  CHECK(all[0].packets[0] == aql::to_packet(first));
  CHECK(all[0].packets[1] == aql::to_packet(second));
}

TEST_CASE("the closing packet has a barrier bit, no fences and its queue's signal",
          "[run_packets]") {
  const Example example;
  const std::vector<Action> all = example.actions(Release::ungated);
  constexpr aql::HeaderFlags closing{Barrier::on, FenceScope::none, FenceScope::none};
  CHECK(all[2].packets[0] == barrier(closing, {}, {0x200}));
  CHECK(all[3].packets[2] == barrier(closing, {}, {0x201}));
}

TEST_CASE("a step that waits for more than five others has a packet for each five of them",
          "[run_packets]") {
  Sequence sequence;
  SignalHandles signals;
  for (uint64_t i = 0; i < 7; ++i) {
    sequence.steps.push_back({.name = "of queue 1", .queue = 1});
    signals.of_step.push_back({0x300 + i});
  }
  sequence.steps.push_back({.name = "join", .after = {0, 1, 2, 3, 4, 5, 6}});
  signals.of_step.emplace_back();
  const std::vector<aql::KernelDispatch> dispatches(8);
  const std::vector<Action> all =
      actions(sequence, dispatches, signals, Headers(8), Release::ungated);
  REQUIRE(all.size() == 2);
  CHECK(in_words(all[0], sequence) == "0: 'join' waits 'join' waits 'join' closing packet");
  CHECK(all[0].packets[0] == barrier(kNothing, {{{0x300}, {0x301}, {0x302}, {0x303}, {0x304}}}));
  CHECK(all[0].packets[1] == barrier(kNothing, {{{0x305}, {0x306}}}));
  REQUIRE(all[0].roles[1].after.size() == 2);
  CHECK(all[0].roles[1].after[0] == 5);
  CHECK(most_packets(sequence, 0) == all[0].packets.size() + 1);  // and a gate
  CHECK(most_packets(sequence, 1) == all[1].packets.size() + 1);
}

TEST_CASE("packets are listed by queue, numbered from where their action was published",
          "[run_packets]") {
  const Example example;
  std::vector<Action> all = example.actions(Release::ungated);
  all[0].roles[0].index = 10;
  all[2].roles[0].index = 12;
  all[2].roles[0].published_ns = 5;
  all[3].roles[0].index = 30;
  std::vector<uint64_t> indices;
  for (const Bench::Packet& packet : published(all)) indices.push_back(packet.index);
  CHECK(indices == std::vector<uint64_t>{10, 11, 12, 30, 31, 32});
  CHECK(published(all)[2].published_ns == 5);
  CHECK_FALSE(published(all)[1].published_ns.has_value());
}

TEST_CASE("headers for another number of steps are refused", "[run_packets]") {
  Example example;
  example.headers.pop_back();
  CHECK_THROWS_AS(example.actions(Release::ungated), std::invalid_argument);
}

TEST_CASE("a dry run counts packets of all kinds, doorbells, signals and the dispatches' fences",
          "[dry_run]") {
  const Example example;
  const DeviceCounts counts = counts_of(example.actions(Release::ungated), example.sequence,
                                        example.headers, /*step_signals=*/2);
  CHECK(counts.packets == 6);
  CHECK(counts.doorbells == 3);
  CHECK(counts.signal_updates == 4);  // of two steps and two queues
  CHECK(counts.interrupts == 3);      // of two queues and the copy
  CHECK(counts.barrier_bits == 2);
  CHECK(counts.agent_acquires == 2);
  CHECK(counts.agent_releases == 2);
  CHECK(counts.system_acquires == 1);
  CHECK(counts.system_releases == 1);
  CHECK_FALSE(counts.l2_lines_written_back.has_value());
}

TEST_CASE("a dry run shows each packet with its queue and role, and copies in between",
          "[dry_run]") {
  const Example example;
  const std::string text = text_of(example.actions(Release::ungated), example.sequence);
  const char* const parts[] = {
      "queue 0: 'first'\n",        "queue 0: 'second'\n",     "copy engine: 'copy', 64 bytes\n",
      "queue 0: closing packet\n", "queue 1: 'last' waits\n", "queue 1: 'last'\n",
      "queue 1: closing packet\n"};
  size_t from = 0;
  for (const char* const part : parts) {
    CAPTURE(part);
    from = text.find(part, from);
    REQUIRE(from != std::string::npos);
    ++from;
  }
}
