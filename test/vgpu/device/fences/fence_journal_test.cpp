// Recorded runs: what a recording keeps, and that it gives the same findings as the run.
#include "device/fences/journal.hpp"

#include "device/fences/report/finding_text.hpp"
#include "fence_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;
using namespace uptempo::vgpu;

namespace {

// Returns how many pages each kept page represents, in descending order.
std::vector<uint64_t> counts(const Recording& run) {
  std::vector<uint64_t> result;
  for (const auto& [page, count] : run.page_count) result.push_back(count);
  std::sort(result.rbegin(), result.rend());
  return result;
}

using Lines = std::vector<std::string>;
Lines judged(const Program& program) {
  Lines lines;
  for (const Finding& finding : program.findings()) lines.push_back(to_json(finding, "gfx90a"));
  return lines;
}
Lines judged_again(Journal& journal) {
  Lines lines;
  const Recording run = journal.recording();
  Judge judge({"gfx90a", true},
              [&](const Finding& finding) { lines.push_back(to_json(finding, "gfx90a")); });
  for (const Event& event : run.events) judge.process(event);
  return lines;
}

}  // namespace

TEST_CASE("one of several pages with the same past is kept") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {false, kNone, kAgent}, {writes(kLocal, kPages * kPageBytes)});
  program.dispatch(queue, "half", {true, kAgent, kNone}, {reads(kLocal, kPages / 2 * kPageBytes)});
  program.dispatch(queue, "byte", {true, kAgent, kNone}, {reads(kLocal + 3 * kPageBytes, 1)});
  const Recording run = journal.recording();
  CHECK(counts(run) == std::vector<uint64_t>{kPages / 2, kPages / 2 - 1, 1});
}

TEST_CASE("pages of different kinds, or touched by several workgroups, have different pasts") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {},
                   {writes(kLocal), writes(kFine), reads(kLocal + kPageBytes),
                    writes(kLocal + 2 * kPageBytes, 4, Path::vector, 0),
                    writes(kLocal + 2 * kPageBytes, 4, Path::vector, 1)});
  CHECK(counts(journal.recording()) == std::vector<uint64_t>{1, 1, 1, 1});
}

TEST_CASE(
    "host accesses to several pages are the same event while the host's knowledge is the same") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  const auto page = [](uint32_t number) { return kFine + number * kPageBytes; };
  for (uint32_t i = 0; i < kPages; ++i) program.host_opens(page(i));
  for (uint32_t i = 0; i < kPages; ++i) program.host_wrote(page(i));
  program.dispatch(queue, "sum", {true, kSystem, kSystem, 7}, {reads(kFine, kPages * kPageBytes)});
  for (uint32_t i = 0; i < kPages / 2; ++i) program.host_reads(page(i));
  program.dispatch(queue, "idle", {true, kNone, kNone, 8});
  for (uint32_t i = kPages / 2; i < kPages; ++i) program.host_reads(page(i));
  CHECK(counts(journal.recording()) == std::vector<uint64_t>{kPages / 2, kPages / 2});
}

TEST_CASE("host accesses before and after a completion differ, whenever they are reported") {
  for (const int announcer : {0, 1, 2, 3}) {
    CAPTURE(announcer);
    for (const bool stores : {false, true}) {
      Journal journal;
      Program program("gfx90a", true, &journal);
      const ActorId queue = program.compute(), engine = program.sdma();
      const uint64_t before = host_clock_ns();
      if (announcer == 1) program.dispatch(queue, "idle", {true, kNone, kNone, 7});
      if (announcer == 2) program.barrier_packet(queue, {true, kNone, kNone, 7});
      if (announcer == 3) program.sdma_signals(engine, 7);
      while (host_clock_ns() == before) {
      }
      for (const GpuAddress page : {kFine, kFine + kPageBytes}) {
        const uint64_t at = page == kFine ? before : host_clock_ns();
        if (stores) {
          program.checker().host_opened(page, before);
          program.checker().host_wrote(page, page_bytes(page, 4), at, Program::kind_of);
        } else {
          program.checker().host_read(page, at, Program::kind_of);
        }
      }
      CHECK(counts(journal.recording()).size() == (announcer == 0 ? 1 : 2));
    }
  }
}

TEST_CASE("knowledge assumed for the host also holds for all later reports") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  const uint64_t before = host_clock_ns();
  program.dispatch(queue, "idle", {true, kNone, kNone, 7});
  const auto page = [](uint32_t number) { return kFine + number * kPageBytes; };
  program.checker().host_read(page(0), before, Program::kind_of);
  program.checker().host_read(page(1), host_clock_ns(), Program::kind_of);
  program.checker().host_read(page(2), before, Program::kind_of);
  const Recording run = journal.recording();
  CHECK(run.page_count.at(page(0)) == 1);
  CHECK(run.page_count.at(page(1)) == 2);
}

TEST_CASE("a certain and an uncertain host store are different") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  program.host_opens(kFine);
  program.host_opens(kFine + kPageBytes);
  program.host_wrote(kFine);
  program.checker().unknown(kFine + kPageBytes, page_bytes(kFine, 4));
  CHECK(counts(journal.recording()) == std::vector<uint64_t>{1, 1});
}

TEST_CASE("memory that was unmapped in between has another past") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {}, {writes(kLocal, 4 * kPageBytes)});
  program.forget(kLocal + kPageBytes, kLocal + 2 * kPageBytes);
  program.dispatch(queue, "again", {true, kAgent, kNone}, {writes(kLocal, 4 * kPageBytes)});
  CHECK(counts(journal.recording()) == std::vector<uint64_t>{3, 1});
}

TEST_CASE("a recording gives the same findings as the run, page by page") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute(), engine = program.sdma();
  program.host_writes(kFine);
  program.dispatch(queue, "fill", {false, kAgent, kNone},
                   {reads(kFine), writes(kCoarse, 2 * kPageBytes)});
  program.dispatch(queue, "race", {false, kNone, kNone, 7}, {reads(kCoarse, 2 * kPageBytes)});
  program.sdma_waits(engine, 7);
  program.copy(engine, "copy", kCoarse + 100, kLocal + 100, 2 * kPageBytes);
  program.host_reads(kCoarse);
  program.forget(kCoarse, kCoarse + kPageBytes);
  program.finish();
  REQUIRE(program.findings().size() == 4);
  CHECK(judged_again(journal) == judged(program));
}

TEST_CASE("a dispatch that meets one thread at a page has not met another thread at another page") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  Program::Dispatch dispatch = program.launch(
      queue, "add", {}, {writes(kFine, 4, Path::synchronising), writes(kFine + kPageBytes)});
  program.host_reads(kFine);
  program.host_reads(kFine + kPageBytes, 1);
  program.end(dispatch);
  CHECK(program.found() == "unordered WAR add->host 0x1000+1 possible");
  CHECK(judged_again(journal) == judged(program));
}

TEST_CASE("a recording ends when the program ends, even if threads and queues continue") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  program.finish();
  program.dispatch(queue, "write", {}, {writes(kFine)});
  program.dispatch(queue, "race", {}, {reads(kFine)});
  CHECK(program.found() == "unordered RAW write->race 0x0+4 possible");
  const Recording run = journal.recording();
  CHECK(std::holds_alternative<events::Finish>(run.events.back().what));
  CHECK(run.page_count.empty());
}

TEST_CASE("a recording keeps no instructions, which its limit does not count") {
  Journal journal;
  auto instructions = std::make_shared<const std::vector<InstructionRange>>(1000);
  journal.add(
      {.now_ns = 1, .what = events::End{.queue = 1, .packet = {}, .instructions = instructions}});
  CHECK(instructions.use_count() == 1);
}

TEST_CASE("a run that exceeds the limit is dropped, whatever takes the space") {
  Journal journal(16 << 10);
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  const auto page = [](uint32_t number) { return kLocal + number * kPageBytes; };
  CHECK_FALSE(journal.overflowed());
  SECTION("packets") {
    for (uint32_t i = 0; i < 1000; ++i) program.barrier_packet(queue, {});
  }
  SECTION("accesses") {
    Program::Dispatch dispatch = program.launch(queue, "different", {});
    for (uint32_t i = 0; i < 64; ++i) program.touch(dispatch, {writes(page(i), i + 1)});
    CHECK_FALSE(journal.overflowed());
    program.end(dispatch);
  }
  SECTION("names of kernels") { program.dispatch(queue, std::string(16 << 10, 'k'), {}); }
  SECTION("number of pages") {
    program.dispatch(queue, "fill", {}, {writes(kLocal, kMemoryBytes)});
  }
  SECTION("different pasts of pages") {
    for (uint32_t bit = 1; bit < 128; bit *= 2) {
      Program::Dispatch dispatch = program.launch(queue, "same", {});
      for (uint32_t i = 0; i < 128; ++i)
        if ((i & bit) != 0) program.touch(dispatch, {writes(page(i))});
      program.end(dispatch);
    }
  }
  CHECK(journal.overflowed());
  // The checker continues.
  program.clear();
  program.dispatch(queue, "write", {}, {writes(kFine)});
  program.dispatch(queue, "race", {}, {reads(kFine)});
  CHECK(program.found() == "unordered RAW write->race 0x0+4 possible");
  const Recording run = journal.recording();
  CHECK(run.events.empty());
  CHECK(run.page_count.empty());
}
