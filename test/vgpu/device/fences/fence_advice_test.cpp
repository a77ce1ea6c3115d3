// Advice: fences and barrier bits of a run that could have been narrower.
#include "device/fences/advice.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "fence_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;
using namespace uptempo::vgpu;

namespace {

// A recorded run and its advice, one line each: "barrier b -> clear 1", "release c -> none 2 3".
class Run {
 public:
  Program program{"gfx90a", false, &journal_};

  Advices advise() {
    program.finish();
    return fences::advise(journal_.recording(), *find_device_description("gfx90a"));
  }
  std::set<std::string> advice() {
    std::set<std::string> lines;
    for (const Advice& one : advise().list) {
      constexpr const char* kParts[] = {"barrier", "acquire", "release"};
      std::string line =
          std::string(kParts[static_cast<int>(one.part)]) + ' ' + one.kernel + " -> " +
          (one.part == Advice::Part::barrier ? "clear" : std::string(scope_name(one.to)));
      for (const uint64_t packet : one.packets) line += ' ' + std::to_string(packet);
      lines.insert(line);
    }
    return lines;
  }

 private:
  Journal journal_;
};

using Lines = std::set<std::string>;

}  // namespace

TEST_CASE("advice concerns the fences of an independent dispatch, not those that a chain needs") {
  Run run;
  Program& program = run.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "first", {false, kNone, kAgent}, {writes(kLocal)});
  program.dispatch(queue, "beside", {true, kAgent, kAgent}, {writes(kLocal + 4096)});
  program.dispatch(queue, "second", {true, kAgent, kAgent}, {reads(kLocal), writes(kLocal)});
  program.dispatch(queue, "third", {true, kAgent, kNone}, {reads(kLocal)});
  CHECK(run.advice() ==
        Lines{"barrier beside -> clear 1", "acquire beside -> none 1", "release beside -> none 1"});
}

TEST_CASE("kernels of ROCr and HIP get no advice, since the program cannot change their packets") {
  Run run;
  Program& program = run.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "first", {false, kNone, kAgent}, {writes(kLocal)});
  program.dispatch(queue, "__amd_rocclr_fillBufferAligned.kd", {true, kAgent, kAgent},
                   {writes(kLocal + 4096)});
  program.runtimes = true;
  program.dispatch(queue, "copy", {true, kAgent, kAgent}, {writes(kLocal + 8192)});
  program.runtimes = false;
  program.dispatch(queue, "copy", {true, kAgent, kNone}, {writes(kLocal + 12288)});
  program.dispatch(queue, "last", {false, kNone, kNone}, {writes(kLocal + 16384)});
  CHECK(run.advice() ==
        Lines{"release first -> none 0", "barrier copy -> clear 3", "acquire copy -> none 3"});
}

TEST_CASE(
    "packets with the same kernel and header get advice together, except those that need the "
    "fence") {
  Run run;
  Program& program = run.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {false, kNone, kAgent}, {writes(kLocal)});
  for (uint32_t i = 1; i < 9; ++i)
    program.dispatch(queue, "step", {true, kAgent, kAgent},
                     {reads(kLocal + 4096 * (i % 4 == 0 ? i - 1 : 0)), writes(kLocal + 4096 * i)});
  // Packet 1 is the first reader of `fill`'s data; later packets may rely on its barrier bit and
  // its acquire. Packets 4 and 8 read the data of 3 and 7.
  CHECK(run.advice() == Lines{"barrier step -> clear 2 3 5 6 7", "acquire step -> none 2 3 5 6 7",
                              "release step -> none 1 2 4 5 6 8"});
}

TEST_CASE(
    "if any of several packets would suffice, the last one before the reader keeps its fence") {
  Run run;
  Program& program = run.program;
  const ActorId queue = program.compute(), engine = program.sdma();
  const auto write = [&](int writer) {
    if (writer == 0) program.dispatch(queue, "write", {false, kNone, kAgent}, {writes(kLocal)});
    if (writer == 1) program.host_writes(kFine);
    if (writer == 2) {
      program.fill(engine, "fill", kLocal);
      program.sdma_signals(engine, 7);
    }
    return writer == 1 ? kFine : kLocal;
  };
  for (const int writer : {0, 1, 2}) {
    DYNAMIC_SECTION("behind writer " << writer) {
      const GpuAddress data = write(writer);
      const uint64_t first = writer == 0 ? 1 : 0;
      const Header header{true, writer == 0 ? kAgent : kSystem, kNone};
      program.ring(queue, 4);
      program.dispatch(queue, "step", header);
      program.dispatch(queue, "step", header);
      program.dispatch(queue, "step", header, {reads(data)});
      program.dispatch(queue, "step", header);
      const auto others = ' ' + std::to_string(first) + ' ' + std::to_string(first + 1) + ' ' +
                          std::to_string(first + 3);
      const Lines lines = run.advice();
      CHECK(lines.count("acquire step -> none" + others) == 1);
      if (writer == 0) CHECK(lines.count("barrier step -> clear" + others) == 1);
    }
  }
}

TEST_CASE(
    "of two sufficient fences, the cheaper one remains, and the largest saving is listed first") {
  Run run;
  Program& program = run.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "write", {false, kNone, kAgent},
                   {writes(kLocal), reads(kLocal + 4096, 4096)});
  program.dispatch(queue, "dear", {true, kAgent, kAgent}, {reads(kLocal + 4096, 4096)});
  program.dispatch(queue, "cheap", {false, kAgent, kAgent}, {reads(kLocal), writes(kLocal + 8192)});
  const std::vector<Advice> list = run.advise().list;
  REQUIRE(list.size() > 2);
  CHECK(list.front().part == Advice::Part::acquire);
  CHECK(list.front().kernel == "dear");
  CHECK(list.front().saved_ns > list.back().saved_ns);
  for (const Advice& advice : list)
    CHECK_FALSE((advice.part == Advice::Part::acquire && advice.kernel == "cheap"));
}

TEST_CASE("the saving is the cost of the narrowed packets, and only of the narrowed step") {
  Run run;
  Program& program = run.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "write", {false, kNone, kSystem, 7}, {writes(kCoarse, 4096)});
  program.host_reads(kCoarse);
  program.dispatch(queue, "write", {false, kNone, kSystem},
                   {reads(kLocal, 4096), writes(kLocal, 8192)});
  program.dispatch(queue, "read", {true, kSystem, kNone},
                   {reads(kLocal, 4096), writes(kLocal + 16384)});
  double release_ns = 0, acquire_ns = 0;
  for (const Advice& advice : run.advise().list) {
    if (advice.part == Advice::Part::release) {
      CHECK(advice.packets == std::vector<uint64_t>{1});
      CHECK(advice.of == 2);
      CHECK(advice.to == kAgent);
      release_ns += advice.saved_ns;
    }
    if (advice.part == Advice::Part::acquire) {
      CHECK(advice.to == kAgent);
      acquire_ns += advice.saved_ns;
    }
  }
  CHECK(release_ns == Approx(8192 / 1638.4));
  CHECK(acquire_ns == Approx(4096 / 1638.4));  // an agent acquire loses the L1 lines, too
}

TEST_CASE("all advice holds together: of two sufficient fences, one remains") {
  Run run;
  Program& program = run.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "write", {false, kNone, kAgent}, {writes(kLocal)});
  program.barrier_packet(queue, {true, kAgent, kNone});
  program.dispatch(queue, "read", {true, kAgent, kNone}, {reads(kLocal)});
  const Lines lines = run.advice();
  CHECK(lines.count("barrier barrier packet -> clear 1") + lines.count("barrier read -> clear 2") ==
        1);
  CHECK(lines.count("acquire barrier packet -> none 1") + lines.count("acquire read -> none 2") ==
        1);
  CHECK(lines.size() == 2);
}

TEST_CASE(
    "a system release stays if the host or a copy may read the data, and is narrowed if a dispatch "
    "reads it") {
  for (const int reader : {0, 1, 2, 3}) {
    CAPTURE(reader);
    Run run;
    Program& program = run.program;
    const ActorId queue = program.compute();
    const GpuAddress data = reader == 3 ? kLocal : kCoarse;
    program.ring(queue, 2);
    program.dispatch(queue, "write", {false, kNone, kSystem, 7}, {writes(data)});
    if (reader == 0) program.host_reads(data);
    if (reader == 1) {
      const ActorId engine = program.sdma();
      program.sdma_waits(engine, 7);
      program.copy(engine, "copy", data, kLocal);
    }
    if (reader == 3) program.dispatch(queue, "read", {true, kAgent, kNone}, {reads(data)});
    CHECK(run.advice() == (reader == 3 ? Lines{"release write -> agent 0"} : Lines{}));
  }
}

TEST_CASE("a system acquire stays after a host store, and is narrowed after a dispatch") {
  for (const bool host : {true, false}) {
    Run run;
    Program& program = run.program;
    const ActorId queue = program.compute();
    if (host) program.host_writes(kFine);
    program.dispatch(queue, "write", {false, kNone, kAgent}, {writes(kLocal)});
    program.dispatch(queue, "read", {true, kSystem, kNone}, {reads(kLocal), reads(kFine)});
    CHECK(run.advice() == (host ? Lines{} : Lines{"acquire read -> agent 1"}));
  }
}

TEST_CASE("order by packets is not replaced by order that is only presumed inside kernels") {
  SECTION("between dispatches") {
    Run run;
    Program& program = run.program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "write", {false, kNone, kAgent},
                     {writes(kLocal), writes(kLocal + 64, 4, Path::synchronising)});
    program.dispatch(queue, "read", {true, kAgent, kNone},
                     {reads(kLocal), reads(kLocal + 64, 4, Path::synchronising)});
    CHECK(run.advice() == Lines{});
  }
  SECTION("between two of many dispatches") {
    Run run;
    Program& program = run.program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "add", {}, {writes(kLocal, 4, Path::synchronising)});
    program.dispatch(queue, "step", {true, kNone, kNone});
    program.dispatch(queue, "step", {true, kNone, kNone}, {writes(kLocal, 4, Path::synchronising)});
    program.dispatch(queue, "step", {true, kNone, kNone});
    CHECK(run.advice() == Lines{"barrier step -> clear 1 3"});
  }
  SECTION("between dispatches of two queues, while the first continues") {
    Run run;
    Program& program = run.program;
    const ActorId first = program.compute(), second = program.compute();
    program.ring(first, 3);
    program.ring(second, 2);
    program.dispatch(first, "add", {}, {writes(kLocal, 4, Path::synchronising)});
    program.barrier_packet(first, {true, kNone, kNone, 7});
    program.barrier_packet(second, {}, {7});
    Program::Dispatch add =
        program.launch(second, "add", {}, {writes(kLocal, 4, Path::synchronising)});
    program.barrier_packet(first, {true, kNone, kNone});
    program.end(add);
    CHECK(run.advice() == Lines{"barrier barrier packet -> clear 2"});
  }
  SECTION("between a dispatch and the host") {
    Run run;
    Program& program = run.program;
    const ActorId queue = program.compute();
    program.dispatch(queue, "count", {false, kNone, kSystem},
                     {writes(kFine, 4, Path::synchronising)});
    program.barrier_packet(queue, {true, kNone, kNone, 7});
    program.host_reads(kFine);
    CHECK(run.advice() == Lines{});
  }
}

TEST_CASE("a run with findings gets advice that leaves the findings unchanged") {
  Run run;
  Program& program = run.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "write", {false, kNone, kAgent}, {writes(kLocal)});
  program.dispatch(queue, "race", {false, kAgent, kAgent}, {reads(kLocal), writes(kLocal + 64)});
  program.dispatch(queue, "read", {true, kAgent, kNone}, {reads(kLocal + 64)});
  CHECK(program.found() == "unordered RAW write->race 0x0+4 possible");
  const Lines lines = run.advice();
  CHECK(lines.count("barrier read -> clear 2") == 0);
  CHECK(lines.count("acquire race -> none 1") == 1);
}

TEST_CASE("a narrowing that only hides a finding is not advised") {
  Run run;
  Program& program = run.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "write", {}, {writes(kCoarse)});
  // This packet announces the write to the host. No packet has released the write.
  program.barrier_packet(queue, {true, kNone, kNone, 7});
  CHECK(run.advice() == Lines{});
  CHECK(program.found() == "unreleased RAW write->host 0x0+4 possible");
}

TEST_CASE("later packets are not the cause of a finding about unmapped memory") {
  Run run;
  Program& program = run.program;
  const ActorId queue = program.compute();
  program.dispatch(queue, "write", {}, {writes(kCoarse)});
  program.barrier_packet(queue, {true, kNone, kNone, 7});
  program.forget(kCoarse, kCoarse + kMemoryBytes);
  program.barrier_packet(queue, {true, kNone, kNone, 7});
  program.host_reads(kFine);
  CHECK(run.advice() == Lines{"barrier barrier packet -> clear 2"});
}

TEST_CASE("a dispatch that runs when the program ends gets no advice") {
  Run run;
  Program& program = run.program;
  const ActorId queue = program.compute();
  const Program::Dispatch never_ends = program.launch(queue, "spin", {true, kSystem, kSystem});
  CHECK(run.advice() == Lines{});
}

TEST_CASE("advice that would take too long to find is omitted and reported as incomplete") {
  Journal journal;
  Program program("gfx90a", false, &journal);
  const ActorId queue = program.compute();
  for (int i = 0; i < 8; ++i) program.dispatch(queue, "idle", {true, kAgent, kAgent});
  program.finish();
  const Advices advices = advise(journal.recording(), *find_device_description("gfx90a"), 60);
  CHECK(advices.incomplete);
  CHECK(advices.list.size() < 3);
}

TEST_CASE("the budget also counts pages") {
  for (const uint32_t pages : {1, 100}) {
    Journal journal;
    Program program("gfx90a", false, &journal);
    const ActorId queue = program.compute();
    Program::Dispatch dispatch = program.launch(queue, "fill", {true, kNone, kNone});
    for (uint32_t i = 0; i < pages; ++i)
      program.touch(dispatch, {writes(kLocal + i * kPageBytes, i + 1)});
    program.end(dispatch);
    const Advices advices = advise(journal.recording(), *find_device_description("gfx90a"), 100);
    CHECK(advices.incomplete == (pages == 100));
    CHECK(advices.list.size() == (pages == 100 ? 0 : 1));
  }
}

TEST_CASE("advice is written as JSON and as a sentence") {
  Advice advice{Advice::Part::acquire,
                kAgent,
                3,
                "sum\".kd",
                {.barrier = true, .acquire = kSystem, .release = kAgent},
                {4, 5},
                120,
                1234.4};
  const DeviceDescription& device = *find_device_description("gfx90a");
  CHECK(
      to_json(advice, device) ==
      R"({"advice":"acquire","queue":3,"kernel":"sum\".kd","header":{"barrier":true,"acquire":"system","release":"agent"},)"
      R"("to":"agent","packets":[4,5],"count":2,"of":120,"saved_ns":1234,"basis":"estimate","device":"gfx90a"})");
  CHECK(to_sentence(advice, device) ==
        "advice: the acquire of system scope of sum\".kd (queue 3, packets 4, 5: 2 of 120) could "
        "be agent "
        "without changing a verdict of this run; it costs an estimated 1234 ns on AMD Instinct "
        "MI210");
  advice.part = Advice::Part::barrier;
  advice.packets.assign(100, 9);
  CHECK(to_json(advice, device).find(R"("to":"clear")") != std::string::npos);
  std::string listed = "9";
  for (size_t i = 1; i < kListedPackets; ++i) listed += ",9";
  CHECK(to_json(advice, device).find(R"("packets":[)" + listed + R"(],"count":100)") !=
        std::string::npos);
  CHECK(to_sentence(advice, device).find("9, 9, ...: 100 of 120) could be clear") !=
        std::string::npos);
}

TEST_CASE("advice about a kernel with an unusual name is one line of JSON") {
  Advice advice;
  advice.kernel = "qu\"ote\\back\xc3\xa4\xff\ttab\nline";
  const std::string line = to_json(advice, *find_device_description("gfx90a"));
  CHECK(line.find('\n') == std::string::npos);
  CHECK(nlohmann::json::parse(line)["kernel"] == "qu\"ote\\back\xc3\xa4\\xff\\x09tab\\x0aline");
}
