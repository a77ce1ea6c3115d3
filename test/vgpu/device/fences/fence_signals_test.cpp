// The order that signals, doorbells and the host's knowledge give. The checker assumes that the
// host knows everything announced, and no more.
#include "fence_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;

namespace {
constexpr Header kProduces{.release = FenceScope::agent, .signal = kDone};
constexpr Header kConsumes{.acquire = FenceScope::agent};
constexpr const char* kRace = "unordered RAW fill->sum 0x0+4 possible";
}  // namespace

TEST_CASE("a producer and a consumer in two queues need a dependency") {
  for (const bool dependency : {true, false}) {
    Program program;
    const ActorId producer = program.compute(), consumer = program.compute();
    program.ring(producer);
    program.ring(consumer, 2);
    program.dispatch(producer, "fill", kProduces, {writes(kCoarse)});
    if (dependency) program.barrier_packet(consumer, {}, {kDone});
    program.dispatch(consumer, "sum", kConsumes, {reads(kCoarse)});
    CAPTURE(dependency);
    CHECK(program.found() == (dependency ? "" : kRace));
  }
}

TEST_CASE("the producer may overwrite the consumer's input only after it waits for the consumer") {
  constexpr uint64_t kRead = 2;
  for (const bool dependency : {true, false}) {
    Program program;
    const ActorId producer = program.compute(), consumer = program.compute();
    program.ring(producer, 3);
    program.ring(consumer, 2);
    program.dispatch(producer, "fill", kProduces, {writes(kCoarse)});
    program.barrier_packet(consumer, {}, {kDone});
    program.dispatch(consumer, "sum", {.acquire = FenceScope::agent, .signal = kRead},
                     {reads(kCoarse)});
    if (dependency) program.barrier_packet(producer, {}, {kRead});
    program.dispatch(producer, "refill", {.barrier = true}, {writes(kCoarse)});
    CAPTURE(dependency);
    CHECK(program.found() == (dependency ? "" : "unordered WAR refill->sum 0x0+4 possible"));
  }
}

TEST_CASE("a doorbell carries the completions announced before it, and no later ones") {
  for (const bool waits : {true, false}) {
    Program program;
    const ActorId producer = program.compute(), consumer = program.compute();
    program.ring(producer);
    if (!waits) program.ring(consumer);
    program.dispatch(producer, "fill", kProduces, {writes(kCoarse)});
    if (waits) program.ring(consumer);
    program.dispatch(consumer, "sum", kConsumes, {reads(kCoarse)});
    CAPTURE(waits);
    CHECK(program.found() == (waits ? "" : kRace));
  }
}

TEST_CASE("the end of a dispatch without a completion signal is unknown to the host") {
  Program program;
  const ActorId producer = program.compute(), consumer = program.compute();
  program.dispatch(producer, "fill", {.release = FenceScope::system}, {writes(kCoarse)});
  program.ring(consumer);
  program.dispatch(consumer, "sum", kConsumes, {reads(kCoarse)});
  CHECK(program.found() == kRace);
}

TEST_CASE("a doorbell for several packets counts for all of them") {
  Program program;
  const ActorId producer = program.compute(), consumer = program.compute();
  program.ring(consumer, 2);
  program.dispatch(consumer, "first", {});
  program.dispatch(producer, "fill", kProduces, {writes(kCoarse)});
  program.dispatch(consumer, "sum", kConsumes, {reads(kCoarse)});
  CHECK(program.found() == kRace);
  program.clear();
  program.ring(consumer);
  program.dispatch(consumer, "later", kConsumes, {reads(kCoarse)});
  CHECK(program.found() == "");
}

TEST_CASE("with several producers, the host is assumed to know everything announced so far") {
  for (const bool several : {true, false}) {
    Program program;
    const ActorId producer = program.compute(), consumer = program.compute();
    program.checker().doorbell(consumer, 1, uptempo::vgpu::host_clock_ns());
    if (several) program.checker().doorbell(consumer, 0, uptempo::vgpu::host_clock_ns());
    program.dispatch(producer, "fill", kProduces, {writes(kCoarse)});
    Running sum =
        program.checker().launch(consumer, {.index = 0, .acquire = FenceScope::agent}, "sum");
    sum.accesses->add_read(kCoarse, 4, Path::vector, 0);
    program.checker().end(sum, {.index = 0, .acquire = FenceScope::agent}, Program::kind_of);
    CAPTURE(several);
    CHECK(program.found() == (several ? "" : kRace));
  }
}

TEST_CASE("a signal that the host has stored to passes on what the host knew") {
  constexpr uint64_t kGate = 7;
  for (const bool announced : {true, false}) {
    Program program;
    const ActorId producer = program.compute(), consumer = program.compute();
    program.ring(producer);
    program.ring(consumer, 2);
    program.dispatch(producer, "fill",
                     {.release = FenceScope::agent, .signal = announced ? kDone : 0},
                     {writes(kCoarse)});
    program.host_stores_signal(kGate, 0);
    program.barrier_packet(consumer, {}, {kGate});
    program.dispatch(consumer, "sum", kConsumes, {reads(kCoarse)});
    CAPTURE(announced);
    CHECK(program.found() == (announced ? "" : kRace));
  }
}

TEST_CASE("a reused signal does not order by its old completions") {
  for (const bool old : {true, false}) {
    Program program;
    const ActorId first = program.compute(), second = program.compute(),
                  consumer = program.compute();
    program.ring(first);
    program.ring(second);
    program.ring(consumer, 2);
    program.dispatch(first, "fill", kProduces, {writes(kCoarse)});
    program.host_stores_signal(kDone, 1);
    program.dispatch(second, "other", kProduces, {writes(kCoarse + 64)});
    program.barrier_packet(consumer, {}, {kDone});
    program.dispatch(consumer, "sum", kConsumes, {reads(old ? kCoarse : kCoarse + 64)});
    CAPTURE(old);
    CHECK(program.found() == (old ? kRace : ""));
  }
}

TEST_CASE("a signal that several packets decrement orders a waiter after all of them") {
  Program program;
  const ActorId first = program.compute(), second = program.compute(), consumer = program.compute();
  program.host_stores_signal(kDone, 2);
  program.ring(consumer, 2);
  program.dispatch(first, "a", kProduces, {writes(kCoarse)});
  program.dispatch(second, "b", kProduces, {writes(kCoarse + 64)});
  program.barrier_packet(consumer, {}, {kDone});
  program.dispatch(consumer, "sum", kConsumes, {reads(kCoarse, 128)});
  CHECK(program.found() == "");
}

TEST_CASE("a barrier-OR packet orders only after the signals that it found satisfied") {
  Program program;
  const ActorId first = program.compute(), second = program.compute(), consumer = program.compute();
  program.ring(consumer, 2);
  program.dispatch(first, "a", {.release = FenceScope::agent, .signal = 1}, {writes(kCoarse)});
  program.dispatch(second, "b", {.release = FenceScope::agent, .signal = 2},
                   {writes(kCoarse + 64)});
  program.barrier_packet(consumer, {}, {1});
  program.dispatch(consumer, "sum", kConsumes, {reads(kCoarse, 128)});
  CHECK(program.found() == "unordered RAW b->sum 0x40+4 possible");
}

TEST_CASE(
    "packets after a barrier packet without the barrier bit follow its dependencies, not its "
    "queue") {
  Program program;
  const ActorId producer = program.compute(), consumer = program.compute();
  program.ring(consumer, 3);
  program.dispatch(producer, "fill", kProduces, {writes(kCoarse)});
  program.dispatch(consumer, "own", {.release = FenceScope::agent}, {writes(kCoarse + 64)});
  program.barrier_packet(consumer, {}, {kDone});
  program.dispatch(consumer, "sum", kConsumes, {reads(kCoarse, 128)});
  CHECK(program.found() == "unordered RAW own->sum 0x40+4 possible");
}

TEST_CASE("a batch that follows a host wait is ordered after the whole previous batch") {
  for (const bool covers : {true, false}) {
    Program program;
    const ActorId queue = program.compute();
    program.ring(queue, 2);
    program.dispatch(queue, "fill", {.release = FenceScope::agent}, {writes(kCoarse)});
    // `covers`: the packet whose completion the host sees waits for the previous one.
    program.dispatch(queue, "last", {.barrier = covers, .signal = kDone});
    program.ring(queue);
    program.dispatch(queue, "sum", kConsumes, {reads(kCoarse)});
    CAPTURE(covers);
    CHECK(program.found() == (covers ? "" : kRace));
  }
}

// ---- in-kernel synchronisation

TEST_CASE("dispatches that count in one place by atomics may overlap") {
  const Touch counter = writes(kCoarse, 4, Path::synchronising);
  Program program;
  const ActorId a = program.compute(), b = program.compute();
  program.ring(a);
  program.ring(b);
  auto first = program.launch(a, "a", {}, {reads(kCoarse, 4, Path::synchronising), counter});
  auto second = program.launch(b, "b", {}, {reads(kCoarse, 4, Path::synchronising), counter});
  program.end(first);
  program.end(second);
  CHECK(program.found() == "");
}

TEST_CASE("a flag that is read past L1 excuses only the pair that meets there") {
  for (const bool flag : {true, false}) {
    Program program;
    const ActorId producer = program.compute(), consumer = program.compute(),
                  third = program.compute();
    for (const ActorId queue : {producer, consumer, third}) program.ring(queue);
    auto fill = program.launch(producer, "fill", {}, {writes(kCoarse), writes(kFine)});
    auto sum = program.launch(consumer, "sum", {}, {reads(kCoarse)});
    if (flag) program.touch(sum, {reads(kFine, 4, Path::synchronising)});
    auto other = program.launch(third, "other", {}, {reads(kCoarse)});
    program.end(fill);
    program.end(sum);
    program.end(other);
    CAPTURE(flag);
    CHECK(program.found() ==
          (flag ? "unordered RAW fill->other 0x0+4 possible"
                : std::string(kRace) + "; unordered RAW fill->other 0x0+4 possible"));
  }
}

TEST_CASE("a load past L1 beside the data does not excuse a write to the data") {
  Program program;
  const ActorId a = program.compute(), b = program.compute();
  program.ring(a);
  program.ring(b);
  auto sum = program.launch(a, "sum", {}, {reads(kCoarse, 8)});
  auto polls =
      program.launch(b, "polls", {}, {reads(kCoarse, 4, Path::synchronising), writes(kCoarse + 4)});
  program.end(sum);
  program.end(polls);
  CHECK(program.found() == "unordered WAR polls->sum 0x4+4 possible");
}

TEST_CASE("order that a dispatch gained inside its kernel is not passed on by its packet") {
  Program program;
  const ActorId producer = program.compute(), consumer = program.compute();
  for (const ActorId queue : {producer, consumer}) program.ring(queue, 2);
  program.dispatch(producer, "fill", {.release = FenceScope::agent},
                   {writes(kCoarse), writes(kFine)});
  program.dispatch(consumer, "sum", {.release = FenceScope::agent},
                   {reads(kFine, 4, Path::synchronising), reads(kCoarse)});
  program.dispatch(consumer, "behind", {.barrier = true, .acquire = FenceScope::agent},
                   {reads(kCoarse)});
  CHECK(program.found() == "unordered RAW fill->behind 0x0+4 possible");
}

TEST_CASE("copies need order, also after atomics") {
  for (const bool dependency : {true, false}) {
    Program program;
    const ActorId queue = program.compute(), sdma = program.sdma();
    program.ring(queue);
    program.ring_sdma(sdma, 2);
    program.dispatch(
        queue, "count", {.release = FenceScope::system, .signal = kDone},
        {reads(kLocal, 4, Path::synchronising), writes(kLocal, 4, Path::synchronising)});
    if (dependency) program.sdma_waits(sdma, kDone);
    program.copy(sdma, "copy", kLocal, kFine);
    CAPTURE(dependency);
    CHECK(program.found() == (dependency ? "" : "unordered RAW count->copy 0x0+4 possible"));
  }
}

TEST_CASE("an atomic on a copy engine's data needs a system acquire, because it executes in L2") {
  for (const FenceScope acquire : {FenceScope::system, FenceScope::agent}) {
    Program program;
    const ActorId queue = program.compute(), sdma = program.sdma();
    program.dispatch(queue, "early", {.signal = kDone}, {reads(kLocal)});
    program.fill(sdma, "fill", kLocal);
    program.sdma_signals(sdma, 2);
    program.dispatch(
        queue, "count", {.acquire = acquire},
        {reads(kLocal, 4, Path::synchronising), writes(kLocal, 4, Path::synchronising)});
    CAPTURE(static_cast<int>(acquire));
    CHECK(program.found() ==
          (acquire == FenceScope::system ? "" : "stale RAW fill->count 0x0+4 possible"));
  }
}

TEST_CASE("a plain load of an atomic's result needs an acquire, a load past L1 does not") {
  struct Case {
    FenceScope acquire;
    Path path;
    const char* found;
  };
  for (const auto& [acquire, path, found] :
       {Case{FenceScope::none, Path::vector, "stale RAW count->sum 0x0+4 possible"},
        Case{FenceScope::agent, Path::vector, ""},
        Case{FenceScope::none, Path::synchronising, ""}}) {
    Program program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "early", {}, {reads(kCoarse)});
    program.dispatch(
        queue, "count", {.barrier = true, .release = FenceScope::agent},
        {reads(kCoarse, 4, Path::synchronising), writes(kCoarse, 4, Path::synchronising)});
    program.dispatch(queue, "sum", {.barrier = true, .acquire = acquire},
                     {reads(kCoarse, 4, path)});
    CAPTURE(static_cast<int>(acquire), static_cast<int>(path));
    CHECK(program.found() == found);
  }
}

TEST_CASE("polling between host and dispatch is excused in both directions") {
  Program program;
  const ActorId queue = program.compute();
  program.ring(queue);
  auto polls = program.launch(queue, "polls", {},
                              {reads(kFine, 4, Path::synchronising), reads(kFine + 256)});
  program.host_writes(kFine + 256);
  program.host_writes(kFine);
  program.touch(polls, {writes(kFine + 512, 4, Path::synchronising)});
  program.end(polls);
  program.host_reads(kFine + 512);
  CHECK(program.found() == "");
}

TEST_CASE("findings of the same names, reason and place of memory are one with a number") {
  // Two places: the first page, and the others.
  Program program(JudgeOptions{.specification = true}, nullptr, [](GpuAddress address) {
    return uint64_t{address < kCoarse + 0x1000 ? 1u : 2u};
  });
  const ActorId producer = program.compute(), consumer = program.compute();
  constexpr uint32_t kTimes = 10;
  program.ring(producer, kTimes);
  program.ring(consumer, 2 * kTimes);
  for (uint32_t time = 0; time < kTimes; ++time) {
    program.dispatch(producer, "fill", {}, {writes(kCoarse + 64 * time)});
    program.dispatch(consumer, "sum", {}, {reads(kCoarse + 64 * time)});
  }
  REQUIRE(program.findings().size() == 1);
  CHECK(program.findings()[0].address == kCoarse);
  CHECK(program.checker().counts().unordered == 1);
  CHECK(program.checker().counts().repeated == kTimes - 1);
  const std::vector<Repeated> repeated = program.checker().repeated();
  REQUIRE(repeated.size() == 1);
  CHECK(repeated[0].times == kTimes);
  CHECK(repeated[0].writer.name == "fill");
  CHECK(repeated[0].reader.name == "sum");
  // Another name, another reason, another place.
  program.dispatch(consumer, "max", {}, {reads(kCoarse)});
  CHECK(program.findings().size() == 2);
  program.dispatch(producer, "fill", {}, {writes(kCoarse + 0x800)});
  program.dispatch(consumer, "sum", {}, {writes(kCoarse + 0x800)});
  CHECK(program.findings().size() == 3);
  program.dispatch(producer, "fill", {}, {writes(kCoarse + 0x1000)});
  program.dispatch(consumer, "sum", {}, {reads(kCoarse + 0x1000)});
  CHECK(program.findings().size() == 4);
  CHECK(program.checker().repeated().size() == 1);
}

TEST_CASE("a kernel that reads a signal's value passes on what completed the signal") {
  constexpr uint64_t kWord = kFine;  // a signal in memory
  for (const bool reads_it : {true, false}) {
    Program program;
    const ActorId producer = program.compute(), consumer = program.compute();
    program.ring(producer);
    program.ring(consumer, 2);
    program.dispatch(producer, "fill", {.release = kAgent, .signal = kWord}, {writes(kCoarse)});
    program.dispatch(consumer, "spin", {},
                     {reads(reads_it ? kWord + 8 : kFine + 256, 8, Path::synchronising)});
    program.dispatch(consumer, "sum", {.barrier = true, .acquire = kAgent}, {reads(kCoarse)});
    CAPTURE(reads_it);
    CHECK(program.found() == (reads_it ? "" : kRace));
  }
}

TEST_CASE("a kernel that writes a signal's value completes the signal") {
  constexpr uint64_t kWord = kFine;
  const bool is_known = GENERATE(true, false);  // an earlier packet has used the signal
  for (const bool writes_it : {true, false}) {
    Program program;
    const ActorId producer = program.compute(), consumer = program.compute();
    program.ring(producer, 2);
    program.ring(consumer, 3);
    if (is_known) program.barrier_packet(consumer, {}, {kWord});
    program.dispatch(producer, "fill", {.release = kAgent}, {writes(kCoarse)});
    program.dispatch(producer, "signal", {.barrier = true},
                     {writes(writes_it ? kWord + 8 : kFine + 256, 8)});
    program.barrier_packet(consumer, {}, {kWord});
    program.dispatch(consumer, "sum", kConsumes, {reads(kCoarse)});
    CAPTURE(writes_it);
    CHECK(program.found() == (writes_it ? "" : kRace));
  }
}

TEST_CASE("a kernel that polls a signal passes on what the host knew") {
  constexpr uint64_t kWord = kFine;
  for (const uint32_t bytes : {8u, 4u}) {  // four bytes are no signal's value
    Program program;
    const ActorId producer = program.compute(), consumer = program.compute();
    program.ring(producer);
    program.ring(consumer, 2);
    program.dispatch(producer, "fill", {.release = kAgent, .signal = kDone}, {writes(kCoarse)});
    program.dispatch(consumer, "spin", {}, {reads(kWord + 8, bytes, Path::synchronising)});
    program.dispatch(consumer, "sum", {.barrier = true, .acquire = kAgent}, {reads(kCoarse)});
    CAPTURE(bytes);
    CHECK(program.found() == (bytes == 8 ? "" : kRace));
  }
}

TEST_CASE("a packet may find the value that a running kernel has stored") {
  constexpr uint64_t kWord = kFine;
  for (const bool has_stored : {true, false}) {
    Program program;
    const ActorId producer = program.compute(), consumer = program.compute();
    program.ring(producer, 2);
    program.ring(consumer, 2);
    program.dispatch(producer, "fill", {.release = kAgent}, {writes(kCoarse)});
    auto signal = program.launch(producer, "signal", {.barrier = true});
    if (has_stored) program.touch(signal, {writes(kWord + 8, 8)});
    program.barrier_packet(consumer, {}, {kWord});
    program.dispatch(consumer, "sum", kConsumes, {reads(kCoarse)});
    program.end(signal);
    CAPTURE(has_stored);
    CHECK(program.found() == (has_stored ? "" : kRace));
  }
}

TEST_CASE("accesses to the value of a signal do not race; those beside it do") {
  constexpr uint64_t kWord = kFine;
  for (const uint32_t offset : {8u, 16u}) {
    Program program;
    const ActorId first = program.compute(), second = program.compute();
    program.ring(first);
    program.ring(second, 2);
    program.barrier_packet(second, {}, {kWord});
    program.dispatch(first, "signal", {}, {writes(kWord + offset, 8)});
    program.dispatch(second, "again", {}, {writes(kWord + offset, 8)});
    CAPTURE(offset);
    CHECK(program.found() == (offset == 8 ? "" : "unordered WAW signal->again 0x10+8 possible"));
  }
}
