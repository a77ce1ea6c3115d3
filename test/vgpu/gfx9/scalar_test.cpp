// Scalar instructions in assembly: results and SCC.
#include <bit>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/fragment.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

// Inputs are s[0:1] and s[2:3], results s[4:5] and SCC. SCC before is `scc_in`.
struct Row {
  const char* text;
  uint64_t a, b;
  bool scc_in;
  uint64_t result;
  bool scc;
};

constexpr uint64_t kMinus1 = 0xffffffff;

const Row kRows[] = {
    // clang-format off
    {"s_add_u32 s4, s0, s2",             0xffffffff, 1,          false, 0,                  true},
    {"s_add_u32 s4, s0, s2",             0x7fffffff, 1,          true,  0x80000000,         false},
    {"s_add_i32 s4, s0, s2",             0x7fffffff, 1,          false, 0x80000000,         true},
    {"s_add_i32 s4, s0, s2",             0xffffffff, 1,          true,  0,                  false},
    {"s_sub_u32 s4, s0, s2",             1,          2,          false, 0xffffffff,         true},
    {"s_sub_i32 s4, s0, s2",             0x80000000, 1,          false, 0x7fffffff,         true},
    {"s_addc_u32 s4, s0, s2",            0xffffffff, 0,          true,  0,                  true},
    {"s_addc_u32 s4, s0, s2",            5,          6,          true,  12,                 false},
    {"s_subb_u32 s4, s0, s2",            5,          5,          true,  0xffffffff,         true},
    {"s_min_i32 s4, s0, s2",             kMinus1,    1,          false, kMinus1,            true},
    {"s_min_u32 s4, s0, s2",             kMinus1,    1,          true,  1,                  false},
    {"s_max_i32 s4, s0, s2",             kMinus1,    1,          true,  1,                  false},
    {"s_max_u32 s4, s0, s2",             kMinus1,    1,          false, kMinus1,            true},
    {"s_mul_i32 s4, s0, s2",             0x10001,    0x10001,    true,  0x20001,            true},
    {"s_mul_hi_u32 s4, s0, s2",          kMinus1,    kMinus1,    false, 0xfffffffe,         false},
    {"s_mul_hi_i32 s4, s0, s2",          kMinus1,    2,          false, kMinus1,            false},
    {"s_absdiff_i32 s4, s0, s2",         3,          10,         false, 7,                  true},
    {"s_abs_i32 s4, s0",                 0xfffffffd, 0,          false, 3,                  true},
    {"s_lshl3_add_u32 s4, s0, s2",       0x20000000, 1,          false, 1,                  true},
    {"s_addk_i32 s4, -3",                0,          0,          true,  0xfffffffd,         false},
    {"s_movk_i32 s4, 0x8000",            0,          0,          true,  0xffff8000,         true},
    {"s_cmovk_i32 s4, 7",                0,          0,          false, 0,                  false},
    {"s_cmovk_i32 s4, 7",                0,          0,          true,  7,                  true},
    {"s_and_b64 s[4:5], s[0:1], s[2:3]", 0xf0f0f0f0f0f0f0f0, 0xff00ff00ff00ff00, false, 0xf000f000f000f000, true},
    {"s_or_b32 s4, s0, s2",              0,          0,          true,  0,                  false},
    {"s_xor_b32 s4, s0, 0x12345678",     0x12345678, 0,          true,  0,                  false},
    {"s_andn2_b64 s[4:5], s[0:1], s[2:3]", ~0ull,    0xff,       false, 0xffffffffffffff00, true},
    {"s_orn2_b32 s4, s0, s2",            1,          0xfffffff0, false, 0xf,                true},
    {"s_nand_b32 s4, s0, s2",            kMinus1,    kMinus1,    true,  0,                  false},
    {"s_nor_b64 s[4:5], s[0:1], s[2:3]", 0,          0,          false, ~0ull,              true},
    {"s_xnor_b32 s4, s0, s2",            5,          5,          false, kMinus1,            true},
    {"s_not_b64 s[4:5], s[0:1]",         ~0ull,      0,          true,  0,                  false},
    {"s_mov_b64 s[4:5], -7",             0,          0,          false, 0xfffffffffffffff9, false},
    {"s_mov_b64 s[4:5], 1.0",            0,          0,          false, 0x3ff0000000000000, false},
    {"s_mov_b64 s[4:5], 0x80000000",     0,          0,          false, 0x80000000,         false},
    {"s_mov_b32 s4, 0.5",                0,          0,          false, 0x3f000000,         false},
    {"s_mov_b32 s4, 0x3e22f983",         0,          0,          false, 0x3e22f983,         false},
    {"s_mov_b64 s[4:5], src_shared_base",  0,        0,          false, 0x0001000000000000, false},
    {"s_mov_b64 s[4:5], src_private_base", 0,        0,          false, 0x0002000000000000, false},
    {"s_mov_b32 s4, src_scc",            0,          0,          true,  1,                  true},
    {"s_mov_b32 s4, src_vccz",           0,          0,          false, 1,                  false},
    {"s_mov_b32 s4, src_execz",          0,          0,          false, 0,                  false},
    {"s_cselect_b32 s4, s0, s2",         1,          2,          true,  1,                  true},
    {"s_cselect_b64 s[4:5], s[0:1], s[2:3]", 1,      ~0ull,      false, ~0ull,              false},
    {"s_lshl_b32 s4, s0, s2",            1,          33,         false, 2,                  true},
    {"s_lshl_b64 s[4:5], s[0:1], s2",    1,          63,         false, 0x8000000000000000, true},
    {"s_lshr_b32 s4, s0, s2",            1,          1,          true,  0,                  false},
    {"s_lshr_b64 s[4:5], s[0:1], s2",    0x8000000000000000, 63, false, 1,                  true},
    {"s_ashr_i32 s4, s0, s2",            0x80000000, 31,         false, kMinus1,            true},
    {"s_ashr_i64 s[4:5], s[0:1], s2",    0x8000000000000000, 60, false, 0xfffffffffffffff8, true},
    {"s_bfm_b32 s4, s0, s2",             4,          8,          false, 0xf00,              false},
    {"s_bfm_b64 s[4:5], s0, s2",         4,          40,         false, 0xf0000000000,      false},
    {"s_bfe_u32 s4, s0, s2",             0xabcd1234, 0x80010,    false, 0xcd,               true},
    {"s_bfe_i32 s4, s0, s2",             0xabcd1234, 0x80010,    false, 0xffffffcd,         true},
    {"s_bfe_u32 s4, s0, s2",             0xabcd1234, 0x10,       true,  0,                  false},
    {"s_bfe_u64 s[4:5], s[0:1], s2",     0xabcd123400000000, 0x200020, false, 0xabcd1234,   true},
    {"s_bfe_i64 s[4:5], s[0:1], s2",     0xabcd123400000000, 0x200020, false, 0xffffffffabcd1234, true},
    {"s_pack_ll_b32_b16 s4, s0, s2",     0x11112222, 0x33334444, false, 0x44442222,         false},
    {"s_pack_lh_b32_b16 s4, s0, s2",     0x11112222, 0x33334444, false, 0x33332222,         false},
    {"s_pack_hh_b32_b16 s4, s0, s2",     0x11112222, 0x33334444, false, 0x33331111,         false},
    {"s_wqm_b32 s4, s0",                 0x00100200, 0,          false, 0x00f00f00,         true},
    {"s_quadmask_b64 s[4:5], s[0:1]",    0xf000000000000010, 0,  false, 0x8002,             true},
    {"s_brev_b32 s4, s0",                1,          0,          false, 0x80000000,         false},
    {"s_brev_b64 s[4:5], s[0:1]",        2,          0,          false, 0x4000000000000000, false},
    {"s_bcnt0_i32_b32 s4, s0",           0xff,       0,          false, 24,                 true},
    {"s_bcnt1_i32_b64 s4, s[0:1]",       ~0ull,      0,          false, 64,                 true},
    {"s_ff0_i32_b32 s4, s0",             7,          0,          false, 3,                  false},
    {"s_ff1_i32_b32 s4, s0",             0,          0,          false, kMinus1,            false},
    {"s_ff1_i32_b64 s4, s[0:1]",         0x100000000, 0,         false, 32,                 false},
    {"s_flbit_i32_b32 s4, s0",           1,          0,          false, 31,                 false},
    {"s_flbit_i32_b64 s4, s[0:1]",       0,          0,          false, kMinus1,            false},
    {"s_flbit_i32 s4, s0",               0xfffffff0, 0,          false, 28,                 false},
    {"s_flbit_i32 s4, s0",               kMinus1,    0,          false, kMinus1,            false},
    {"s_flbit_i32_i64 s4, s[0:1]",       0x00ffffffffffffff, 0,  false, 8,                  false},
    {"s_sext_i32_i8 s4, s0",             0x180,      0,          false, 0xffffff80,         false},
    {"s_sext_i32_i16 s4, s0",            0x18000,    0,          false, 0xffff8000,         false},
    {"s_bitset1_b64 s[4:5], s0",         63,         0,          false, 0x8000000000000000, false},
    {"s_bitreplicate_b64_b32 s[4:5], s0", 0x80000001, 0,         false, 0xc000000000000003, false},
    {"s_cmp_eq_i32 s0, s2",              3,          3,          false, 0,                  true},
    {"s_cmp_gt_i32 s0, s2",              kMinus1,    0,          true,  0,                  false},
    {"s_cmp_gt_u32 s0, s2",              kMinus1,    0,          false, 0,                  true},
    {"s_cmp_le_u32 s0, s2",              3,          3,          false, 0,                  true},
    {"s_cmp_lg_u64 s[0:1], s[2:3]",      1ull << 40, 0,          false, 0,                  true},
    {"s_bitcmp1_b64 s[0:1], s2",         1ull << 40, 40,         false, 0,                  true},
    {"s_bitcmp0_b32 s0, s2",             2,          1,          true,  0,                  false},
    {"s_cmpk_lt_i32 s0, -1",             0xfffffffe, 0,          false, 0,                  true},
    {"s_cmpk_lt_u32 s0, 0xffff",         0xfffe,     0,          false, 0,                  true},
    {"s_cmpk_gt_u32 s0, 0xffff",         0xffff8000, 0,          false, 0,                  true},
    // clang-format on
};

}  // namespace

TEST_CASE("scalar instructions give the documented result and SCC") {
  Fragment fragment;
  for (const Row& row : kRows) {
    INFO(row.text);
    Wave& wave = fragment.prepare(row.text);
    wave.set_pair(0, row.a);
    wave.set_pair(2, row.b);
    wave.scc = row.scc_in;
    fragment.finish();
    CHECK(wave.pair(4) == row.result);
    CHECK(wave.scc == row.scc);
  }
}

TEST_CASE("the saveexec instructions return EXEC and combine it with the source") {
  struct Saved {
    const char* name;
    uint64_t exec;  // for source 0b1100 and EXEC 0b1010 before; low four bits
  };
  for (const Saved& row :
       {Saved{"and", 0b1000}, Saved{"or", 0b1110}, Saved{"xor", 0b0110}, Saved{"andn2", 0b0100},
        Saved{"orn2", 0b1101}, Saved{"nand", 0b0111}, Saved{"nor", 0b0001}, Saved{"xnor", 0b1001},
        Saved{"andn1", 0b0010}, Saved{"orn1", 0b1011}}) {
    Fragment fragment;
    INFO(row.name);
    Wave& wave = fragment.prepare("s_" + std::string(row.name) + "_saveexec_b64 s[4:5], s[0:1]");
    wave.set_pair(0, 0b1100);
    wave.set_exec(0b1010);
    fragment.finish();
    CHECK(wave.pair(4) == 0b1010);
    CHECK((wave.exec() & 15) == row.exec);
    CHECK(wave.scc);
  }
}

TEST_CASE("andn1_wrexec and andn2_wrexec write the same to EXEC and to the destination") {
  Fragment fragment;
  Wave& wave = fragment.prepare("s_andn2_wrexec_b64 s[4:5], s[0:1]");
  wave.set_pair(0, 0b1100);
  wave.set_exec(0b1010);
  fragment.finish();
  CHECK(wave.pair(4) == 0b0100);
  CHECK(wave.exec() == 0b0100);
}

TEST_CASE("SGPRs are read and written relative to M0") {
  Fragment fragment;
  Wave& wave = fragment.prepare("s_movrels_b32 s4, s0\ns_movreld_b64 s[8:9], s[0:1]");
  wave.scalar[0] = 11;
  wave.scalar[1] = 22;
  wave.scalar[2] = 33;
  wave.scalar[kM0] = 2;
  fragment.finish();
  CHECK(wave.scalar[4] == 33);
  CHECK(wave.pair(10) == (uint64_t{22} << 32 | 11));
}

TEST_CASE("branches are taken on SCC, VCC and EXEC") {
  struct Taken {
    const char* branch;
    bool scc;
    uint64_t vcc, exec;
    bool taken;
  };
  for (const Taken& row :
       {Taken{"s_branch", false, 0, 1, true}, Taken{"s_cbranch_scc0", false, 0, 1, true},
        Taken{"s_cbranch_scc0", true, 0, 1, false}, Taken{"s_cbranch_scc1", true, 0, 1, true},
        Taken{"s_cbranch_vccz", false, 0, 1, true},
        Taken{"s_cbranch_vccz", false, 1ull << 40, 1, false},
        Taken{"s_cbranch_vccnz", false, 1ull << 40, 1, true},
        Taken{"s_cbranch_execz", false, 0, 0, true},
        Taken{"s_cbranch_execnz", false, 0, 1ull << 63, true},
        Taken{"s_cbranch_execnz", false, 0, 0, false},
        Taken{"s_cbranch_cdbgsys", false, 0, 1, false}}) {
    Fragment fragment;
    INFO(row.branch);
    Wave& wave = fragment.prepare(std::string(row.branch) +
                                  " skip\ns_mov_b32 s4, 1\nskip:\ns_mov_b32 s5, 2");
    wave.scc = row.scc;
    wave.set_vcc(row.vcc);
    wave.set_exec(row.exec);
    fragment.finish();
    CHECK(wave.scalar[4] == (row.taken ? 0 : 1));
    CHECK(wave.scalar[5] == 2);
  }
}

TEST_CASE("calls save the return address") {
  Fragment fragment;
  Wave& wave = fragment.finish(R"(
    s_getpc_b64 s[0:1]
    s_add_u32 s0, s0, function-.Lhere
  .Lhere:
    s_addc_u32 s1, s1, 0
    s_add_u32 s0, s0, 8
    s_addc_u32 s1, s1, 0
    s_swappc_b64 s[2:3], s[0:1]
    s_add_u32 s4, s4, 100
    s_call_b64 s[2:3], function
    s_endpgm
  function:
    s_add_u32 s4, s4, 1
    s_setpc_b64 s[2:3])");
  CHECK(wave.scalar[4] == 102);
}

TEST_CASE(
    "hardware registers: MODE is read and written by fields, and apertures have the driver's "
    "addresses") {
  Fragment fragment;
  Wave& wave = fragment.prepare(R"(
    s_getreg_b32 s0, hwreg(HW_REG_MODE, 4, 4)
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 3
    s_mov_b32 s5, 1
    s_setreg_b32 hwreg(HW_REG_MODE, 9, 1), s6
    s_getreg_b32 s1, hwreg(HW_REG_SH_MEM_BASES, 16, 16)
    s_getreg_b32 s2, hwreg(HW_REG_SH_MEM_BASES, 0, 16)
    s_setreg_b32 hwreg(HW_REG_TRAPSTS, 0, 5), s5)");
  wave.mode = 0x3f0;
  fragment.finish();
  CHECK(wave.scalar[0] == 0xf);
  CHECK(wave.mode == 0x1f3);
  CHECK(wave.scalar[1] == 1);
  CHECK(wave.scalar[2] == 2);
  CHECK(wave.trapsts == 1);
}

TEST_CASE("the clocks advance") {
  Fragment fragment;
  Wave& wave = fragment.finish(
      "s_memrealtime s[0:1]\ns_memtime s[2:3]\ns_sleep 1\ns_memtime s[4:5]\ns_waitcnt lgkmcnt(0)");
  CHECK(wave.pair(0) != 0);
  CHECK(wave.pair(4) > wave.pair(2));
}

TEST_CASE("scalar loads ignore the low address bits and add immediate and register offsets") {
  Fragment fragment;
  const Buffer data = fragment.machine.allocate(256);
  for (uint32_t i = 0; i < 64; ++i) data.as<uint32_t>()[i] = i;
  Wave& wave = fragment.prepare(R"(
    s_load_dword s4, s[0:1], 0xb
    s_load_dword s5, s[0:1], s2
    s_load_dwordx2 s[6:7], s[0:1], -0x10
    s_load_dwordx16 s[16:31], s[0:1], 0x40)");
  wave.set_pair(0, data.address + 64);
  wave.scalar[2] = 20;
  fragment.finish();
  CHECK(wave.scalar[4] == 18);
  CHECK(wave.scalar[5] == 21);
  CHECK(wave.scalar[6] == 12);
  CHECK(wave.scalar[7] == 13);
  for (unsigned i = 0; i < 16; ++i) CHECK(wave.scalar[16 + i] == 32 + i);
}

TEST_CASE("scalar buffer loads read 0 past the end, and scalar stores reach memory") {
  Fragment fragment;
  const Buffer data = fragment.machine.allocate(256);
  for (uint32_t i = 0; i < 64; ++i) data.as<uint32_t>()[i] = i + 1;
  Wave& wave = fragment.prepare(
      "s_buffer_load_dwordx4 s[8:11], s[0:3], 0x8\ns_store_dwordx2 s[12:13], s[4:5], 0x10");
  wave.set_pair(0, data.address);
  wave.scalar[2] = 16;  // bytes
  wave.set_pair(4, data.address);
  wave.set_pair(12, 0x123456789abcdef0);
  fragment.finish();
  CHECK(wave.scalar[8] == 3);
  CHECK(wave.scalar[9] == 4);
  CHECK(wave.scalar[10] == 0);
  CHECK(wave.scalar[11] == 0);
  CHECK(data.as<uint64_t>()[2] == 0x123456789abcdef0);
}

TEST_CASE("VGPR indexing displaces sources and destination by M0") {
  Fragment fragment;
  Wave& wave = fragment.prepare(R"(
    s_set_gpr_idx_on s0, gpr_idx(SRC0)
    v_mov_b32 v1, v10
    s_set_gpr_idx_mode gpr_idx(DST)
    v_add_u32 v20, v10, v10
    s_set_gpr_idx_idx s1
    v_add_u32_e64 v20, v10, v10
    s_set_gpr_idx_off
    v_mov_b32 v2, v10)");
  wave.scalar[0] = 3;
  wave.scalar[1] = 5;
  for (unsigned v = 0; v < 32; ++v) wave.vgpr[10 + v].lane[7] = 100 + v;
  fragment.finish();
  CHECK(wave.vgpr[1].lane[7] == 103);
  CHECK(wave.vgpr[23].lane[7] == 200);
  CHECK(wave.vgpr[25].lane[7] == 200);
  CHECK(wave.vgpr[2].lane[7] == 100);
  CHECK((wave.mode >> 27 & 1) == 0);
}

}  // namespace uptempo::vgpu::gfx9::test
