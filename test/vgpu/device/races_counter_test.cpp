// The race detector (device/races) on a counter that the last workgroup resets by a plain store, as
// reductions over workgroups do (CUDA's last-block idiom, Kokkos). On gfx942, where a plain store
// is no atomic one.
#include <string>
#include <vector>

#include "device/races/dispatch_races.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/device/races_program.hpp"

namespace uptempo::vgpu::races {
namespace {

using Texts = std::vector<std::string>;

constexpr bool kStoresNameScope = true;

}  // namespace

TEST_CASE("a plain store after the wave's own update follows the updates before that", "[races]") {
  struct Case {
    bool returns, waits;
    Texts expected;
  };
  for (const Case& each : {Case{true, true, {}}, Case{false, true, {"order 1 2"}},
                           Case{true, false, {"release 1 2"}}}) {
    CAPTURE(each.returns, each.waits);
    Program program(8, 1, kStoresNameScope);
    for (uint32_t group = 0; group < 7; ++group) program.update(group, 0, kFlag, 1);
    program.update(7, 0, kFlag, 1, each.returns);
    if (each.waits) program.wait(7, 0);
    program.write(7, 0, kFlag, 2);
    CHECK(program.findings() == each.expected);
  }
}

TEST_CASE("a plain store still races with an update after the wave's own", "[races]") {
  for (const bool store_is_last : {false, true}) {
    CAPTURE(store_is_last);
    Program program(2, 1, kStoresNameScope);
    program.update(0, 0, kFlag, 1);
    program.wait(0, 0);
    if (store_is_last) program.update(1, 0, kFlag, 1);
    program.write(0, 0, kFlag, 2);
    if (!store_is_last) program.update(1, 0, kFlag, 1);
    CHECK(program.findings() == Texts{"order 1 2"});
  }
}

TEST_CASE("a barrier passes the order on to the other waves of the workgroup", "[races]") {
  for (const bool has_barrier : {false, true}) {
    CAPTURE(has_barrier);
    Program program(2, 2, kStoresNameScope);
    program.update(0, 0, kFlag, 1);
    program.update(1, 0, kFlag, 1);
    program.wait(1, 0);
    if (has_barrier) program.barrier(1);
    program.write(1, 1, kFlag, 2);
    CHECK(program.findings().empty() == has_barrier);
  }
}

TEST_CASE("each wave of the last workgroup may store, however many updates there were", "[races]") {
  Program program(8, 3, kStoresNameScope);
  for (uint32_t group = 0; group < 8; ++group) program.update(group, 0, kFlag, 1);
  program.wait(7, 0);
  program.barrier(7);
  for (uint32_t wave = 0; wave < 3; ++wave) program.write(7, wave, kFlag, 2 + wave);
  // Among themselves, they race.
  for (const std::string& finding : program.findings())
    CHECK(finding.find(" 1 ") == std::string::npos);
}

TEST_CASE("an update of other bytes orders nothing", "[races]") {
  Program program(2, 1, kStoresNameScope);
  program.update(0, 0, kFlag, 1);
  program.update(1, 0, kFlag + 4, 1);
  program.wait(1, 0);
  program.write(1, 0, kFlag, 2);
  CHECK(program.findings() == Texts{"order 1 2"});
}

TEST_CASE("an update orders no plain accesses before it", "[races]") {
  Program program(2, 1, kStoresNameScope);
  program.write(0, 0, kFlag, 1);
  program.update(1, 0, kFlag, 2);
  program.wait(1, 0);
  program.write(1, 0, kFlag, 3);
  CHECK(program.findings() == Texts{"order 1 2", "order 1 3"});
}

}  // namespace uptempo::vgpu::races
