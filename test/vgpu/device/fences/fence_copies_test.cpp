// SDMA engines and the host bypass L2. The fences that dispatches, copies and the host need between
// each other, by kind of memory.
#include "fence_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;

namespace {

constexpr uint64_t kUploaded = 1, kComputed = 2, kDownloaded = 3;

// Copies input to the device, runs a kernel, copies the result back; the host only enqueues. The
// members that a test may remove:
struct CopyKernelCopy {
  bool kernel_waits = true, download_waits = true;
  FenceScope acquire = FenceScope::system, release = FenceScope::system;
  bool lines_in_l2 = true;
  GpuAddress data = kLocal;

  std::string found(const std::string& target = "gfx90a") const {
    Program program(target);
    const ActorId queue = program.compute(), upload = program.sdma(), download = program.sdma();
    program.ring(queue, lines_in_l2 ? 3 : 2);
    program.ring_sdma(download, 3);
    if (lines_in_l2) program.dispatch(queue, "early", {.signal = 9}, {reads(data, 64)});
    program.copy(upload, "up", kFine, data, 64);
    program.sdma_signals(upload, kUploaded);
    if (kernel_waits) {
      program.barrier_packet(queue, {}, {kUploaded});
    } else {
      program.barrier_packet(queue, {});
    }
    program.dispatch(queue, "work", {.acquire = acquire, .release = release, .signal = kComputed},
                     {reads(data, 64), writes(data + 4096, 64)});
    if (download_waits) program.sdma_waits(download, kComputed);
    program.copy(download, "down", data + 4096, kFine + 4096, 64);
    program.sdma_signals(download, kDownloaded);
    program.host_reads(kFine + 4096);
    return program.found();
  }
};

}  // namespace

TEST_CASE(
    "copy, kernel, copy with dependencies and system fences is correct in every kind of memory") {
  for (const char* target : {"gfx900", "gfx90a"})
    for (const GpuAddress data : {kLocal, kLocalFine, kCoarse, kFine + 0x8000})
      for (const bool lines_in_l2 : {true, false})
        CHECK(CopyKernelCopy{.lines_in_l2 = lines_in_l2, .data = data}.found(target) == "");
}

TEST_CASE("each dependency of copy, kernel, copy is required") {
  CHECK(CopyKernelCopy{.kernel_waits = false}.found() == "unordered RAW up->work 0x0+64 possible");
  CHECK(CopyKernelCopy{.download_waits = false}.found() ==
        "unordered RAW work->down 0x1000+64 possible");
}

TEST_CASE("a kernel needs a system release before a copy, which otherwise misses data in L2") {
  for (const FenceScope release : {FenceScope::agent, FenceScope::none}) {
    const auto found = [release](GpuAddress data, const char* target) {
      return CopyKernelCopy{.release = release, .data = data}.found(target);
    };
    for (const char* target : {"gfx900", "gfx90a"}) {
      CAPTURE(target, static_cast<int>(release));
      CHECK(found(kLocal, target) == "stale RAW work->down 0x1000+64 possible");
      CHECK(found(kCoarse, target) == "stale RAW work->down 0x1000+64 possible");
      CHECK(found(kLocalFine, target) == "stale RAW work->down 0x1000+64 harmless");
      CHECK(found(kFine + 0x8000, target) == "stale RAW work->down 0x9000+64 harmless");
    }
  }
}

TEST_CASE("a kernel needs a system acquire after a copy, or it reads an old line of L2") {
  for (const char* target : {"gfx900", "gfx90a"}) {
    CAPTURE(target);
    const auto found = [target](FenceScope acquire, GpuAddress data, bool lines_in_l2) {
      return CopyKernelCopy{.acquire = acquire, .lines_in_l2 = lines_in_l2, .data = data}.found(
          target);
    };
    CHECK(found(FenceScope::agent, kLocal, true) == "stale RAW up->work 0x0+64 possible");
    CHECK(found(FenceScope::agent, kCoarse, true) == "stale RAW up->work 0x0+64 possible");
    CHECK(found(FenceScope::agent, kLocal, false) == "stale RAW up->work 0x0+64 harmless");
    CHECK(found(FenceScope::agent, kLocalFine, true) == "stale RAW up->work 0x0+64 harmless");
    // Without an acquire the line may be in an L1, for every kind of memory.
    CHECK(found(FenceScope::none, kLocalFine, true) == "stale RAW up->work 0x0+64 possible");
    CHECK(found(FenceScope::none, kLocalFine, false) == "stale RAW up->work 0x0+64 harmless");
  }
}

TEST_CASE("a line of L2 has 128 bytes: a read of either half loads both") {
  for (const GpuAddress neighbour : {kLocal + 64, kLocal + 128}) {
    Program program;
    const ActorId queue = program.compute(), sdma = program.sdma();
    program.dispatch(queue, "early", {.signal = kComputed}, {reads(neighbour)});
    program.fill(sdma, "fill", kLocal);
    program.sdma_signals(sdma, kUploaded);
    program.dispatch(queue, "sum", {.acquire = FenceScope::agent}, {reads(kLocal)});
    CAPTURE(neighbour);
    CHECK(program.found() == (neighbour == kLocal + 64 ? "stale RAW fill->sum 0x0+4 possible"
                                                       : "stale RAW fill->sum 0x0+4 harmless"));
  }
}

TEST_CASE("a line that a dispatch reads during a copy into it may stay cached with the old bytes") {
  for (const bool beside : {true, false}) {
    Program program;
    const ActorId queue = program.compute(), other = program.compute(), sdma = program.sdma();
    auto reader = program.launch(other, "beside", {}, {reads(kLocal + (beside ? 8 : 256))});
    program.fill(sdma, "fill", kLocal);
    program.sdma_signals(sdma, kUploaded);
    program.end(reader);
    program.dispatch(queue, "sum", {.acquire = FenceScope::agent}, {reads(kLocal)});
    CAPTURE(beside);
    CHECK(program.found() ==
          (beside ? "stale RAW fill->sum 0x0+4 possible" : "stale RAW fill->sum 0x0+4 harmless"));
  }
}

TEST_CASE("an agent acquire leaves old lines in L2, a system acquire does not") {
  for (const FenceScope between : {FenceScope::agent, FenceScope::system}) {
    Program program;
    const ActorId queue = program.compute(), sdma = program.sdma();
    program.dispatch(queue, "early", {}, {reads(kLocal)});
    program.dispatch(queue, "between", {.barrier = true, .acquire = between, .signal = kComputed});
    program.fill(sdma, "fill", kLocal);
    program.sdma_signals(sdma, kUploaded);
    program.dispatch(queue, "sum", {.acquire = FenceScope::agent}, {reads(kLocal)});
    CAPTURE(static_cast<int>(between));
    CHECK(program.found() == (between == FenceScope::agent ? "stale RAW fill->sum 0x0+4 possible"
                                                           : "stale RAW fill->sum 0x0+4 harmless"));
  }
}

TEST_CASE("a kernel may overwrite the source of a download only after the download") {
  for (const bool waits : {true, false}) {
    Program program;
    const ActorId queue = program.compute(), sdma = program.sdma();
    program.ring(queue, 3);
    program.dispatch(queue, "work", {.release = FenceScope::system, .signal = kComputed},
                     {writes(kLocal, 64)});
    program.sdma_waits(sdma, kComputed);
    program.copy(sdma, "down", kLocal, kFine, 64);
    program.sdma_signals(sdma, kDownloaded);
    if (waits) {
      program.barrier_packet(queue, {}, {kDownloaded});
    } else {
      program.barrier_packet(queue, {});
    }
    program.dispatch(queue, "next", {.barrier = true}, {writes(kLocal, 32)});
    CAPTURE(waits);
    CHECK(program.found() == (waits ? "" : "unordered WAR next->down 0x0+32 possible"));
  }
}

TEST_CASE(
    "a fill over a kernel's data needs the kernel's release, or L2 writes old data over the fill") {
  for (const FenceScope release : {FenceScope::system, FenceScope::agent}) {
    for (const GpuAddress data : {kLocal, kLocalFine}) {
      Program program;
      const ActorId queue = program.compute(), sdma = program.sdma();
      program.ring_sdma(sdma, 2);
      program.dispatch(queue, "work", {.release = release, .signal = kComputed},
                       {writes(data, 64)});
      program.sdma_waits(sdma, kComputed);
      program.fill(sdma, "fill", data, 16);
      CAPTURE(static_cast<int>(release), data);
      CHECK(program.found() == (release == FenceScope::system ? ""
                                : data == kLocal ? "stale WAW work->fill 0x0+16 possible"
                                                 : "stale WAW work->fill 0x0+16 harmless"));
    }
  }
}

TEST_CASE("a fill that is not ordered after the writing kernel is found") {
  Program program;
  const ActorId queue = program.compute(), sdma = program.sdma();
  program.ring_sdma(sdma, 1);
  program.dispatch(queue, "work", {.release = FenceScope::system, .signal = kComputed},
                   {writes(kLocal, 64)});
  program.fill(sdma, "fill", kLocal, 64);
  CHECK(program.found() == "unordered WAW work->fill 0x0+64 possible");
}

TEST_CASE("copies of one engine are ordered; copies of two engines need a dependency") {
  for (const bool waits : {true, false}) {
    Program program;
    const ActorId one = program.sdma(), two = program.sdma();
    program.ring_sdma(two, 3);
    program.copy(one, "a", kFine, kLocal, 64);
    program.copy(one, "b", kLocal, kLocal + 4096, 64);
    program.sdma_signals(one, kUploaded);
    if (waits) program.sdma_waits(two, kUploaded);
    program.copy(two, "c", kLocal + 4096, kFine + 4096, 64);
    CAPTURE(waits);
    CHECK(program.found() == (waits ? "" : "unordered RAW b->c 0x1000+64 possible"));
  }
}

TEST_CASE("a copy over several pages is one finding with all its bytes") {
  Program program;
  const ActorId queue = program.compute(), sdma = program.sdma();
  program.ring_sdma(sdma, 1);
  program.dispatch(queue, "work", {}, {writes(kLocal + 100, 3 * 4096)});
  program.copy(sdma, "down", kLocal, kFine, 2 * 4096);
  CHECK(program.found() == "unordered RAW work->down 0x64+8092 possible");
  REQUIRE(program.findings().size() == 1);
  CHECK(program.findings()[0].address == kLocal + 100);
  CHECK(program.findings()[0].writer->queue == 1);
  CHECK(program.findings()[0].writer->position == 0);
  CHECK(program.findings()[0].reader->queue == 2);
  CHECK(program.findings()[0].reader->position == 0);
}

TEST_CASE("pages that are no longer mapped are skipped") {
  Program program;
  const ActorId queue = program.compute(), sdma = program.sdma();
  program.ring_sdma(sdma, 1);
  program.dispatch(queue, "work", {}, {writes(0x7000, 64)});
  program.fill(sdma, "fill", 0x7000, 64);
  CHECK(program.found() == "");
}
