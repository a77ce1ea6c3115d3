// Runs that are kept: what is left of them, and that it is judged as they were.
#include "device/fences/journal.hpp"

#include "fence_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;
using namespace uptempo::vgpu;

namespace {

constexpr FenceScope none = FenceScope::none, agent = FenceScope::agent,
                     system_ = FenceScope::system;
constexpr uint32_t kPages = 50;

// How many pages each kept page stands for, most first.
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
  for (const Event& event : run.events) judge.tell(event);
  return lines;
}

}  // namespace

TEST_CASE("Of pages with the same past one is kept") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {false, none, agent}, {writes(kLocal, kPages * kPageBytes)});
  program.dispatch(queue, "half", {true, agent, none}, {reads(kLocal, kPages / 2 * kPageBytes)});
  program.dispatch(queue, "byte", {true, agent, none}, {reads(kLocal + 3 * kPageBytes, 1)});
  const Recording run = journal.recording();
  CHECK(counts(run) == std::vector<uint64_t>{kPages / 2, kPages / 2 - 1, 1});
}

TEST_CASE("Pages of different kinds, or touched by several workgroups, are different") {
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
    "What the host does page by page is the same for all of them, as long as it knew the same") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  const auto page = [](uint32_t number) { return kFine + number * kPageBytes; };
  for (uint32_t i = 0; i < kPages; ++i) program.host_opens(page(i));
  for (uint32_t i = 0; i < kPages; ++i) program.host_wrote(page(i));
  program.dispatch(queue, "sum", {true, system_, system_, 7}, {reads(kFine, kPages * kPageBytes)});
  for (uint32_t i = 0; i < kPages / 2; ++i) program.host_reads(page(i));
  program.dispatch(queue, "idle", {true, none, none, 8});
  for (uint32_t i = kPages / 2; i < kPages; ++i) program.host_reads(page(i));
  CHECK(counts(journal.recording()) == std::vector<uint64_t>{kPages / 2, kPages / 2});
}

TEST_CASE(
    "What the host did before and after it may have known of a completion is different, whenever "
    "it is "
    "told") {
  for (const int announcer : {0, 1, 2, 3}) {
    CAPTURE(announcer);
    for (const bool stores : {false, true}) {
      Journal journal;
      Program program("gfx90a", true, &journal);
      const ActorId queue = program.compute(), engine = program.sdma();
      const uint64_t before = host_clock_ns();
      if (announcer == 1) program.dispatch(queue, "idle", {true, none, none, 7});
      if (announcer == 2) program.barrier_packet(queue, {true, none, none, 7});
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

TEST_CASE("What the host is once taken to know it knows in everything that is told later") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  const uint64_t before = host_clock_ns();
  program.dispatch(queue, "idle", {true, none, none, 7});
  const auto page = [](uint32_t number) { return kFine + number * kPageBytes; };
  program.checker().host_read(page(0), before, Program::kind_of);
  program.checker().host_read(page(1), host_clock_ns(), Program::kind_of);
  program.checker().host_read(page(2), before, Program::kind_of);
  const Recording run = journal.recording();
  CHECK(run.page_count.at(page(0)) == 1);
  CHECK(run.page_count.at(page(1)) == 2);
}

TEST_CASE("A store of the host and one that is perhaps its own are different") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  program.host_opens(kFine);
  program.host_opens(kFine + kPageBytes);
  program.host_wrote(kFine);
  program.checker().unknown(kFine + kPageBytes, page_bytes(kFine, 4));
  CHECK(counts(journal.recording()) == std::vector<uint64_t>{1, 1});
}

TEST_CASE("Memory that was unmapped in between has another past") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  program.dispatch(queue, "fill", {}, {writes(kLocal, 4 * kPageBytes)});
  program.forget(kLocal + kPageBytes, kLocal + 2 * kPageBytes);
  program.dispatch(queue, "again", {true, agent, none}, {writes(kLocal, 4 * kPageBytes)});
  CHECK(counts(journal.recording()) == std::vector<uint64_t>{3, 1});
}

TEST_CASE("A kept run is judged as the run was, page for page") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute(), engine = program.sdma();
  program.host_writes(kFine);
  program.dispatch(queue, "fill", {false, agent, none},
                   {reads(kFine), writes(kCoarse, 2 * kPageBytes)});
  program.dispatch(queue, "race", {false, none, none, 7}, {reads(kCoarse, 2 * kPageBytes)});
  program.sdma_waits(engine, 7);
  program.copy(engine, "copy", kCoarse + 100, kLocal + 100, 2 * kPageBytes);
  program.host_reads(kCoarse);
  program.forget(kCoarse, kCoarse + kPageBytes);
  program.finish();
  REQUIRE(program.findings().size() == 4);
  CHECK(judged_again(journal) == judged(program));
}

TEST_CASE("A dispatch that meets the host at one page has not met it at another that is kept") {
  Journal journal;
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  Program::Dispatch dispatch = program.launch(
      queue, "add", {}, {writes(kFine, 4, Path::synchronising), writes(kFine + kPageBytes)});
  program.host_reads(kFine);
  program.host_reads(kFine + kPageBytes);
  program.end(dispatch);
  CHECK(program.found() == "unordered WAR add->host 0x1000+1 possible");
  CHECK(judged_again(journal) == judged(program));
}

TEST_CASE("A run is over when the program ends, though its threads and queues go on") {
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

TEST_CASE("A run that is too long is not kept at all, whatever it is that is long") {
  Journal journal(16 << 10);
  Program program("gfx90a", true, &journal);
  const ActorId queue = program.compute();
  const auto page = [](uint32_t number) { return kLocal + number * kPageBytes; };
  CHECK_FALSE(journal.overflowed());
  SECTION("its packets") {
    for (uint32_t i = 0; i < 1000; ++i) program.barrier_packet(queue, {});
  }
  SECTION("what they did") {
    Program::Dispatch dispatch = program.launch(queue, "different", {});
    for (uint32_t i = 0; i < 64; ++i) program.touch(dispatch, {writes(page(i), i + 1)});
    CHECK_FALSE(journal.overflowed());
    program.end(dispatch);
  }
  SECTION("the names of kernels") { program.dispatch(queue, std::string(16 << 10, 'k'), {}); }
  SECTION("how many pages there are") {
    program.dispatch(queue, "fill", {}, {writes(kLocal, kMemoryBytes)});
  }
  SECTION("the ways in which pages came by it") {
    for (uint32_t bit = 1; bit < 128; bit *= 2) {
      Program::Dispatch dispatch = program.launch(queue, "same", {});
      for (uint32_t i = 0; i < 128; ++i)
        if ((i & bit) != 0) program.touch(dispatch, {writes(page(i))});
      program.end(dispatch);
    }
  }
  CHECK(journal.overflowed());
  // It is judged on.
  program.clear();
  program.dispatch(queue, "write", {}, {writes(kFine)});
  program.dispatch(queue, "race", {}, {reads(kFine)});
  CHECK(program.found() == "unordered RAW write->race 0x0+4 possible");
  const Recording run = journal.recording();
  CHECK(run.events.empty());
  CHECK(run.page_count.empty());
}
