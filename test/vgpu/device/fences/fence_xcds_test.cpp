// The fence checker on a device with several L2s (gfx942), beside the one of gfx90a.
#include <array>
#include <cstring>
#include <span>
#include <string>

#include "device/caches/incoherent.hpp"
#include "fence_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;
using namespace uptempo::vgpu;
using namespace uptempo::vgpu::fences;

namespace {

constexpr std::array kScopes{FenceScope::none, FenceScope::agent, FenceScope::system};

// A dispatch writes, a second one reads or writes.
std::string after(FenceScope release, FenceScope acquire, Touch second, const std::string& target,
                  L2Deal l2s = {}, uint32_t writer_workgroup = 0) {
  Program program(target);
  program.deal(l2s);
  const ActorId queue = program.compute();
  Touch first = second;
  first.write = true;
  first.workgroup = writer_workgroup;
  program.dispatch(queue, "fill", {.barrier = true, .release = release}, {first});
  program.dispatch(queue, "next", {.barrier = true, .acquire = acquire}, {second});
  return program.found();
}

}  // namespace

TEST_CASE("gfx90a forgives a missing release between dispatches, gfx942 does not", "[xcds]") {
  for (const GpuAddress memory : {kLocal, kLocalFine}) {
    for (const FenceScope acquire : {FenceScope::agent, FenceScope::system}) {
      CHECK(after(FenceScope::none, acquire, reads(memory), "gfx90a") ==
            "stale RAW fill->next 0x0+4 harmless");
      CHECK(after(FenceScope::none, acquire, reads(memory), "gfx942") ==
            "stale RAW fill->next 0x0+4 possible");
      for (const FenceScope release : {FenceScope::agent, FenceScope::system})
        CHECK(after(release, acquire, reads(memory), "gfx942") == "");
    }
  }
}

TEST_CASE("host memory is in no L2 of gfx942", "[xcds]") {
  for (const GpuAddress memory : {kFine, kCoarse})
    CHECK(after(FenceScope::none, FenceScope::agent, reads(memory), "gfx942") ==
          "stale RAW fill->next 0x0+4 harmless");
}

TEST_CASE("without a release, one XCD's L2 may write back over a later dispatch's write",
          "[xcds]") {
  CHECK(after(FenceScope::none, FenceScope::agent, writes(kLocal), "gfx90a") == "");
  CHECK(after(FenceScope::none, FenceScope::agent, writes(kLocal), "gfx942") ==
        "stale WAW fill->next 0x0+4 possible");
  CHECK(after(FenceScope::agent, FenceScope::none, writes(kLocal), "gfx942") == "");
}

TEST_CASE("workgroups of one XCD meet in its L2 without a release", "[xcds]") {
  const L2Deal eight{.count = 8, .first = 5};
  for (const uint32_t writer : {0u, 1u, 7u, 8u, 16u}) {
    CAPTURE(writer);
    const bool same = writer % 8 == 0;  // the reader is workgroup 0
    CHECK(after(FenceScope::none, FenceScope::agent, reads(kLocal), "gfx942", eight, writer) ==
          (same ? "stale RAW fill->next 0x0+4 harmless" : "stale RAW fill->next 0x0+4 possible"));
    CHECK(after(FenceScope::none, FenceScope::agent, writes(kLocal), "gfx942", eight, writer) ==
          (same ? "" : "stale WAW fill->next 0x0+4 possible"));
  }
}

TEST_CASE("only the L2s through which bytes of a line were written hide them, not those of reads",
          "[xcds]") {
  const auto found = [](Touch beside) {
    Program program("gfx942");
    program.deal({.count = 8});
    const ActorId queue = program.compute();
    program.dispatch(queue, "fill", {.barrier = true}, {writes(kLocal), beside});
    program.dispatch(queue, "sum", {.barrier = true, .acquire = FenceScope::agent},
                     {reads(kLocal)});
    program.dispatch(queue, "next", {.barrier = true}, {writes(kLocal)});
    return program.found();
  };
  CHECK(found(reads(kLocal + 8, 4, Path::vector, 1)) == "stale RAW fill->sum 0x0+4 harmless");
  // The L2s of writes are known for the line, not for the byte.
  CHECK(found(writes(kLocal + 8, 4, Path::vector, 1)) ==
        "stale RAW fill->sum 0x0+4 possible; stale WAW fill->next 0x0+4 possible");
}

TEST_CASE("a workgroup that reads half of a line of gfx942's L1 keeps the other half, too",
          "[xcds]") {
  for (const std::string target : {"gfx90a", "gfx942"}) {
    for (const uint32_t writer : {0u, 1u}) {
      for (const GpuAddress half : {GpuAddress{64}, GpuAddress{128}}) {
        CAPTURE(target, writer, half);
        Program program(target);
        const ActorId queue = program.compute();
        program.dispatch(queue, "fill", {.barrier = true, .release = FenceScope::agent},
                         {reads(kLocal), writes(kLocal + half, 4, Path::vector, writer)});
        program.dispatch(queue, "sum", {.barrier = true}, {reads(kLocal + half)});
        const bool kept = target == "gfx942" && writer == 1 && half == 64;
        CHECK(program.found() ==
              (half == 64 ? "stale RAW fill->sum 0x40+4 " : "stale RAW fill->sum 0x80+4 ") +
                  std::string(kept ? "possible" : "harmless"));
      }
    }
  }
}

TEST_CASE("a scalar load of gfx942 loads 64 bytes", "[xcds]") {
  for (const GpuAddress early : {kLocal, kLocal + 64}) {
    Program program("gfx942");
    const ActorId queue = program.compute();
    program.dispatch(queue, "early", {.barrier = true}, {reads(early, 4, Path::scalar)});
    program.dispatch(queue, "fill", {.barrier = true, .release = FenceScope::agent},
                     {writes(kLocal)});
    program.dispatch(queue, "sum", {.barrier = true}, {reads(kLocal, 4, Path::scalar)});
    CHECK(program.found() == (early == kLocal ? "stale RAW fill->sum 0x0+4 possible"
                                              : "stale RAW fill->sum 0x0+4 harmless"));
  }
}

TEST_CASE("a copy into half of a line of gfx942's L1 leaves the old bytes there", "[xcds]") {
  for (const std::string target : {"gfx90a", "gfx942"}) {
    CAPTURE(target);
    Program program(target);
    const ActorId queue = program.compute(), engine = program.sdma();
    program.dispatch(queue, "early", {.barrier = true, .signal = 1}, {reads(kFine + 64)});
    program.sdma_waits(engine, 1);
    program.copy(engine, "copy", kLocal, kFine);
    program.sdma_signals(engine, 2);
    program.barrier_packet(queue, {}, {2});
    program.dispatch(queue, "sum", {.barrier = true}, {reads(kFine)});
    CHECK(program.found() == (target == "gfx942" ? "stale RAW copy->sum 0x0+4 possible"
                                                 : "stale RAW copy->sum 0x0+4 harmless"));
  }
}

TEST_CASE("queues that begin on different XCDs use different L2s for one workgroup", "[xcds]") {
  Program program("gfx942");
  const ActorId one = program.compute(), other = program.compute();
  program.deal({.count = 8, .first = 0});
  program.dispatch(one, "fill", {.barrier = true, .signal = 1}, {writes(kLocal)});
  program.barrier_packet(other, {.acquire = FenceScope::agent}, {1});
  program.deal({.count = 8, .first = 1});
  program.dispatch(other, "sum", {.barrier = true}, {reads(kLocal)});
  CHECK(program.found() == "stale RAW fill->sum 0x0+4 possible");
}

TEST_CASE("an atomic of one XCD is visible to all without a release", "[xcds]") {
  const Touch atomic = writes(kLocal, 4, Path::synchronising);
  Program program("gfx942");
  const ActorId queue = program.compute(), engine = program.sdma();
  program.dispatch(queue, "count", {.barrier = true, .signal = 1}, {atomic});
  program.dispatch(queue, "sum", {.barrier = true, .acquire = FenceScope::agent}, {reads(kLocal)});
  program.sdma_waits(engine, 1);
  program.copy(engine, "copy", kLocal, kFine);
  CHECK(program.found() == "stale RAW count->sum 0x0+4 harmless");
}

TEST_CASE("on gfx942 a release of agent scope reaches memory, and so a copy engine", "[xcds]") {
  for (const std::string target : {"gfx90a", "gfx942"}) {
    for (const FenceScope release : kScopes) {
      CAPTURE(target, static_cast<int>(release));
      Program program(target);
      const ActorId queue = program.compute(), engine = program.sdma();
      program.dispatch(queue, "fill", {.barrier = true, .release = release, .signal = 1},
                       {writes(kLocal)});
      program.sdma_waits(engine, 1);
      program.copy(engine, "copy", kLocal, kFine);
      const bool hidden = release == FenceScope::none || target == "gfx90a";
      CHECK(program.found() == (release == FenceScope::system
                                    ? ""
                                    : std::string("stale RAW fill->copy 0x0+4 ") +
                                          (hidden ? "possible" : "harmless")));
    }
  }
}

TEST_CASE("what a copy writes is never old in an L2 of gfx942", "[xcds]") {
  for (const std::string target : {"gfx90a", "gfx942"}) {
    CAPTURE(target);
    Program program(target);
    const ActorId queue = program.compute(), engine = program.sdma();
    program.dispatch(queue, "early", {.barrier = true, .signal = 1}, {reads(kLocal)});
    program.sdma_waits(engine, 1);
    program.copy(engine, "copy", kFine, kLocal);
    program.sdma_signals(engine, 2);
    program.barrier_packet(queue, {.acquire = FenceScope::agent}, {2});
    program.dispatch(queue, "sum", {.barrier = true}, {reads(kLocal)});
    CHECK(program.found() == (target == "gfx90a" ? "stale RAW copy->sum 0x0+4 possible"
                                                 : "stale RAW copy->sum 0x0+4 harmless"));
  }
}

TEST_CASE("the caches show a stale value exactly where the checker calls one possible", "[xcds]") {
  for (const std::string target : {"gfx90a", "gfx942"}) {
    const DeviceDescription& device = *find_device_description(target);
    for (const auto& [address, kind] : {std::pair{kLocal, MemoryKind::device_local},
                                        {kLocalFine, MemoryKind::device_local_fine},
                                        {kLocalExtended, MemoryKind::device_local_extended},
                                        {kLocalUncached, MemoryKind::device_local_uncached},
                                        {kCoarse, MemoryKind::coarse_grained},
                                        {kFine, MemoryKind::fine_grained}}) {
      for (const FenceScope release : kScopes) {
        for (const FenceScope acquire : kScopes) {
          // where the reader has read before, relative to the word: the line, a half of it
          for (const int early : {-1, 0, 64, 128}) {
            CAPTURE(target, memory_kind_name(kind), static_cast<int>(release),
                    static_cast<int>(acquire), early);
            Program program(target);
            const ActorId queue = program.compute();
            if (early >= 0)
              program.dispatch(queue, "early", {.barrier = true},
                               {reads(address + static_cast<GpuAddress>(early))});
            program.dispatch(queue, "fill", {.barrier = true, .release = release},
                             {writes(address)});
            program.dispatch(queue, "sum", {.barrier = true, .acquire = acquire}, {reads(address)});
            const bool possible = program.found().find("possible") != std::string::npos;

            alignas(128) std::array<std::byte, 4096> bytes{};
            const Mapping mapping{
                .begin = 0x100000, .end = 0x101000, .host = bytes.data(), .kind = kind};
            Caches caches(device, {});
            const uint32_t writer = 0, reader = device.compute_units - 1;
            uint32_t value = 0;
            const auto load = [&](int offset) {
              caches.load(reader, mapping, 0x100000 + static_cast<GpuAddress>(offset),
                          std::as_writable_bytes(std::span(&value, 1)), AccessScope::wave);
            };
            if (early >= 0) load(early);
            const uint32_t stored = 1;
            caches.store(writer, mapping, 0x100000, std::as_bytes(std::span(&stored, 1)));
            caches.release(release);
            caches.acquire(acquire);
            load(0);
            CHECK((value != stored) == possible);
          }
        }
      }
    }
  }
}
