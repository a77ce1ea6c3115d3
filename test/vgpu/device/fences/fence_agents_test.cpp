// The fence checker with several agents: whose fences count, and what the caches of each can show.
#include "device/fences/report/finding_text.hpp"
#include "fence_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;

namespace {

// The fences of a kernel that writes, and of one of another agent that reads after its signal.
struct HandOver {
  FenceScope release, acquire;
  bool had_read = true;  // the reader's caches have old copies
};

// A machine with two agents of one target and a queue of each.
class Two {
 public:
  explicit Two(std::string target, bool probes, bool specification = false)
      : program(JudgeOptions{.target = target,
                             .specification = specification,
                             .other_targets = {target},
                             .peer_writes_probe = probes}),
        queue{program.compute(0), program.compute(1)} {}

  // `owner`: the agent that owns the memory; to the other one it is a peer's.
  std::string pass(uint32_t from, uint32_t to, uint32_t owner, HandOver fences) {
    const auto kind_for = [owner](uint32_t agent) {
      return agent == owner ? MemoryKind::device_local : MemoryKind::peer_local;
    };
    constexpr uint64_t kRead = 9;  // a signal
    if (fences.had_read) {
      program.see_local_as(kind_for(to));
      program.dispatch(queue[to], "before",
                       {.acquire = kSystem, .release = kSystem, .signal = kRead}, {reads(kLocal)});
      program.barrier_packet(queue[from], {.barrier = true}, {kRead});
    }
    program.see_local_as(kind_for(from));
    program.dispatch(queue[from], "write", {.release = fences.release, .signal = kDone},
                     {writes(kLocal)});
    program.see_local_as(kind_for(to));
    program.barrier_packet(queue[to], {.barrier = true}, {kDone});
    program.dispatch(queue[to], "read", {.acquire = fences.acquire}, {reads(kLocal)});
    return program.found();
  }

  Program program;
  ActorId queue[2];
};

std::string pass(const char* target, bool probes, uint32_t owner, HandOver fences,
                 bool specification = false) {
  Two two(target, probes, specification);
  return two.pass(0, 1, owner, fences);
}

}  // namespace

TEST_CASE("a system release and a system acquire hand data to another agent") {
  for (const char* target : {"gfx906", "gfx908", "gfx90a", "gfx942"})
    for (const uint32_t owner : {0u, 1u}) {
      CAPTURE(target, owner);
      CHECK(pass(target, true, owner, {kSystem, kSystem}, true) == "");
    }
}

TEST_CASE("a release of agent scope does not reach another agent") {
  for (const char* target : {"gfx906", "gfx908", "gfx90a"})
    for (const uint32_t owner : {0u, 1u})
      for (const FenceScope release : {kNone, kAgent}) {
        CAPTURE(target, owner, uptempo::vgpu::scope_name(release));
        CHECK(pass(target, true, owner, {release, kSystem}) ==
              "stale RAW write->read 0x0+4 possible");
      }
}

TEST_CASE("gfx942 writes its L2s back at agent scope already, which the specification ignores") {
  CHECK(pass("gfx942", true, 0, {kAgent, kSystem}, true) == "stale RAW write->read 0x0+4 harmless");
  CHECK(pass("gfx942", true, 0, {kNone, kSystem}, true) == "stale RAW write->read 0x0+4 possible");
}

TEST_CASE("a peer that has read the memory keeps old copies until its system acquire") {
  for (const char* target : {"gfx906", "gfx908", "gfx90a"})
    for (const FenceScope acquire : {kNone, kAgent}) {
      CAPTURE(target, uptempo::vgpu::scope_name(acquire));
      CHECK(pass(target, true, 0, {kSystem, acquire}) == "stale RAW write->read 0x0+4 possible");
      // It had no copies.
      CHECK(pass(target, true, 0, {kSystem, acquire, false}) == "");
      CHECK(pass(target, true, 0, {kSystem, acquire, false}, true) ==
            "stale RAW write->read 0x0+4 harmless");
    }
}

TEST_CASE("the owner keeps old copies in L2 unless a peer's writes probe it") {
  for (const bool probes : {false, true}) {
    CAPTURE(probes);
    CHECK(
        pass("gfx90a", probes, 1, {kSystem, kAgent}, true) ==
        (probes ? "stale RAW write->read 0x0+4 harmless" : "stale RAW write->read 0x0+4 possible"));
    // Its L1s are never probed.
    CHECK(pass("gfx90a", probes, 1, {kSystem, kNone}) == "stale RAW write->read 0x0+4 possible");
  }
}

TEST_CASE("another agent's fences do not replace an agent's own") {
  Two two("gfx90a", true);
  Program& program = two.program;
  program.dispatch(two.queue[0], "write", {.release = kAgent, .signal = kDone}, {writes(kLocal)});
  // A release by agent 1 leaves the L2 of agent 0 unchanged.
  program.barrier_packet(two.queue[1], {.barrier = true, .acquire = kSystem, .release = kSystem},
                         {kDone});
  program.see_local_as(MemoryKind::peer_local);
  program.dispatch(two.queue[1], "read", {.acquire = kSystem}, {reads(kLocal)});
  CHECK(program.found() == "stale RAW write->read 0x0+4 possible");
}

TEST_CASE("fences of other packets of the same agents count") {
  Two two("gfx90a", true);
  Program& program = two.program;
  program.dispatch(two.queue[1], "before", {.acquire = kSystem, .release = kSystem, .signal = 9},
                   {reads(kLocal)});
  program.barrier_packet(two.queue[0], {.barrier = true}, {9});
  program.dispatch(two.queue[0], "write", {}, {writes(kLocal)});
  program.barrier_packet(two.queue[0], {.barrier = true, .release = kSystem, .signal = kDone}, {});
  program.barrier_packet(two.queue[1], {.barrier = true, .acquire = kSystem}, {kDone});
  program.dispatch(two.queue[1], "read", {}, {reads(kLocal)});
  CHECK(program.found() == "");
}

TEST_CASE("agent scope suffices between queues of one agent, beside another agent") {
  Two two("gfx90a", true, true);
  Program& program = two.program;
  const ActorId second = program.compute(1);
  program.dispatch(two.queue[1], "write", {.release = kAgent, .signal = kDone}, {writes(kLocal)});
  program.barrier_packet(second, {.barrier = true}, {kDone});
  program.dispatch(second, "read", {.acquire = kAgent}, {reads(kLocal)});
  CHECK(program.found() == "");
}

TEST_CASE("unordered kernels of two agents are found, with the GPUs in the text") {
  Two two("gfx90a", true);
  Program& program = two.program;
  program.dispatch(two.queue[0], "write", {.release = kSystem}, {writes(kLocal)});
  program.dispatch(two.queue[1], "read", {.acquire = kSystem}, {reads(kLocal)});
  CHECK(program.found() == "unordered RAW write->read 0x0+4 possible");
  REQUIRE(program.findings().size() == 1);
  CHECK(to_sentence(program.findings().front()).find("read (GPU 1, queue 2, packet 0") !=
        std::string::npos);
  CHECK(to_json(program.findings().front(), "gfx90a").find(R"("writer":{"queue":1,"gpu":0,)") !=
        std::string::npos);
}

TEST_CASE("a later write of another agent needs a system release of the earlier one") {
  for (const FenceScope release : {kAgent, kSystem}) {
    Two two("gfx90a", true);
    Program& program = two.program;
    program.dispatch(two.queue[0], "first", {.release = release, .signal = kDone},
                     {writes(kLocal)});
    program.barrier_packet(two.queue[1], {.barrier = true}, {kDone});
    program.dispatch(two.queue[1], "second", {}, {writes(kLocal)});
    CHECK(program.found() == (release == kSystem ? "" : "stale WAW first->second 0x0+4 possible"));
  }
}

TEST_CASE("copies of a peer's engine probe the owner, others leave it old copies") {
  for (const bool probes : {false, true}) {
    CAPTURE(probes);
    Two two("gfx90a", probes);
    Program& program = two.program;
    const ActorId engine = program.sdma(1);
    program.dispatch(two.queue[0], "before", {.acquire = kSystem, .signal = 9}, {reads(kLocal)});
    program.sdma_waits(engine, 9);
    program.see_local_as(MemoryKind::peer_local);
    program.fill(engine, "fill", kLocal);
    program.sdma_signals(engine, kDone);
    program.see_local_as(MemoryKind::device_local);
    program.barrier_packet(two.queue[0], {.barrier = true}, {kDone});
    program.dispatch(two.queue[0], "read", {.acquire = kAgent}, {reads(kLocal)});
    CHECK(program.found() == (probes ? "" : "stale RAW fill->read 0x0+4 possible"));
  }
}

TEST_CASE("fine-grained memory of a peer needs no write-back") {
  Two two("gfx90a", true);
  Program& program = two.program;
  program.see_local_as(MemoryKind::peer_local_fine);
  program.dispatch(two.queue[1], "write", {.signal = kDone}, {writes(kLocal)});
  program.barrier_packet(two.queue[0], {.barrier = true}, {kDone});
  program.see_local_as(MemoryKind::device_local_fine);
  program.dispatch(two.queue[0], "read", {.acquire = kAgent}, {reads(kLocal)});
  CHECK(program.found() == "");
}

TEST_CASE("the host sees another agent's write to host memory after that agent's system release") {
  for (const FenceScope release : {kAgent, kSystem}) {
    Two two("gfx90a", true);
    Program& program = two.program;
    program.dispatch(two.queue[1], "write", {.release = release, .signal = kDone},
                     {writes(kCoarse)});
    program.barrier_packet(two.queue[0], {.barrier = true, .release = kSystem, .signal = 7},
                           {kDone});
    program.host_reads(kCoarse);
    CHECK(program.found() == (release == kSystem ? "" : "stale RAW write->host 0x0+1 possible"));
  }
}
