// Signals, doorbells and the host's knowledge: what they order. The host is given the benefit of the doubt, and no more.
#include "fence_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;

namespace {
constexpr uint64_t kDone = 1;
constexpr Header kProduces{.release = FenceScope::agent, .signal = kDone};
constexpr Header kConsumes{.acquire = FenceScope::agent};
constexpr const char* kRace = "unordered RAW fill->sum 0x0+4 possible";
}  // namespace

TEST_CASE("A producer and a consumer in two queues need the dependency") {
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

TEST_CASE(
    "The producer may overwrite what the consumer read only after it waited for the consumer") {
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

TEST_CASE("A doorbell carries the completions that were announced before it, and no later ones") {
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

TEST_CASE("The end of a dispatch without a completion signal is unknown to the host") {
  Program program;
  const ActorId producer = program.compute(), consumer = program.compute();
  program.dispatch(producer, "fill", {.release = FenceScope::system}, {writes(kCoarse)});
  program.ring(consumer);
  program.dispatch(consumer, "sum", kConsumes, {reads(kCoarse)});
  CHECK(program.found() == kRace);
}

TEST_CASE("One doorbell that covers several packets was rung once, for all of them") {
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

TEST_CASE(
    "Where several producers ring out of order, the host is taken to know all that was announced") {
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

TEST_CASE(
    "A signal that the host stored to passes on what the host knew, and a signal that nobody "
    "completed "
    "nothing") {
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

TEST_CASE("A signal used again does not order by its old completions") {
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

TEST_CASE("A signal that several packets count down orders a waiter after all of them") {
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

TEST_CASE("A barrier-OR packet orders after what it found satisfied alone") {
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
    "Packets behind a barrier packet without the barrier bit come after its dependencies, not "
    "after its "
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

TEST_CASE(
    "A batch of packets after the host waited for the one before is ordered after all of it") {
  for (const bool covers : {true, false}) {
    Program program;
    const ActorId queue = program.compute();
    program.ring(queue, 2);
    program.dispatch(queue, "fill", {.release = FenceScope::agent}, {writes(kCoarse)});
    // Whether the packet whose completion the host saw had waited for the one ahead.
    program.dispatch(queue, "last", {.barrier = covers, .signal = kDone});
    program.ring(queue);
    program.dispatch(queue, "sum", kConsumes, {reads(kCoarse)});
    CAPTURE(covers);
    CHECK(program.found() == (covers ? "" : kRace));
  }
}

// ---- in-kernel synchronisation

TEST_CASE("Dispatches that count in the same place by atomics may overlap") {
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

TEST_CASE("A flag that is read past L1 excuses the pair that meets there, and nobody else") {
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

TEST_CASE("A load past L1 beside the data excuses nobody who overwrites the data") {
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

TEST_CASE("What a dispatch learnt inside a kernel is not passed on by its packet") {
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

TEST_CASE("What a copy engine reads or overwrites needs order, atomics or not") {
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

TEST_CASE(
    "Atomics are carried out in L2: data of a copy engine still needs the acquire of system "
    "scope") {
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

TEST_CASE(
    "What atomics left in L2 is read by a plain load behind an acquire, and past L1 without one") {
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

TEST_CASE(
    "A host that polls what atomics write, and a dispatch that polls what the host writes, are "
    "excused") {
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

TEST_CASE("A repeated finding is counted every time and told so often") {
  Program program;
  const ActorId producer = program.compute(), consumer = program.compute();
  constexpr uint32_t kTimes = Checker::kRepetitions + 10;
  program.ring(producer, kTimes);
  program.ring(consumer, 2 * kTimes);
  for (uint32_t time = 0; time < kTimes; ++time) {
    program.dispatch(producer, "fill", {}, {writes(kCoarse + 64 * time)});
    program.dispatch(consumer, "sum", {}, {reads(kCoarse + 64 * time)});
  }
  CHECK(program.checker().counts().unordered == kTimes);
  CHECK(program.findings().size() == Checker::kRepetitions);
  program.dispatch(consumer, "max", {}, {reads(kCoarse)});
  CHECK(program.findings().size() == Checker::kRepetitions + 1);
}
