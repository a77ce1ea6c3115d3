// The race detector (device/races) on synthetic events. Kernels of test/vgpu/hip/races.hip have the
// idioms as compilers emit them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "device/fences/report/suppressions.hpp"
#include "device/races/dispatch_races.hpp"
#include "device/races/races.hpp"
#include "device/races/report/race_text.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/device/races_program.hpp"

namespace uptempo::vgpu::races {

using Reason = Finding::Reason;

TEST_CASE("waves of a workgroup race in LDS unless a barrier separates them", "[races]") {
  struct Pair {
    Access first, second;
    bool races;
  };
  for (const Pair& pair :
       {Pair{kWrite, kRead, true}, Pair{kRead, kWrite, true}, Pair{kWrite, kWrite, true},
        Pair{kRead, kRead, false}, Pair{kAtomic, kAtomic, false}, Pair{kAtomic, kRead, true},
        Pair{kWrite, kAtomic, true}}) {
    CAPTURE(pair.first, pair.second);
    for (const bool separated : {false, true}) {
      Program program;
      program.lds(0, 0, pair.first, 64, 1);
      if (separated) program.barrier(0);
      program.lds(0, 1, pair.second, 64, 2);
      CHECK(program.findings().empty() == (separated || !pair.races));
    }
  }
}

TEST_CASE("accesses to other bytes, of other workgroups' LDS, and of one wave do not race",
          "[races]") {
  Program program;
  program.lds(0, 0, kWrite, 0, 1, 1);
  program.lds(0, 1, kWrite, 1, 2, 1);
  program.lds(1, 1, kWrite, 0, 3);
  program.lds(0, 0, kRead, 0, 4, 1);
  program.write(0, 0, 0x1004, 5);  // scratch
  program.write(1, 0, 0x1004, 6);
  CHECK(program.findings().empty());
  program.lds(0, 1, kRead, 0, 7, 2);
  CHECK(program.findings() == Texts{"barrier 1 7"});
}

TEST_CASE("a finding has the bytes that both accesses share", "[races]") {
  Program program;
  program.lds(0, 0, kWrite, 60, 1, 16);  // over two lines
  program.lds(0, 1, kRead, 66, 2, 2);
  const std::vector<Finding> findings = program.races.take_findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].lds);
  CHECK(findings[0].address == 66);
  CHECK(findings[0].bytes == 2);
  CHECK(findings[0].writer.wave == 0);
  CHECK(findings[0].writer.access == kWrite);
  CHECK(findings[0].other.wave == 1);
  CHECK(findings[0].other.instruction == kCode + 16);
}

TEST_CASE("the findings do not depend on which wave comes first", "[races]") {
  Texts texts[2];
  for (const bool swapped : {false, true}) {
    Program program;
    const auto first = [&] { program.write(0, 0, kData, 1); };
    const auto second = [&] { program.read(1, 1, kData, 2); };
    swapped ? second() : first();
    swapped ? first() : second();
    texts[swapped] = program.findings();
  }
  CHECK(texts[0] == Texts{"order 1 2"});
  CHECK(texts[1] == texts[0]);
}

TEST_CASE("a barrier orders global accesses of its workgroup only", "[races]") {
  Program program;
  program.write(0, 0, kData, 1);
  program.barrier(0);
  program.barrier(1);
  program.read(0, 1, kData, 2);
  CHECK(program.findings().empty());
  program.read(1, 1, kData, 3);
  CHECK(program.findings() == Texts{"order 1 3"});
}

TEST_CASE("a load that a compare-and-swap at its address follows is part of that atomic",
          "[races]") {
  for (const bool second_loads_first : {false, true}) {
    Program program;
    program.read(0, 0, kData, 1);
    if (second_loads_first) program.read(1, 0, kData, 1);
    program.compare(0, 0, kData, 2);
    if (!second_loads_first) program.read(1, 0, kData, 1);
    program.compare(1, 0, kData, 2);
    for (const uint32_t group : {0u, 1u}) program.end(group);
    CHECK(program.findings().empty());
  }
}

TEST_CASE("a buffer load, which is observed lane by lane, is followed as one load", "[races]") {
  Program program;
  const auto lanes = [&](Access kind, uint32_t group, unsigned line) {
    for (uint32_t lane = 0; lane < 64; ++lane) {
      std::array<GpuAddress, 64> addresses{};
      addresses[lane] = kData + 4 * lane;
      program.races.access({.access = kind,
                            .scope = kind == kAtomic ? AccessScope::agent : AccessScope::wave,
                            .compares = kind == kAtomic,
                            .size_bytes = 4,
                            .lanes = uint64_t{1} << lane,
                            .address = addresses.data(),
                            .workgroup = {group, 0, 0},
                            .instruction = kCode + 8 * line});
    }
  };
  for (const uint32_t group : {0u, 1u}) {
    lanes(kRead, group, 1);
    lanes(kAtomic, group, 2);
  }
  for (const uint32_t group : {0u, 1u}) program.end(group);
  CHECK(program.findings().empty());
}

TEST_CASE("a load is no part of an atomic if one of its lanes does not compare at its address",
          "[races]") {
  enum class Mistake { none_follows, other_address, too_late, plain_atomic, other_size };
  for (const Mistake mistake : {Mistake::none_follows, Mistake::other_address, Mistake::too_late,
                                Mistake::plain_atomic, Mistake::other_size}) {
    CAPTURE(static_cast<int>(mistake));
    Program program;
    program.read(0, 0, kData, 1);
    program.compare(0, 0, kData, 2);
    if (mistake == Mistake::other_size)
      program.access(1, 0, Access::read, kData, 1, AccessScope::wave, true, 8);
    else
      program.read(1, 0, kData, 1);
    for (unsigned i = 0; mistake == Mistake::too_late && i < FollowedLoads::kFollowed; ++i)
      program.read(1, 0, kData + 64 + 4 * i, 9);
    if (mistake == Mistake::plain_atomic)
      program.update(1, 0, kData, 3);
    else if (mistake != Mistake::none_follows)
      program.compare(1, 0, mistake == Mistake::other_address ? kFlag : kData, 2);
    for (const uint32_t group : {0u, 1u}) program.end(group);
    const Texts found = program.findings();
    CHECK(std::find(found.begin(), found.end(), "order 2 1") != found.end());
  }
}

TEST_CASE("two stores of which the second one changes nothing are a class of their own",
          "[races]") {
  for (const bool in_lds : {false, true}) {
    const auto store = [&](Program& program, uint32_t wave, unsigned line) {
      in_lds ? program.lds(0, wave, kWrite, 64, line) : program.write(0, wave, kData, line);
    };
    Program program;
    store(program, 0, 1);
    program.changes(false);
    store(program, 1, 2);
    CHECK(program.findings() == Texts{"same-values barrier 1 2"});

    Program different;
    store(different, 0, 1);
    store(different, 1, 2);
    CHECK(different.findings() == Texts{"barrier 1 2"});
  }
}

TEST_CASE("a pair of stores that stored different values once is a race", "[races]") {
  Program program;
  program.changes(false);
  program.write(0, 0, kData, 1);
  program.write(0, 1, kData, 2);
  program.changes(true);
  program.write(0, 0, kData + 4, 1);
  program.write(0, 1, kData + 4, 2);
  CHECK(program.findings() == Texts{"barrier 1 2"});
}

TEST_CASE("only stores that race with a store are compared with memory", "[races]") {
  Program program;
  for (unsigned line = 1; line <= 3; ++line) {
    program.write(0, 0, kData, line);
    program.lds(0, 0, Access::write, 0, line);
  }
  program.read(0, 1, kData, 4);
  CHECK(program.compared() == 0);
  program.write(0, 1, kData, 5);
  CHECK(program.compared() != 0);
}

TEST_CASE("a store that changes nothing still races with loads and atomics", "[races]") {
  Program program;
  program.changes(false);
  program.read(0, 0, kData, 1);
  program.write(0, 1, kData, 2);
  program.update(1, 0, kFlag, 3);
  program.write(0, 1, kFlag, 4);
  const Texts found = program.findings();
  CHECK(std::find(found.begin(), found.end(), "barrier 2 1") != found.end());
  CHECK(std::none_of(found.begin(), found.end(),
                     [](const std::string& text) { return text.starts_with("same-values"); }));
}

TEST_CASE("stores of the same values are shown on request, and counted otherwise", "[races]") {
  for (const bool shown : {false, true}) {
    uint64_t reports = 0;
    Races races([&](const Checked&, const Finding& finding) { reports += finding.same_values; },
                Races::Limits{.same_values = shown});
    for (int dispatch = 0; dispatch < 2; ++dispatch) {
      Program program;
      program.write(0, 0, kData, 1);
      program.changes(false);
      program.write(0, 1, kData, 2);
      races.end(program.races, {.kernel = "k.kd"});
    }
    CHECK(reports == (shown ? 1 : 0));
    CHECK(races.counts().findings == (shown ? 1 : 0));
    CHECK(races.counts().same_values == (shown ? 0 : 1));
  }
}

TEST_CASE("a load before a compare-and-swap still races with stores", "[races]") {
  Program program;
  program.read(0, 0, kData, 1);
  program.compare(0, 0, kData, 2);
  program.write(1, 0, kData, 3);
  for (const uint32_t group : {0u, 1u}) program.end(group);
  const Texts found = program.findings();
  CHECK(std::find(found.begin(), found.end(), "order 3 1") != found.end());
}

TEST_CASE("a store before a barrier still races with atomics of other workgroups", "[races]") {
  Program program;
  program.write(0, 0, kData, 1);
  program.barrier(0);
  program.update(0, 1, kData, 2, false);
  program.update(1, 0, kData, 3, false);
  CHECK(program.findings() == Texts{"order 1 3"});
}

TEST_CASE("a flag orders workgroups: release by waits, acquire by an invalidation", "[races]") {
  struct Flow {
    bool waits, invalidates;
    Texts expected;
  };
  for (const Flow& flow : {Flow{true, true, {}}, Flow{false, true, {"release 1 5"}},
                           Flow{true, false, {"acquire 1 5"}}}) {
    for (const bool by_update : {false, true}) {  // else by a store and polls
      CAPTURE(flow.waits, flow.invalidates, by_update);
      Program program;
      program.write(0, 0, kData, 1);
      if (flow.waits) program.wait(0, 0);
      if (by_update)
        program.update(0, 0, kFlag, 2, false);
      else
        program.write(0, 0, kFlag, 3);
      program.poll(1, 1, kFlag, 4);
      program.wait(1, 1);
      if (flow.invalidates) program.invalidate(1, 1);
      program.read(1, 1, kData, 5);
      CHECK(program.findings() == flow.expected);
    }
  }
}

TEST_CASE("an invalidation before the flag suffices if the wave loads only the flag's line",
          "[races]") {
  for (const GpuAddress loaded : {kFlag + 8, kFlag + 64}) {
    for (const bool loads_more : {false, true}) {
      CAPTURE(loaded - kFlag, loads_more);
      Program program;
      program.write(0, 0, kData, 1);
      program.wait(0, 0);
      program.update(0, 0, kFlag, 2);
      program.read(1, 0, kData + 4096, 3);
      program.invalidate(1, 0);
      program.read(1, 0, loaded, 4);
      program.read(1, 0, loaded, 5);
      if (loads_more) program.read(1, 0, kData + 4096, 6);
      program.update(1, 0, kFlag, 7);
      program.read(1, 0, kData, 8);
      const bool suffices = loaded == kFlag + 8 && !loads_more;
      CHECK(program.findings() == (suffices ? Texts{} : Texts{"acquire 1 8"}));
    }
  }
}

TEST_CASE("an invalidation before the flag suffices while the wave loads nothing", "[races]") {
  for (const bool loads : {false, true}) {
    Program program;
    program.write(0, 0, kData, 1);
    program.wait(0, 0);
    program.update(0, 0, kFlag, 2);
    program.invalidate(1, 0);
    if (loads) program.read(1, 0, kData + 4096, 3);
    program.update(1, 0, kFlag, 4);
    program.read(1, 0, kData, 5);
    CHECK(program.findings() == (loads ? Texts{"acquire 1 5"} : Texts{}));
  }
}

TEST_CASE("an atomic that returns nothing acquires nothing", "[races]") {
  Program program;
  program.write(0, 0, kData, 1);
  program.wait(0, 0);
  program.update(0, 0, kFlag, 2, false);
  program.update(1, 0, kFlag, 3, false);
  program.invalidate(1, 0);
  program.read(1, 0, kData, 4);
  CHECK(program.findings() == Texts{"order 1 4"});
}

TEST_CASE("what a wave acquires, its workgroup knows after a barrier, and others by its release",
          "[races]") {
  Program program(3);
  program.write(0, 0, kData, 1);
  program.wait(0, 0);
  program.update(0, 0, kFlag, 2);
  program.end(0);
  program.update(1, 0, kFlag, 3);
  program.invalidate(1, 0);
  program.barrier(1);
  program.read(1, 1, kData, 4);
  program.wait(1, 1);
  program.write(1, 1, kFlag + 64, 5);
  program.end(1);
  program.poll(2, 0, kFlag + 64, 6);
  program.invalidate(2, 0);
  program.write(2, 0, kData, 7);
  CHECK(program.findings().empty());
}

TEST_CASE("a store that releases a lock continues in the next atomic", "[races]") {
  Program program(3);
  for (const uint32_t group : {0u, 1u, 2u}) {
    program.update(group, 0, kFlag, 1);
    program.wait(group, 0);
    program.invalidate(group, 0);
    program.read(group, 0, kData, 2);
    program.wait(group, 0);
    program.write(group, 0, kData, 3);
    program.wait(group, 0);
    program.write(group, 0, kFlag, 4);
  }
  CHECK(program.findings().empty());
}

// Wave 1 has stored, then wave 0 releases: the barrier before or after that.
TEST_CASE("a barrier after a release does not replace the one before it", "[races]") {
  enum class How { update, store };
  for (const How how : {How::update, How::store}) {
    for (const bool in_time : {true, false}) {
      for (const bool ended : {false, true}) {
        CAPTURE(how, in_time, ended);
        Program program(3);
        program.write(0, 0, kData + 64, 1);
        program.write(0, 1, kData, 2);
        program.wait(0, 0);
        program.wait(0, 1);
        if (in_time) program.barrier(0);
        if (how == How::update)
          program.update(0, 0, kFlag, 3, false);
        else
          program.write(0, 0, kFlag, 3);
        program.barrier(0);
        program.write(0, 0, kData + 128, 7);  // a later store tells more
        if (ended) program.end(0);
        for (const uint32_t group : {1u, 2u}) {
          program.poll(group, 1, kFlag, 4);
          program.invalidate(group, 1);
          program.read(group, 1, kData + 64, 5);
          program.read(group, 1, kData, 6);
        }
        CHECK(program.findings() == (in_time ? Texts{} : Texts{"release-of-other 2 6"}));
      }
    }
  }
}

TEST_CASE("a release does not tell of what its wave acquires later", "[races]") {
  for (const bool by_update : {false, true}) {
    for (const bool later : {false, true}) {
      CAPTURE(by_update, later);
      Program program(3);
      program.write(0, 0, kData, 1);
      program.wait(0, 0);
      program.update(0, 0, kFlag, 2);
      const auto acquire = [&] {
        program.update(1, 0, kFlag, 3);
        program.invalidate(1, 0);
      };
      if (!later) acquire();
      program.wait(1, 0);
      if (by_update)
        program.update(1, 0, kFlag + 64, 4, false);
      else
        program.write(1, 0, kFlag + 64, 4);
      if (later) acquire();
      program.write(1, 0, kData + 64, 7);
      program.poll(2, 0, kFlag + 64, 5);
      program.invalidate(2, 0);
      program.read(2, 0, kData, 6);
      CHECK(program.findings() == (later ? Texts{"order 1 6"} : Texts{}));
    }
  }
}

TEST_CASE("an LDS atomic orders waves, without a wait because LDS is in order", "[races]") {
  for (const bool waits : {false, true}) {
    Program program;
    program.lds(0, 0, kWrite, 0, 1);
    if (waits) program.wait_lds(0, 0);
    program.lds(0, 0, kAtomic, 64, 2);
    program.lds(0, 1, kAtomic, 64, 3);
    program.lds(0, 1, kRead, 0, 4);
    CHECK(program.findings().empty());
  }
}

TEST_CASE("gfx942: a release to other workgroups writes L2 back", "[races]") {
  for (const bool writes_back : {false, true}) {
    Program program(2, 2, true);
    program.write(0, 0, kData, 1);
    if (writes_back) program.write_back(0, 0);
    program.wait(0, 0);
    program.access(0, 0, kWrite, kFlag, 2, AccessScope::agent);
    program.poll(1, 0, kFlag, 3);
    program.invalidate(1, 0);
    program.read(1, 0, kData, 4);
    CHECK(program.findings() == (writes_back ? Texts{} : Texts{"release 1 4"}));
  }
}

TEST_CASE("gfx942: a barrier writes nothing back", "[races]") {
  for (const bool writes_back : {false, true}) {
    Program program(2, 2, true);
    program.write(0, 0, kData, 1);
    if (writes_back) program.write_back(0, 0);
    program.wait(0, 0);
    program.barrier(0);
    program.update(0, 0, kFlag, 2);
    program.update(1, 0, kFlag, 3);
    program.invalidate(1, 0);
    program.read(1, 0, kData, 4);
    CHECK(program.findings() == (writes_back ? Texts{} : Texts{"release 1 4"}));
  }
}

TEST_CASE("gfx942: an atomic of workgroup scope does not reach other workgroups", "[races]") {
  Program program(2, 2, true);
  program.access(0, 0, kWrite, kFlag, 1, AccessScope::workgroup);
  program.access(0, 1, kRead, kFlag, 2, AccessScope::workgroup);
  CHECK(program.findings().empty());
  program.poll(1, 0, kFlag, 3);
  CHECK(program.findings() == Texts{"scope 1 3"});
}

TEST_CASE("gfx942: a plain store is not atomic", "[races]") {
  Program program(2, 2, true);
  program.write(0, 0, kFlag, 1);
  program.poll(1, 0, kFlag, 2);
  CHECK(program.findings() == Texts{"order 1 2"});
}

// LLVM's memory models before gfx942: a relaxed store of agent scope is a store without any bits.
TEST_CASE("a finding says whether its store may be an atomic one", "[races]") {
  struct Pair {
    Access first, second;
    bool of_atomics;  // another wave accesses the place atomically, after a barrier
    bool expected;
  };
  for (const Pair& pair : {Pair{kWrite, kAtomic, false, true}, Pair{kAtomic, kWrite, false, true},
                           Pair{kWrite, kWrite, false, false}, Pair{kWrite, kWrite, true, true},
                           Pair{kWrite, kRead, true, false}, Pair{kRead, kAtomic, true, false}}) {
    for (const bool stores_name_scope : {false, true}) {
      CAPTURE(pair.first, pair.second, pair.of_atomics, stores_name_scope);
      Program program(2, 2, stores_name_scope);
      if (pair.of_atomics) program.update(0, 1, kData, 1);
      program.barrier(0);
      program.access(0, 0, pair.first, kData, 2);
      program.access(1, 0, pair.second, kData, 3);
      const std::vector<Finding> findings = program.races.take_findings();
      const auto found = std::find_if(findings.begin(), findings.end(), [](const Finding& each) {
        return std::min(each.writer.instruction, each.other.instruction) == kCode + 16;
      });
      REQUIRE(found != findings.end());
      CHECK(found->may_be_atomic == (pair.expected && !stores_name_scope));
    }
  }
}

TEST_CASE("a global barrier orders the workgroups", "[races]") {
  for (const bool invalidates : {false, true}) {
    Program program;
    program.write(0, 0, kData, 1);
    for (const uint32_t group : {0u, 1u}) {
      program.wait(group, 0);
      program.races.arrived(Program::at(group, 0), 3);
    }
    for (const uint32_t group : {0u, 1u}) {
      program.races.passed(Program::at(group, 0), 3);
      if (invalidates) program.invalidate(group, 0);
    }
    program.read(1, 0, kData, 2);
    CHECK(program.findings() == (invalidates ? Texts{} : Texts{"acquire 1 2"}));
  }
}

TEST_CASE("each pair of instructions is one finding, with the lowest address", "[races]") {
  Program program;
  for (const unsigned line : {3u, 1u, 2u}) {
    program.write(0, 0, kData + 64 * line, 1);
    program.read(1, 0, kData + 64 * line, 2);
  }
  const std::vector<Finding> findings = program.races.take_findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].address == kData + 64);
  CHECK(findings[0].times == 3);
}

TEST_CASE("a pair of instructions is reported once in a process", "[races]") {
  std::vector<std::string> kernels;
  const auto run = [](Races& races, const std::string& kernel) {
    const auto dispatch = races.begin({.workgroups = {2, 1, 1}, .entry = kCode});
    std::array<GpuAddress, 64> addresses{kData};
    for (const uint32_t group : {0u, 1u}) {
      dispatch->workgroup_started({.workgroup = {group, 0, 0}, .waves = 1});
      dispatch->access({.access = kWrite,
                        .size_bytes = 4,
                        .lanes = 1,
                        .address = addresses.data(),
                        .workgroup = {group, 0, 0},
                        .instruction = kCode});
    }
    races.end(*dispatch, {.kernel = kernel});
  };
  const auto report = [&](const Checked& dispatch, const Finding&) {
    kernels.push_back(dispatch.kernel);
  };
  const auto wanted = [](const Checked& dispatch) { return dispatch.kernel != "c.kd"; };
  for (const bool repeated : {false, true}) {
    kernels.clear();
    Races races(report, {.repeated = repeated}, wanted);
    for (const char* kernel : {"a.kd", "a.kd", "b.kd", "c.kd"}) run(races, kernel);
    const Races::Counts counts = races.counts();
    CHECK(counts.dispatches == 4);
    CHECK(counts.findings == (repeated ? 3u : 2u));
    CHECK(counts.repeated == (repeated ? 0u : 1u));
    CHECK(counts.suppressed == 1);
    CHECK(kernels == (repeated ? Texts{"a.kd", "a.kd", "b.kd"} : Texts{"a.kd", "b.kd"}));
  }
}

TEST_CASE("a dispatch of too many workgroups is not checked", "[races]") {
  Races races([](const Checked&, const Finding&) {});
  CHECK(races.begin({.workgroups = {1u << 16, 1u << 16, 1}}) == nullptr);
  CHECK(races.counts().incomplete == 1);
}

TEST_CASE("a race is a sentence with a remedy, and a line of JSON", "[races]") {
  const Checked dispatch{.kernel = "_Z3sumPi.kd", .queue = 1, .index = 4};
  const Finding finding{
      .reason = Reason::barrier,
      .writer = {.access = kWrite, .instruction = 8, .workgroup = {2, 0, 0}, .wave = 1},
      .other = {.access = kAtomic,
                .reach = Reach::workgroup,
                .instruction = 16,
                .workgroup = {2, 0, 0}},
      .lds = true,
      .address = 64,
      .bytes = 4,
      .times = 3};
  Details details;
  details.writer_line = "sum.hip:12";
  details.language = Language::hip;
  CHECK(to_sentence(dispatch, finding, details) ==
        "race: sum(int*) (queue 1, packet 4): wave 1 of workgroup (2,0,0) writes 4 bytes at offset "
        "64 of LDS, which wave 0 of the same workgroup updates atomically: no barrier, and no "
        "release and acquire, is between the two accesses [LLVM, User Guide for AMDGPU Backend, "
        "Memory Model]\n"
        "    writes at sum.hip:12\n"
        "    remedy: call __syncthreads() between the two accesses, or make the plain one atomic, "
        "too");
  const std::string line = to_json(dispatch, finding, "gfx90a", details);
  CHECK(line.find('\n') == std::string::npos);
  const auto parsed = nlohmann::json::parse(line);
  CHECK(parsed["class"] == "race");
  CHECK_FALSE(parsed.contains("stream"));
  details.queue_name = {.stream = HipStream{0x55d0c0}};
  CHECK(to_sentence(dispatch, finding, details)
            .starts_with("race: sum(int*) (stream 0x55d0c0, queue 1, packet 4): wave 1 "));
  CHECK(nlohmann::json::parse(to_json(dispatch, finding, "gfx90a", details))["stream"] ==
        "0x55d0c0");
  CHECK(parsed["memory_space"] == "lds");
  CHECK(parsed["source_name"] == "sum(int*)");
  CHECK(parsed["writer"]["line"] == "sum.hip:12");
  CHECK(parsed["writer"]["workgroup"] == nlohmann::json{2, 0, 0});
  CHECK(parsed["other"]["access"] == "atomic");
  CHECK(parsed["times"] == 3);
  for (const Reason reason : {Reason::barrier, Reason::order, Reason::release,
                              Reason::release_of_other, Reason::acquire, Reason::scope})
    for (const Language language : {Language::opencl, Language::hip}) {
      Finding other = finding;
      other.reason = reason;
      CHECK_FALSE(remedy(other, language).empty());
      const std::string usual = remedy(other, language);
      other.may_be_atomic = true;
      CHECK(remedy(other, language).starts_with(usual + "; a store that is already atomic"));
    }
}

TEST_CASE("the file of a source line tells the language of its kernel", "[races]") {
  CHECK(language_of("sum.cl:12") == Language::opencl);
  for (const char* const line : {"sum.hip:12", "sum.cpp:1", "sum.cu:1"})
    CHECK(language_of(line) == Language::hip);
  for (const char* const line : {"", "sum.h:12", "sum.hpp:12"}) CHECK_FALSE(language_of(line));
  const Finding finding{.reason = Reason::barrier, .writer = {}, .other = {}, .lds = true};
  CHECK(remedy(finding, Language::opencl) ==
        "call barrier(CLK_LOCAL_MEM_FENCE) between the two accesses");
  CHECK(remedy(finding, Language::hip) == "call __syncthreads() between the two accesses");
}

TEST_CASE("a race is suppressed by its kernel and queue", "[races]") {
  auto rules = fences::Suppressions::parse(
      "race sum* sum*  queue=1\nstale copy* *\n* \"fill(int*)\" *\n", "s");
  CHECK(rules.suppress_race("sum.kd", 1));
  CHECK_FALSE(rules.suppress_race("sum.kd", 2));
  CHECK_FALSE(rules.suppress_race("copy.kd", 1));
  CHECK(rules.suppress_race("_Z4fillPi.kd", 7));
  CHECK(rules.unused() == Texts{"s:2"});
}

}  // namespace uptempo::vgpu::races
