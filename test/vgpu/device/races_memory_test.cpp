// The memory of the race detector (device/races): its budget, clocks and releases.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "device/races/dispatch_races.hpp"
#include "device/races/far_clock.hpp"
#include "device/races/meter.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/device/races_program.hpp"

namespace uptempo::vgpu::races {

TEST_CASE("a dispatch beyond the memory budget is incomplete, and gives it back", "[races]") {
  Budget budget(32'000);
  {
    DispatchRaces races({.workgroups = {1, 1, 1}, .entry = kCode}, budget);
    races.workgroup_started({.waves = 1});
    std::array<GpuAddress, 64> addresses{};
    unsigned pages = 0;
    for (; pages < 8 && !races.is_incomplete(); ++pages) {
      addresses[0] = kData + 4096 * pages;
      races.access({.access = kWrite, .size_bytes = 4, .lanes = 1, .address = addresses.data()});
    }
    CHECK(pages == 5);  // the last one did not fit
  }
  CHECK(budget.take(32'000));
}

// Each step needs more memory, but no shadow of new pages.
TEST_CASE("clocks, releases, stores and workgroups count for the budget", "[races]") {
  using Step = std::function<void(Program&, uint32_t)>;
  const std::vector<std::pair<std::string, Step>> steps{
      {"releases in one place",
       [](Program& program, uint32_t i) {
         program.start(i);
         program.wait(i, 0);
         program.update(i, 0, kFlag, 1, false);
         program.end(i);
       }},
      {"acquires of one place",
       [](Program& program, uint32_t i) {
         program.start(i);
         program.wait(i, 0);
         program.update(i, 0, kFlag, 1);
         program.invalidate(i, 0);
         program.end(i);
       }},
      {"stores after barriers of one workgroup",
       [](Program& program, uint32_t i) {
         if (i == 0) program.start(0);
         program.barrier(0);
         program.write(0, 0, kData, 1);
       }},
      {"stores after barriers of workgroups that have ended",
       [](Program& program, uint32_t i) {
         program.start(i);
         program.barrier(i);
         program.write(i, 0, kData + 4 * (i % 1024), 1);
         program.end(i);
       }},
      {"workgroups that run", [](Program& program, uint32_t i) { program.start(i); }},
      {"LDS of workgroups that run", [](Program& program, uint32_t i) {
         program.start(i);
         program.lds(i, 0, kWrite, 0, 1);
       }}};
  constexpr uint32_t kMany = 20'000;
  for (const auto& [name, step] : steps) {
    CAPTURE(name);
    Program program(kMany, 2, false, 600'000, false);
    CHECK_FALSE(program.races.is_incomplete());
    for (uint32_t i = 0; i < kMany && !program.races.is_incomplete(); ++i) step(program, i);
    CHECK(program.races.is_incomplete());
    // It reports no race in global memory any more, but those in LDS.
    (void)program.findings();
    program.start(kMany - 1);
    program.write(kMany - 1, 0, kData + 8192, 2);
    program.write(kMany - 1, 1, kData + 8192, 3);
    program.lds(kMany - 1, 0, kWrite, 0, 4);
    program.lds(kMany - 1, 1, kWrite, 0, 5);
    const Texts found = program.findings();
    CHECK((found.empty() || found == Texts{"barrier 4 5"}));
  }
}

TEST_CASE("beyond the budget, LDS is checked in the memory of the history", "[races]") {
  Program program(2, 2, false, 40'000, false);
  program.start(0);
  for (uint32_t page = 0; page < 8; ++page) program.write(0, 0, kData + 4096 * page, 1);
  REQUIRE(program.races.is_incomplete());
  program.write(0, 1, kData, 2);
  program.start(1);
  program.lds(1, 0, kWrite, 0, 3);
  program.lds(1, 1, kWrite, 0, 4);
  program.barrier(1);
  program.lds(1, 1, kRead, 0, 5);
  CHECK(program.findings() == Texts{"barrier 3 4"});
}

TEST_CASE("what no wave can learn any more takes no memory", "[races]") {
  constexpr uint32_t kMany = 20'000;
  Program lock(2, 1, true, 100'000);
  for (uint32_t round = 0; round < kMany; ++round) {
    const uint32_t group = round % 2;
    lock.update(group, 0, kFlag, 1);
    lock.invalidate(group, 0);
    lock.write(group, 0, kData, 2);
    lock.write_back(group, 0);
    lock.wait(group, 0);
    lock.update(group, 0, kFlag, 3, false);
  }
  CHECK_FALSE(lock.races.is_incomplete());
  CHECK(lock.findings().empty());
  Program copy(kMany, 1, false, 100'000 + 8 * kMany, false);
  for (uint32_t i = 2; i < kMany; ++i) {
    copy.start(i);
    copy.read(i, 0, kData, 4);
    copy.wait(i, 0);
    copy.write(i, 0, kData + 64 + 4 * (i % 512), 5);
    copy.end(i);
  }
  CHECK_FALSE(copy.races.is_incomplete());
}

// Releases and acquires before and after a place has become hot (races/sync.hpp).
TEST_CASE("an acquire takes the releases before it, however many there are", "[races]") {
  for (const uint32_t count : {1u, 7u, 8u, 9u, 40u}) {
    for (const uint32_t acquired : {1u, count / 2 + 1, count}) {
      CAPTURE(count, acquired);
      Program program(count + 2, 1);
      const uint32_t reader = count, other = count + 1;
      for (uint32_t i = 0; i < count; ++i) {
        if (i == acquired) program.poll(reader, 0, kFlag, 3);
        program.write(i, 0, kData + 64 * i, 1);
        program.wait(i, 0);
        program.update(i, 0, kFlag, 2, false);
      }
      if (acquired == count) program.poll(reader, 0, kFlag, 3);
      program.poll(other, 0, kFlag, 3);
      program.invalidate(other, 0);
      for (uint32_t i = 0; i < count; ++i) program.read(other, 0, kData + 64 * i, 4);
      CHECK(program.findings().empty());
      program.invalidate(reader, 0);
      for (uint32_t i = 0; i < acquired; ++i) program.read(reader, 0, kData + 64 * i, 5);
      CHECK(program.findings().empty());
      if (acquired == count) continue;
      program.read(reader, 0, kData + 64 * acquired, 6);
      CHECK(program.findings() == Texts{"order 1 6"});
    }
  }
}

TEST_CASE("far clocks keep the latest of each wave", "[races]") {
  Budget budget;
  Meter meter(budget);
  FarClock one, other;
  CHECK(one.of(5, 0) == 0);
  one.join(5, {1, 7}, meter);
  other.join(5, {3, 2}, meter);
  other.join(70'000, {9}, meter);
  const FarClock before = one;
  one.join(other, meter);
  CHECK(one.of(5, 0) == 3);
  CHECK(one.of(5, 1) == 7);
  CHECK(one.of(70'000, 0) == 9);
  CHECK(one.of(4464, 0) == 0);
  CHECK(one.of(1u << 20, 0) == 0);
  CHECK(before.of(5, 0) == 1);  // copies are independent
  other.join(before, meter);
  CHECK(other.of(5, 0) == 3);
  CHECK(other.of(5, 1) == 7);
}

}  // namespace uptempo::vgpu::races
