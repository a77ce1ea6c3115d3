// Protocols between a running kernel and threads of the host, in coherent host memory.
#include "fence_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;

namespace {

// A page with a flag, and a page with data.
constexpr GpuAddress kData = kFine, kFlag = kFine + kPageBytes;
constexpr uint64_t kServer = 1, kReader = 2;  // threads
const Touch kSetFlag = writes(kFlag, 4, Path::synchronising);
const Touch kPollFlag = reads(kFlag + 4, 4, Path::synchronising);

}  // namespace

TEST_CASE("a call of the host by a running kernel orders their accesses to coherent host memory") {
  // Pages show only the first access of the host, which need not be to the flag.
  constexpr GpuAddress kBesideFlag = kFlag + 0x100;
  struct Case {
    const char* what;
    bool atomic;  // the kernel's access to the flag
    uint64_t thread;
    GpuAddress data;
    const char* found;
  };
  constexpr const char* kFound = "unordered WAR call->host 0x0+1 possible";
  for (const auto& [what, atomic, thread, data, found] :
       {Case{"call", true, kServer, kData, ""}, Case{"no atomic", false, kServer, kData, kFound},
        Case{"a thread without part in it", true, kReader, kData, kFound},
        Case{"coarse-grained memory", true, kServer, kCoarse, kFound}}) {
    for (const bool writes_flag : {true, false}) {
      Program program;
      const ActorId queue = program.compute();
      program.ring(queue);
      auto call = program.launch(queue, "call", {}, {writes(data, 16)});
      if (atomic) program.touch(call, {kSetFlag, kPollFlag});
      if (writes_flag)
        program.host_opens(kBesideFlag, kServer);
      else
        program.host_reads(kBesideFlag, kServer);
      program.host_reads(data, thread);
      program.end(call);
      CAPTURE(what, writes_flag);
      CHECK(program.found() == found);
    }
  }
}

TEST_CASE("the host's reply to a running kernel is ordered, also when it is seen after the end") {
  for (const bool atomic : {true, false}) {
    Program program;
    const ActorId queue = program.compute();
    program.ring(queue);
    auto call = program.launch(queue, "call", {}, {reads(kData, 16)});
    if (atomic) program.touch(call, {kPollFlag});
    program.host_opens(kData, kServer);
    program.host_opens(kFlag, kServer);
    program.end(call);
    program.host_wrote(kData, 8);
    CAPTURE(atomic);
    CHECK(program.found() == (atomic ? "" : "unordered WAR host->call 0x0+8 possible"));
  }
}

TEST_CASE("an access of the host that packets order before a kernel is no part of a protocol") {
  Program program;
  const ActorId queue = program.compute();
  program.host_reads(kFlag, kServer);
  program.ring(queue);
  auto call = program.launch(queue, "call", {}, {writes(kData, 16), kSetFlag});
  program.host_reads(kData, kServer);
  program.end(call);
  CHECK(program.found() == "unordered WAR call->host 0x0+1 possible");
}

TEST_CASE("a thread that reads a kernel's flag after its end may read its data") {
  for (const uint64_t thread : {kServer, kReader}) {
    Program program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "tell", {.release = kSystem}, {writes(kData), kSetFlag});
    program.host_reads(kFlag, kServer);
    program.host_reads(kData, thread);
    CAPTURE(thread);
    CHECK(program.found() == (thread == kServer ? "" : "unordered RAW tell->host 0x0+1 possible"));
  }
}

TEST_CASE("two kernels that call the host at once are each ordered with it") {
  Program program;
  const ActorId one = program.compute(), two = program.compute();
  program.ring(one);
  program.ring(two);
  auto first = program.launch(one, "first", {}, {writes(kData, 16), kSetFlag});
  auto second = program.launch(two, "second", {}, {writes(kData + 2 * kPageBytes, 16), kSetFlag});
  program.host_opens(kFlag, kServer);
  program.host_reads(kData, kServer);
  program.host_reads(kData + 2 * kPageBytes, kServer);
  program.end(second);
  program.end(first);
  CHECK(program.found() == "");
}

TEST_CASE("a kernel that may have called the host unobserved is ordered with each thread") {
  for (const bool unobserved : {true, false}) {
    Program program;
    const ActorId queue = program.compute();
    program.ring(queue);
    auto call = program.launch(queue, "call", {}, {writes(kData, 16)});
    program.touch(call, {kSetFlag});
    program.host_reads(kData, kServer);
    program.checker().end(call.running, call.packet, Program::kind_of, true, unobserved);
    CAPTURE(unobserved);
    CHECK(program.found() == (unobserved ? "" : "unordered WAR call->host 0x0+1 possible"));
  }
}

TEST_CASE("meetings are forgotten with their memory") {
  Program program;
  const ActorId queue = program.compute();
  program.ring(queue);
  auto call = program.launch(queue, "call", {}, {writes(kData, 16), kSetFlag});
  program.host_reads(kFlag, kServer);
  program.forget(kFlag, kFlag + kPageBytes);
  program.host_reads(kData, kServer);
  program.end(call);
  CHECK(program.found() == "unordered WAR call->host 0x0+1 possible");
}
