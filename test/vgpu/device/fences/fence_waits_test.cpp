// What the host knows when its looks at signals are observed (JudgeOptions::waits).
#include "fence_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;

namespace {

constexpr uint64_t kOther = 2;

struct Waits : Program {
  Waits() : Program(JudgeOptions{.specification = true, .waits = true}) {}
  void looks(uint64_t signal) { checker().host_looked(signal, uptempo::vgpu::host_clock_ns()); }
  void stores(GpuAddress address) {
    checker().host_stored(address, uptempo::vgpu::host_clock_ns(), kind_of, 0);
  }
};

constexpr Header kWithSignal{.release = FenceScope::system, .signal = kDone};

}  // namespace

TEST_CASE("the host knows of a dispatch when it has looked at the dispatch's signal") {
  for (const bool looks : {true, false}) {
    Waits program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "fill", kWithSignal, {writes(kFine)});
    if (looks) program.looks(kDone);
    program.host_reads(kFine);
    CHECK(program.found() == (looks ? "" : "unordered RAW fill->host 0x0+1 possible"));
  }
}

TEST_CASE("without observed looks, the host knows of each completion") {
  Program program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", kWithSignal, {writes(kFine)});
  program.host_reads(kFine);
  CHECK(program.found() == "");
}

TEST_CASE("a look at another signal, or before the completion, tells nothing") {
  Waits program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "early", {.release = FenceScope::system, .signal = kOther},
                   {reads(kFine + 4096)});
  const uint64_t before_ns = uptempo::vgpu::host_clock_ns();
  program.dispatch(queue, "fill", kWithSignal, {writes(kFine)});
  program.looks(kOther);
  program.checker().host_looked(kDone, before_ns);
  program.host_reads(kFine);
  CHECK(program.found() == "unordered RAW fill->host 0x0+1 possible");
}

TEST_CASE("a look tells of what is ordered before the packet that completed the signal") {
  Waits program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {}, {writes(kFine)});
  program.dispatch(queue, "last", {.barrier = true, .release = FenceScope::system, .signal = kDone},
                   {reads(kFine + 4096)});
  program.looks(kDone);
  program.host_reads(kFine);
  CHECK(program.found() == "");
}

TEST_CASE("the first store to a page is judged with what the host knew when it stored") {
  for (const bool looks_first : {true, false}) {
    Waits program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "sum", kWithSignal, {reads(kFine, 16)});
    if (looks_first) program.looks(kDone);
    program.stores(kFine + 4);
    program.looks(kDone);
    program.host_wrote(kFine, 16);
    CHECK(program.found() == (looks_first ? "" : "unordered WAR host->sum 0x4+1 possible"));
  }
}

TEST_CASE("a destroyed queue, and a lost look, leave nothing unknown") {
  for (const bool destroys : {true, false}) {
    Waits program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "fill", kWithSignal, {writes(kFine)});
    if (destroys) {
      program.checker().destroy_queue(queue);
    } else {
      program.looks(0);
    }
    program.host_reads(kFine);
    CHECK(program.found() == "");
  }
}

TEST_CASE("a doorbell carries only what the host has looked at") {
  for (const bool looks : {true, false}) {
    Waits program;
    const ActorId first = program.compute(), second = program.compute();
    program.dispatch(first, "fill", kWithSignal, {writes(kFine)});
    if (looks) program.looks(kDone);
    program.ring(second);
    program.dispatch(second, "sum", {.acquire = FenceScope::system}, {reads(kFine)});
    CHECK(program.found() == (looks ? "" : "unordered RAW fill->sum 0x0+4 possible"));
  }
}

TEST_CASE("the host knows of a dispatch whose atomic result it has read") {
  Waits program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "announce", {.release = FenceScope::system},
                   {writes(kFine), writes(kFine + 4096, 4, Path::synchronising)});
  program.host_reads(kFine + 4096);
  program.host_reads(kFine);
  CHECK(program.found() == "");
}
