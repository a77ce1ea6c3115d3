// Instructions that cross lanes or select parts of registers: DPP, SDWA, lane reads and writes,
// counts over EXEC.
#include <array>
#include <bit>
#include <functional>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/semantics/semantics.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u64 = uint64_t;
using u32 = uint32_t;

constexpr int kNone = -1;

// The lane that a DPP control reads, or kNone.
struct Control {
  const char* text;
  int (*source)(int lane);
};
constexpr int in_row(int lane, int other) {
  return (lane & 48) == (other & 48) && other >= 0 && other < 64 ? other : kNone;
}

const Control kControls[] = {
    // clang-format off
    {"quad_perm:[0,1,2,3]", [](int lane) { return lane; }},
    {"quad_perm:[3,1,0,0]", [](int lane) { constexpr int kMap[] = {3, 1, 0, 0}; return (lane & ~3) | kMap[lane & 3]; }},
    {"row_shl:1",           [](int lane) { return in_row(lane, lane + 1); }},
    {"row_shl:15",          [](int lane) { return in_row(lane, lane + 15); }},
    {"row_shr:1",           [](int lane) { return in_row(lane, lane - 1); }},
    {"row_shr:8",           [](int lane) { return in_row(lane, lane - 8); }},
    {"row_ror:1",           [](int lane) { return (lane & 48) | ((lane - 1) & 15); }},
    {"row_ror:12",          [](int lane) { return (lane & 48) | ((lane - 12) & 15); }},
    {"wave_shl:1",          [](int lane) { return lane == 63 ? kNone : lane + 1; }},
    {"wave_shr:1",          [](int lane) { return lane - 1; }},
    {"wave_rol:1",          [](int lane) { return (lane + 1) & 63; }},
    {"wave_ror:1",          [](int lane) { return (lane - 1) & 63; }},
    {"row_mirror",          [](int lane) { return (lane & 48) | (15 - (lane & 15)); }},
    {"row_half_mirror",     [](int lane) { return (lane & 56) | (7 - (lane & 7)); }},
    {"row_bcast:15",        [](int lane) { return lane < 16 ? kNone : (lane & 48) - 1; }},
    {"row_bcast:31",        [](int lane) { return lane < 32 ? kNone : 31; }},
    {"row_newbcast:5",      [](int lane) { return (lane & 48) | 5; }},
    // clang-format on
};

constexpr u64 kExecShapes[] = {~u64{0}, 0x5555555555555555, 0xfffffffffffffffe, 0x0000ffff00000000};

void number_lanes(LaneBench& bench) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    bench.registers[0].lane[lane] = 0x81c2e3f4u + lane * 0x01030507u;
    bench.registers[2].lane[lane] = 0x7f8091a2u - lane * 0x00090b0du;
    bench.registers[6].lane[lane] = 0xdeadbe00u + lane;
  }
}

void check_dpp(const Control& control, unsigned row_mask, unsigned bank_mask, bool bound_ctrl) {
  LaneBench bench;
  char text[160];
  std::snprintf(text, sizeof text, "v_add_u32_dpp v6, v0, v2 %s row_mask:0x%x bank_mask:0x%x%s",
                control.text, row_mask, bank_mask, bound_ctrl ? " bound_ctrl:0" : "");
  for (const u64 exec : kExecShapes) {
    number_lanes(bench);
    const Vgpr a = bench.registers[0], b = bench.registers[2], old = bench.registers[6];
    bench.wave.set_exec(exec);
    bench.run(text);
    for (int lane = 0; lane < 64; ++lane) {
      CAPTURE(text, exec, lane);
      const bool active = exec >> lane & 1, row_on = row_mask >> (lane / 16) & 1,
                 bank_on = bank_mask >> (lane / 4 % 4) & 1;
      const int source = control.source(lane);
      const bool valid = source != kNone && (exec >> source & 1);
      u32 want = old.lane[lane];
      if (active && row_on && bank_on && (valid || bound_ctrl))
        want = (valid ? a.lane[source] : 0) + b.lane[lane];
      CHECK(bench.registers[6].lane[lane] == want);
    }
  }
}

// SDWA selects, in LLVM's notation.
struct Select {
  const char* name;
  unsigned shift, width;
};
constexpr Select kSelects[] = {{"BYTE_0", 0, 8},  {"BYTE_1", 8, 8},  {"BYTE_2", 16, 8},
                               {"BYTE_3", 24, 8}, {"WORD_0", 0, 16}, {"WORD_1", 16, 16},
                               {"DWORD", 0, 32}};
constexpr const char* kUnused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};

u32 selected(u32 value, const Select& s, bool sext) {
  const u64 field = (u64{value} >> s.shift) & ((u64{1} << s.width) - 1);
  return static_cast<u32>(
      sext ? static_cast<u64>(static_cast<int64_t>(field << (64 - s.width)) >> (64 - s.width))
           : field);
}
u32 placed(u32 result, u32 old, const Select& s, int unused) {
  const u64 mask = ((u64{1} << s.width) - 1) << s.shift;
  const u64 field = (u64{result} << s.shift) & mask;
  if (unused == 2) return static_cast<u32>((old & ~mask) | field);
  if (unused == 0) return static_cast<u32>(field);
  const bool negative = result >> (s.width - 1) & 1;
  const u64 above = negative ? ~u64{0} << (s.shift + s.width) : 0;
  return static_cast<u32>(field | above);
}

}  // namespace

TEST_CASE("every DPP control reads the lane it names") {
  for (const Control& control : kControls) {
    for (const bool bound_ctrl : {false, true}) check_dpp(control, 0xf, 0xf, bound_ctrl);
  }
}

TEST_CASE("DPP row and bank masks disable lanes") {
  check_dpp(kControls[2], 0x5, 0xf, true);
  check_dpp(kControls[2], 0xf, 0x9, false);
  check_dpp(kControls[12], 0xa, 0x3, false);
}

TEST_CASE("SDWA selects, extends and places bytes and words as its fields say") {
  LaneBench bench;
  for (const Select& dst : kSelects) {
    for (int unused = 0; unused < 3; ++unused) {
      for (size_t i = 0; i < std::size(kSelects); ++i) {
        const Select &s0 = kSelects[i], &s1 = kSelects[(i * 3 + 1) % std::size(kSelects)];
        const bool sext0 = i % 2 == 0, sext1 = i % 3 == 0;
        const std::string text = std::string("v_add_u32_sdwa v6, ") + (sext0 ? "sext(v0)" : "v0") +
                                 ", " + (sext1 ? "sext(v2)" : "v2") + " dst_sel:" + dst.name +
                                 " dst_unused:" + kUnused[unused] + " src0_sel:" + s0.name +
                                 " src1_sel:" + s1.name;
        number_lanes(bench);
        const Vgpr a = bench.registers[0], b = bench.registers[2], old = bench.registers[6];
        bench.wave.set_exec(0xfffffffffffffff0);
        bench.run(text);
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          const u32 sum = selected(a.lane[lane], s0, sext0) + selected(b.lane[lane], s1, sext1);
          const u32 want = lane < 4 ? old.lane[lane] : placed(sum, old.lane[lane], dst, unused);
          if (bench.registers[6].lane[lane] != want) {
            CAPTURE(text, lane, a.lane[lane], b.lane[lane], old.lane[lane]);
            CHECK(bench.registers[6].lane[lane] == want);
          }
        }
        SUCCEED();
      }
    }
  }
}

TEST_CASE("SDWA compares write scalar pairs, and read scalar sources") {
  LaneBench bench;
  number_lanes(bench);
  bench.wave.scalar[20] = 0x00008000;
  bench.wave.set_exec(0x7fffffffffffffff);
  bench.run("v_cmp_lt_u32_sdwa s[10:11], v0, s20 src0_sel:WORD_1 src1_sel:WORD_0");
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    CAPTURE(lane);
    CHECK((bench.wave.pair(10) >> lane & 1) ==
          (lane < 63 && bench.registers[0].lane[lane] >> 16 < 0x8000));
  }
}

TEST_CASE("lanes are read and written by number, independent of EXEC") {
  LaneBench bench;
  number_lanes(bench);
  bench.wave.set_exec(0);
  bench.run("v_readlane_b32 s20, v0, 37");
  CHECK(bench.wave.scalar[20] == bench.registers[0].lane[37]);
  bench.wave.scalar[21] = 64 + 5;
  bench.run("v_readlane_b32 s20, v0, s21");
  CHECK(bench.wave.scalar[20] == bench.registers[0].lane[5]);
  bench.run("v_readfirstlane_b32 s20, v0");
  CHECK(bench.wave.scalar[20] == bench.registers[0].lane[0]);
  bench.wave.set_exec(0xff00000000);
  bench.run("v_readfirstlane_b32 s20, v0");
  CHECK(bench.wave.scalar[20] == bench.registers[0].lane[32]);
  const Vgpr before = bench.registers[6];
  bench.run("v_writelane_b32 v6, s21, 63");
  CHECK(bench.registers[6].lane[63] == 69);
  for (unsigned lane = 0; lane < 63; ++lane)
    CHECK(bench.registers[6].lane[lane] == before.lane[lane]);
}

TEST_CASE("v_mbcnt counts the mask's bits below each lane") {
  LaneBench bench;
  const u64 mask = 0xf00d1234c0ffee01;
  bench.wave.set_pair(20, mask);
  bench.run("v_mbcnt_lo_u32_b32 v6, s20, 33\nv_mbcnt_hi_u32_b32 v6, s21, v6");
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    CAPTURE(lane);
    CHECK(bench.registers[6].lane[lane] ==
          33 + static_cast<u32>(std::popcount(mask & ((u64{1} << lane) - 1))));
  }
}

TEST_CASE("v_cmpx also writes EXEC") {
  LaneBench bench;
  number_lanes(bench);
  const u64 exec = 0x0f0f0f0f0f0f0f0f;
  bench.wave.set_exec(exec);
  bench.run("v_cmpx_lt_i32 vcc, v0, v2");
  u64 want = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const bool less = static_cast<int32_t>(bench.registers[0].lane[lane]) <
                      static_cast<int32_t>(bench.registers[2].lane[lane]);
    if (less && (exec >> lane & 1)) want |= u64{1} << lane;
  }
  CHECK(bench.wave.vcc() == want);
  CHECK(bench.wave.exec() == want);
}

TEST_CASE("v_swap_b32 exchanges active lanes") {
  LaneBench bench;
  number_lanes(bench);
  const Vgpr a = bench.registers[0], b = bench.registers[2];
  bench.wave.set_exec(0x00000000ffffffff);
  bench.run("v_swap_b32 v0, v2");
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    CHECK(bench.registers[0].lane[lane] == (lane < 32 ? b : a).lane[lane]);
    CHECK(bench.registers[2].lane[lane] == (lane < 32 ? a : b).lane[lane]);
  }
}

}  // namespace uptempo::vgpu::gfx9::test
