// The host's stores and loads, and what completions announce to it.
#include "fence_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;

TEST_CASE("a dispatch that reads host stores needs a system acquire, or it may read old lines") {
  struct Case {
    GpuAddress data;
    FenceScope acquire;
    bool used_before;
    const char* found;
  };
  for (const auto& [data, acquire, used_before, found] : {
           Case{kFine, FenceScope::system, true, ""},
           Case{kCoarse, FenceScope::system, true, ""},
           Case{kFine, FenceScope::agent, true, "stale RAW host->sum 0x0+4 harmless"},
           Case{kFine, FenceScope::none, true, "stale RAW host->sum 0x0+4 possible"},
           Case{kFine, FenceScope::none, false, "stale RAW host->sum 0x0+4 harmless"},
           Case{kCoarse, FenceScope::agent, true, "stale RAW host->sum 0x0+4 possible"},
           Case{kCoarse, FenceScope::agent, false, "stale RAW host->sum 0x0+4 harmless"},
           Case{kLocal, FenceScope::agent, true, "stale RAW host->sum 0x0+4 possible"},
           Case{kLocalFine, FenceScope::agent, true, "stale RAW host->sum 0x0+4 harmless"},
       }) {
    for (const char* target : {"gfx900", "gfx90a"}) {
      Program program(target);
      const ActorId queue = program.compute();
      if (used_before) program.dispatch(queue, "early", {.signal = kDone}, {reads(data)});
      program.host_writes(data);
      program.dispatch(queue, "sum", {.acquire = acquire}, {reads(data)});
      CAPTURE(target, data, static_cast<int>(acquire), used_before);
      CHECK(program.found() == found);
    }
  }
}

TEST_CASE("a reused kernarg block without an acquire may be stale in the scalar cache") {
  for (const bool used_before : {true, false}) {
    for (const FenceScope acquire : {FenceScope::none, FenceScope::agent, FenceScope::system}) {
      Program program;
      const ActorId queue = program.compute();
      const Touch block = reads(kFine, 32, Path::scalar);
      program.host_writes(kFine, 32);
      program.dispatch(queue, "first", {.acquire = FenceScope::system, .signal = kDone},
                       {used_before ? block : reads(kFine + 4096)});
      program.host_writes(kFine, 32);
      program.dispatch(queue, "again", {.acquire = acquire}, {block});
      CAPTURE(used_before, static_cast<int>(acquire));
      if (acquire == FenceScope::system) {
        CHECK(program.found() == "");
      } else {
        CHECK(program.found() == (acquire == FenceScope::none && used_before
                                      ? "stale RAW host->again 0x0+32 possible"
                                      : "stale RAW host->again 0x0+32 harmless"));
      }
    }
  }
}

TEST_CASE(
    "the host may overwrite a dispatch's input only after it knows that the dispatch has ended") {
  struct Case {
    bool announced;
    const char* found;
  };
  for (const auto& [announced, found] :
       {Case{true, ""}, Case{false, "unordered WAR host->sum 0x0+4 possible"}}) {
    Program program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "sum", {.signal = announced ? kDone : 0}, {reads(kFine)});
    program.host_writes(kFine);
    CAPTURE(announced);
    CHECK(program.found() == found);
  }
}

TEST_CASE("a host store during the dispatch that reads it is unordered") {
  Program program;
  const ActorId queue = program.compute();
  auto sum = program.launch(queue, "sum", {.acquire = FenceScope::system}, {reads(kFine)});
  program.host_writes(kFine);
  program.end(sum);
  CHECK(program.found() == "unordered RAW host->sum 0x0+4 possible");
}

TEST_CASE("a store after the reader's doorbell is unordered, whenever the packet starts") {
  for (const bool in_time : {true, false}) {
    Program program;
    const ActorId queue = program.compute();
    if (!in_time) program.ring(queue);
    program.host_writes(kFine);
    if (in_time) program.ring(queue);
    program.dispatch(queue, "sum", {.acquire = FenceScope::system}, {reads(kFine)});
    CAPTURE(in_time);
    CHECK(program.found() == (in_time ? "" : "unordered RAW host->sum 0x0+4 possible"));
  }
}

TEST_CASE("a result that the host reads after completion needs a system release") {
  for (const GpuAddress data : {kFine, kCoarse, kLocal, kLocalFine}) {
    for (const FenceScope release : {FenceScope::none, FenceScope::agent, FenceScope::system}) {
      for (const bool announced : {true, false}) {
        Program program;
        const ActorId queue = program.compute();
        program.dispatch(queue, "fill", {.release = release, .signal = announced ? kDone : 0},
                         {writes(data)});
        program.host_reads(data + 2);
        const bool cached = data == kCoarse || data == kLocal;
        CAPTURE(data, static_cast<int>(release), announced);
        CHECK(program.found() == (!announced ? "unordered RAW fill->host 0x2+1 possible"
                                  : release == FenceScope::system ? ""
                                  : cached ? "stale RAW fill->host 0x2+1 possible"
                                           : "stale RAW fill->host 0x2+1 harmless"));
      }
    }
  }
}

TEST_CASE(
    "the host may overwrite what it has read, and so may a dispatch whose doorbell follows the "
    "read") {
  Program program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {.release = FenceScope::system, .signal = kDone},
                   {writes(kFine)});
  program.host_reads(kFine);
  program.host_writes(kFine);
  program.dispatch(queue, "refill", {}, {writes(kFine)});
  CHECK(program.found() == "");
}

TEST_CASE("a dispatch published before the host read the old result overwrites it unordered") {
  Program program;
  const ActorId queue = program.compute();
  program.ring(queue, 2);
  program.dispatch(queue, "fill", {.release = FenceScope::system, .signal = kDone},
                   {writes(kFine)});
  program.host_reads(kFine);
  program.dispatch(queue, "refill", {.barrier = true}, {writes(kFine)});
  CHECK(program.found() == "unordered WAR refill->host 0x0+1 possible");
}

TEST_CASE("a page that stays open over several batches gives no false findings") {
  for (const uint64_t signal : {uint64_t{0}, kDone}) {
    Program program;
    const ActorId queue = program.compute();
    program.host_opens(kFine);
    program.dispatch(queue, "a", {.acquire = FenceScope::system, .signal = signal}, {reads(kFine)});
    program.dispatch(queue, "b", {.barrier = true, .acquire = FenceScope::system, .signal = signal},
                     {reads(kFine), writes(kFine + 64)});
    program.host_wrote(kFine, 128);
    program.dispatch(queue, "c", {.barrier = true, .acquire = FenceScope::system, .signal = signal},
                     {reads(kFine, 128)});
    CAPTURE(signal);
    CHECK(program.found() == "");
  }
}

TEST_CASE("each opening of a page is judged separately") {
  Program program;
  const ActorId queue = program.compute();
  program.host_writes(kFine);
  program.dispatch(queue, "a", {.acquire = FenceScope::system}, {reads(kFine)});
  program.host_writes(kFine);
  CHECK(program.found() == "unordered WAR host->a 0x0+4 possible");
}

TEST_CASE("stores to a page whose opening was not observed are ignored") {
  Program program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "a", {}, {reads(kFine)});
  program.host_wrote(kFine);
  CHECK(program.found() == "");
}

// ---- unreleased

TEST_CASE("announced data without a system release is found when the program ends") {
  struct Case {
    GpuAddress data;
    FenceScope release;
    uint64_t signal;
    const char* found;
  };
  for (const auto& [data, release, signal, found] : {
           Case{kCoarse, FenceScope::agent, kDone, "unreleased RAW fill->host 0x0+64 possible"},
           Case{kCoarse, FenceScope::none, kDone, "unreleased RAW fill->host 0x0+64 possible"},
           Case{kCoarse, FenceScope::system, kDone, ""},
           Case{kCoarse, FenceScope::agent, 0, ""},
           Case{kFine, FenceScope::agent, kDone, "unreleased RAW fill->host 0x0+64 harmless"},
           Case{kLocal, FenceScope::agent, kDone, ""},
           Case{kLocalFine, FenceScope::agent, kDone, ""},
       }) {
    for (const bool forgotten : {true, false}) {
      Program program;
      const ActorId queue = program.compute();
      program.dispatch(queue, "fill", {.release = release, .signal = signal}, {writes(data, 64)});
      if (forgotten) {
        program.forget(page_of(data), page_of(data) + kPageBytes);
      } else {
        program.finish();
      }
      CAPTURE(data, static_cast<int>(release), signal, forgotten);
      CHECK(program.found() == found);
    }
  }
}

TEST_CASE("the result of an atomic in memory that L2 does not hold needs no release") {
  for (const auto& [data, found] :
       {std::pair{kFine, ""}, std::pair{kCoarse, "unreleased RAW count->host 0x0+4 possible"}}) {
    Program program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "count", {.release = FenceScope::agent, .signal = kDone},
                     {reads(data, 4, Path::synchronising), writes(data, 4, Path::synchronising)});
    program.finish();
    CAPTURE(data);
    CHECK(program.found() == found);
  }
}

TEST_CASE("a later announced system release covers earlier data") {
  for (const bool barrier : {true, false}) {
    Program program;
    const ActorId queue = program.compute();
    program.ring(queue, 2);
    program.dispatch(queue, "fill", {.release = FenceScope::agent, .signal = kDone},
                     {writes(kCoarse)});
    program.dispatch(queue, "last",
                     {.barrier = barrier, .release = FenceScope::system, .signal = kDone});
    program.finish();
    CAPTURE(barrier);
    CHECK(program.found() == (barrier ? "" : "unreleased RAW fill->host 0x0+4 possible"));
  }
}

TEST_CASE("data that a copy or the host has overwritten is no longer unreleased") {
  Program program;
  const ActorId queue = program.compute(), sdma = program.sdma();
  program.dispatch(queue, "fill", {.release = FenceScope::system, .signal = kDone},
                   {writes(kCoarse)});
  program.fill(sdma, "fill", kCoarse);
  program.sdma_signals(sdma, kDone);
  program.finish();
  CHECK(program.found() == "");
}

TEST_CASE("forgotten memory has no history") {
  Program program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "a", {}, {writes(kCoarse), writes(kCoarse + kPageBytes)});
  program.forget(kCoarse, kCoarse + kPageBytes);
  program.dispatch(queue, "b", {}, {reads(kCoarse), reads(kCoarse + kPageBytes)});
  CHECK(program.found() == "unordered RAW a->b 0x1000+4 possible");
}

TEST_CASE("a command that invalidates the caches before a copy leaves no old line of its data") {
  for (const bool l2 : {true, false}) {
    Program program;
    const ActorId queue = program.compute(), sdma = program.sdma();
    program.dispatch(queue, "early", {}, {reads(kLocal)});
    program.command(
        queue, {.barrier = true},
        {.invalidate_vector_l1 = true, .invalidate_scalar_l1 = true, .invalidate_l2 = l2});
    program.ring_sdma(sdma, 2);
    program.barrier_packet(queue, {.barrier = true, .signal = 2});
    program.sdma_waits(sdma, 2);
    program.fill(sdma, "fill", kLocal);
    program.sdma_signals(sdma, kDone);
    program.dispatch(queue, "sum", {.acquire = FenceScope::agent}, {reads(kLocal)});
    CAPTURE(l2);
    CHECK(program.found() ==
          (l2 ? "stale RAW fill->sum 0x0+4 harmless" : "stale RAW fill->sum 0x0+4 possible"));
  }
}
