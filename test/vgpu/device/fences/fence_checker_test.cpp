// Dispatches and barrier packets: what orders them, and which fences make one's data visible to the
// other. Each correct program is compared with the same program without one of its parts.
#include "fence_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;

namespace {

constexpr FenceScope kScopes[] = {FenceScope::none, FenceScope::agent, FenceScope::system};
constexpr Header kFenced{
    .barrier = true, .acquire = FenceScope::agent, .release = FenceScope::agent};
constexpr Header kUnordered{
    .barrier = false, .acquire = FenceScope::agent, .release = FenceScope::agent};

std::string verdict(FenceScope acquire, FenceScope release, bool line_was_read,
                    const std::string& target = "gfx90a") {
  Program program(target);
  const ActorId queue = program.compute();
  if (line_was_read) program.dispatch(queue, "early", {.barrier = true}, {reads(kCoarse)});
  program.dispatch(queue, "fill", {.barrier = true, .release = release}, {writes(kCoarse)});
  program.dispatch(queue, "sum", {.barrier = true, .acquire = acquire}, {reads(kCoarse)});
  return program.found();
}

}  // namespace

TEST_CASE("of two dispatches on the same data, the second needs the barrier bit") {
  struct Conflict {
    Touch first, second;
    const char* found;
  };
  for (const auto& [first, second, found] :
       {Conflict{writes(kCoarse + 0x40, 64), reads(kCoarse + 0x50, 8),
                 "unordered RAW a->b 0x50+8 possible"},
        Conflict{reads(kCoarse + 0x40, 64), writes(kCoarse, 0x48),
                 "unordered WAR b->a 0x40+8 possible"},
        Conflict{writes(kCoarse, 4), writes(kCoarse + 2, 4), "unordered WAW a->b 0x2+2 possible"},
        Conflict{reads(kCoarse), reads(kCoarse), ""},
        Conflict{writes(kCoarse), writes(kCoarse + 4), ""}}) {
    CAPTURE(found);
    Program with, without;
    for (Program* program : {&with, &without}) {
      const ActorId queue = program->compute();
      program->dispatch(queue, "a", kUnordered, {first});
      program->dispatch(queue, "b", program == &with ? kFenced : kUnordered, {second});
    }
    CHECK(with.found() == "");
    CHECK(without.found() == found);
    CHECK(without.checker().counts().unordered == without.findings().size());
  }
}

TEST_CASE("the barrier bit of a packet between two others orders the second after the first") {
  for (const bool barrier : {true, false}) {
    Program program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "a", kUnordered, {writes(kCoarse)});
    program.dispatch(queue, "middle", barrier ? kFenced : kUnordered);
    program.dispatch(queue, "b", kUnordered, {reads(kCoarse)});
    CAPTURE(barrier);
    CHECK(program.found() == (barrier ? "" : "unordered RAW a->b 0x0+4 possible"));
  }
}

TEST_CASE(
    "the barrier bit of a third packet orders it after both, not the second after the first") {
  Program program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "a", kUnordered, {writes(kCoarse)});
  program.dispatch(queue, "b", kUnordered, {reads(kCoarse), writes(kCoarse + 64)});
  program.dispatch(queue, "c", kFenced, {reads(kCoarse), reads(kCoarse + 64)});
  CHECK(program.found() == "unordered RAW a->b 0x0+4 possible");
}

TEST_CASE("a packet that happens to end before the next launches is not ordered before it") {
  Program program;
  const ActorId queue = program.compute();
  auto a = program.launch(queue, "a", kUnordered, {writes(kCoarse)});
  auto b = program.launch(queue, "b", kUnordered, {reads(kCoarse)});
  program.end(b);
  program.end(a);
  program.dispatch(queue, "c", kUnordered, {reads(kCoarse)});
  CHECK(program.found() == "unordered WAR a->b 0x0+4 possible; unordered RAW a->c 0x0+4 possible");
}

TEST_CASE(
    "the specification requires a release and an acquire of agent scope or wider between "
    "dispatches") {
  for (const FenceScope release : kScopes) {
    for (const FenceScope acquire : kScopes) {
      CAPTURE(static_cast<int>(release), static_cast<int>(acquire));
      const bool right = release != FenceScope::none && acquire != FenceScope::none;
      CHECK(verdict(acquire, release, false) ==
            (right ? "" : "stale RAW fill->sum 0x0+4 harmless"));
    }
  }
}

TEST_CASE(
    "on gfx9 a missing release is harmless, a missing acquire is not if L1 holds the old line") {
  for (const char* target : {"gfx900", "gfx90a"}) {
    for (const FenceScope release : kScopes) {
      CAPTURE(target, static_cast<int>(release));
      CHECK(verdict(FenceScope::none, release, true, target) ==
            "stale RAW fill->sum 0x0+4 possible");
      CHECK(verdict(FenceScope::none, release, false, target) ==
            "stale RAW fill->sum 0x0+4 harmless");
      for (const FenceScope acquire : {FenceScope::agent, FenceScope::system})
        CHECK(verdict(acquire, release, true, target) ==
              (release == FenceScope::none ? "stale RAW fill->sum 0x0+4 harmless" : ""));
    }
  }
}

TEST_CASE("findings that are harmless on the target are reported only on request") {
  Program program("gfx90a", false);
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {.barrier = true}, {writes(kCoarse)});
  program.dispatch(queue, "sum", {.barrier = true}, {reads(kCoarse)});
  CHECK(program.found() == "");
  CHECK(program.checker().counts().total() == 0);
}

TEST_CASE("an L1 may hold an old line if any of its bytes was read since the last invalidation") {
  struct Case {
    Touch early;
    FenceScope between;  // the writer's acquire
    bool possible;
  };
  for (const auto& [early, between, possible] :
       {Case{reads(kFine + 60), FenceScope::none, true},
        Case{reads(kFine + 64), FenceScope::none, false},
        Case{reads(kFine + 60), FenceScope::agent, false},
        Case{writes(kFine + 60), FenceScope::none, false},
        Case{reads(kFine + 60, 4, Path::synchronising), FenceScope::none, false}}) {
    Program program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "early", {.barrier = true}, {early});
    program.dispatch(queue, "fill",
                     {.barrier = true, .acquire = between, .release = FenceScope::agent},
                     {writes(kFine)});
    program.dispatch(queue, "sum", {.barrier = true}, {reads(kFine)});
    CAPTURE(early.address, early.write, static_cast<int>(between));
    CHECK(program.found() ==
          (possible ? "stale RAW fill->sum 0x0+4 possible" : "stale RAW fill->sum 0x0+4 harmless"));
  }
}

TEST_CASE(
    "a line that several workgroups of the writer touched may be in the L1 of another workgroup") {
  for (const uint32_t reader : {0u, 1u}) {
    Program program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "fill",
                     {.barrier = true, .acquire = FenceScope::agent, .release = FenceScope::agent},
                     {reads(kCoarse + 8, 4, Path::vector, reader), writes(kCoarse)});
    program.dispatch(queue, "sum", {.barrier = true}, {reads(kCoarse)});
    CAPTURE(reader);
    CHECK(program.found() == (reader == 1 ? "stale RAW fill->sum 0x0+4 possible"
                                          : "stale RAW fill->sum 0x0+4 harmless"));
  }
}

TEST_CASE("arguments that a kernel rewrote are stale in the scalar cache without an acquire") {
  for (const FenceScope acquire : {FenceScope::none, FenceScope::agent}) {
    for (const bool scalar : {true, false}) {
      Program program;
      const ActorId queue = program.compute();
      program.dispatch(queue, "update", kFenced, {reads(kFine, 8, Path::scalar), writes(kFine, 8)});
      program.dispatch(queue, "use", {.barrier = true, .acquire = acquire},
                       {reads(kFine, 8, scalar ? Path::scalar : Path::vector)});
      CAPTURE(static_cast<int>(acquire), scalar);
      if (acquire == FenceScope::agent) {
        CHECK(program.found() == "");
      } else {
        CHECK(program.found() == (scalar ? "stale RAW update->use 0x0+8 possible"
                                         : "stale RAW update->use 0x0+8 harmless"));
      }
    }
  }
}

TEST_CASE("another queue's fences count only if its packet is ordered between the two") {
  constexpr uint64_t kFencesDone = 2;
  struct Case {
    bool waits_for_writer, reader_waits;
    FenceScope acquire, release;
    const char* found;
  };
  for (const auto& [waits_for_writer, reader_waits, acquire, release, found] :
       {Case{true, true, FenceScope::none, FenceScope::agent, ""},
        Case{true, true, FenceScope::none, FenceScope::none, "stale RAW fill->sum 0x0+4 harmless"},
        Case{false, true, FenceScope::none, FenceScope::agent,
             "stale RAW fill->sum 0x0+4 harmless"},
        Case{true, false, FenceScope::none, FenceScope::agent,
             "stale RAW fill->sum 0x0+4 harmless"}}) {
    Program program;
    const ActorId compute = program.compute(), other = program.compute();
    program.ring(compute, 4);
    program.ring(other, 2);
    program.dispatch(compute, "fill", {.barrier = true, .signal = kDone}, {writes(kCoarse)});
    if (waits_for_writer) {
      program.barrier_packet(other, {}, {kDone});
    } else {
      program.barrier_packet(other, {});
    }
    program.dispatch(other, "fences",
                     {.acquire = acquire, .release = release, .signal = kFencesDone});
    if (reader_waits) {
      program.barrier_packet(compute, {.barrier = true}, {kFencesDone});
    } else {
      program.barrier_packet(compute, {.barrier = true});
    }
    program.dispatch(compute, "sum", {.barrier = true, .acquire = FenceScope::agent},
                     {reads(kCoarse)});
    CAPTURE(waits_for_writer, reader_waits, static_cast<int>(release));
    CHECK(program.found() == found);
  }
}

TEST_CASE("another queue's acquire serves a dispatch that is ordered after it") {
  for (const FenceScope acquire : {FenceScope::agent, FenceScope::none}) {
    for (const bool waits : {true, false}) {
      Program program;
      const ActorId compute = program.compute(), other = program.compute();
      program.ring(compute, 3);
      program.ring(other, 2);
      program.dispatch(compute, "fill", {.release = FenceScope::agent, .signal = 1},
                       {writes(kCoarse)});
      program.barrier_packet(other, {}, {1});
      program.dispatch(other, "acquires", {.acquire = acquire, .signal = 2});
      if (waits) {
        program.barrier_packet(compute, {.barrier = true}, {2});
      } else {
        program.barrier_packet(compute, {.barrier = true});
      }
      program.dispatch(compute, "sum", {}, {reads(kCoarse)});
      CAPTURE(static_cast<int>(acquire), waits);
      CHECK(program.found() ==
            (acquire == FenceScope::agent && waits ? "" : "stale RAW fill->sum 0x0+4 harmless"));
    }
  }
}

TEST_CASE(
    "a release covers only packets known to have ended: without the barrier bit, no earlier "
    "packet") {
  for (const bool barrier : {true, false}) {
    Program program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "fill", {.barrier = true}, {writes(kCoarse)});
    program.dispatch(queue, "releases", {.barrier = barrier, .release = FenceScope::agent});
    program.dispatch(queue, "sum", {.barrier = true, .acquire = FenceScope::agent},
                     {reads(kCoarse)});
    CAPTURE(barrier);
    CHECK(program.found() == (barrier ? "" : "stale RAW fill->sum 0x0+4 harmless"));
  }
}

TEST_CASE(
    "a barrier packet acquires when it completes, including what its dependency has just "
    "released") {
  for (const FenceScope acquire : {FenceScope::agent, FenceScope::none}) {
    Program program;
    const ActorId producer = program.compute(), consumer = program.compute();
    program.ring(producer);
    program.ring(consumer, 2);
    program.dispatch(producer, "fill", {.release = FenceScope::agent, .signal = 1},
                     {writes(kCoarse)});
    program.barrier_packet(consumer, {.acquire = acquire}, {1});
    program.dispatch(consumer, "sum", {}, {reads(kCoarse)});
    CAPTURE(static_cast<int>(acquire));
    CHECK(program.found() ==
          (acquire == FenceScope::agent ? "" : "stale RAW fill->sum 0x0+4 harmless"));
  }
}

TEST_CASE("a barrier packet releases after it acquires, so it does not acquire its own release") {
  Program program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {}, {writes(kCoarse)});
  program.barrier_packet(
      queue, {.barrier = true, .acquire = FenceScope::agent, .release = FenceScope::agent});
  program.dispatch(queue, "sum", {}, {reads(kCoarse)});
  CHECK(program.found() == "stale RAW fill->sum 0x0+4 harmless");
  program.clear();
  program.dispatch(queue, "again", {.acquire = FenceScope::agent}, {reads(kCoarse)});
  CHECK(program.found() == "");
}

TEST_CASE("each of five dependencies orders, and a signal without a wait does not") {
  for (uint64_t missing = 0; missing <= 5; ++missing) {
    Program program;
    const ActorId consumer = program.compute();
    program.ring(consumer, 2);
    std::vector<ActorId> queues{consumer};
    for (uint64_t producer = 1; producer <= 5; ++producer)
      program.ring(queues.emplace_back(program.compute()));
    for (uint64_t producer = 1; producer <= 5; ++producer) {
      program.dispatch(queues[producer], "fill" + std::to_string(producer),
                       {.release = FenceScope::agent, .signal = producer},
                       {writes(kCoarse + 256 * producer)});
    }
    const auto signal = [missing](uint64_t which) {
      return which == missing ? which % 5 + 1 : which;
    };
    program.barrier_packet(consumer, {}, {signal(1), signal(2), signal(3), signal(4), signal(5)});
    program.dispatch(consumer, "sum", {.acquire = FenceScope::agent}, {reads(kCoarse, 256 * 6)});
    CAPTURE(missing);
    const std::string name = std::to_string(missing);
    CHECK(program.found() ==
          (missing == 0 ? "" : "unordered RAW fill" + name + "->sum 0x" + name + "00+4 possible"));
  }
}
