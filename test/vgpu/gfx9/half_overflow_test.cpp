// MODE.FP16_OVFL, which clamps float16 results that overflow. LLVM's AMDGPU usage guide defines it
// for all gfx9 (COMPUTE_PGM_RSRC1.FP16_OVFL): an infinite operand or a division by zero still gives
// an infinity; any other overflow becomes the largest float16. llvm/llvm_float_test.cpp and its
// neighbours compare arithmetic in this mode with APFloat.
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/fragment.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u32 = uint32_t;

constexpr u32 kOverflow = 1u << 23, kUsual = 0x3f0, kDenormals = 0xc0, kIeee = 0x200;
constexpr u32 kInfinity = 0x7c00, kLargest = 0x7bff, kMinus = 0x8000;

u32 single(float x) { return std::bit_cast<u32>(x); }

std::vector<Target> targets() {
  std::vector<Target> result{Target::gfx900, Target::gfx906, Target::gfx908, Target::gfx90a};
#ifdef UPTEMPO_ASSEMBLES_GFX942
  result.push_back(Target::gfx942);
#endif
  return result;
}

// One instruction: v6 from v0, v2 and v4.
struct Case {
  const char* text;
  u32 a, b, c;
  u32 want;
  u32 mode = kUsual;
};

void check(const Case& what, Target target) {
  Fragment fragment(target);
  Wave& wave = fragment.prepare(what.text);
  wave.mode = what.mode | kOverflow;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    wave.vgpr[0].lane[lane] = what.a;
    wave.vgpr[2].lane[lane] = what.b;
    wave.vgpr[4].lane[lane] = what.c;
    wave.vgpr[6].lane[lane] = 0xabcd1234;
  }
  fragment.finish();
  CAPTURE(what.text, what.a, what.b, what.c, what.mode, cpu_name(target));
  for (unsigned lane = 0; lane < kLanes; ++lane) REQUIRE(wave.vgpr[6].lane[lane] == what.want);
}

}  // namespace

TEST_CASE("FP16_OVFL is bit 23 of MODE, and applies from its s_setreg to the next") {
  for (const Target target : targets()) {
    Fragment fragment(target);
    Wave& wave = fragment.prepare(R"(
      v_add_f16 v1, v0, v0
      s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1
      v_add_f16 v2, v0, v0
      s_getreg_b32 s0, hwreg(HW_REG_MODE)
      s_getreg_b32 s1, hwreg(HW_REG_MODE, 23, 1)
      s_setreg_b32 hwreg(HW_REG_MODE, 23, 1), s4
      v_add_f16 v3, v0, v0)");
    wave.mode = kUsual;
    wave.scalar[4] = 0xfffffffe;
    for (u32& lane : wave.vgpr[0].lane) lane = kLargest | kMinus;
    fragment.finish();
    CHECK(wave.scalar[0] == (kUsual | kOverflow));
    CHECK(wave.scalar[1] == 1);
    CHECK(wave.mode == kUsual);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      REQUIRE(wave.vgpr[1].lane[lane] == (kInfinity | kMinus));
      REQUIRE(wave.vgpr[2].lane[lane] == (kLargest | kMinus));
      REQUIRE(wave.vgpr[3].lane[lane] == (kInfinity | kMinus));
    }
  }
}

TEST_CASE("with FP16_OVFL, overflows become the largest float16, divisions by zero infinities") {
  const u32 one = 0x3c00, tiny = 1, huge = 0x7800;  // 2^-24, 32768
  const Case cases[] = {
      {"v_mul_f16 v6, v0, v2", huge, huge, 0, kLargest},
      {"v_mul_f16 v6, v0, v2", kInfinity, one, 0, kInfinity},
      {"v_fma_f16 v6, v0, v2, v4", huge, huge | kMinus, kInfinity, 0xabcd0000 | kInfinity},
      {"v_max_f16 v6, v0, v2", kInfinity, one, 0, kInfinity},
      {"v_cvt_f16_f32 v6, v0", single(-1e6f), 0, 0, kLargest | kMinus},
      {"v_cvt_f16_f32 v6, v0", single(-INFINITY), 0, 0, kInfinity | kMinus},
      {"v_cvt_f16_u16 v6, v0", 0xffff, 0, 0, kLargest},
      {"v_exp_f16 v6, v0", 0x4c00, 0, 0, kLargest},  // 2^16
      {"v_exp_f16 v6, v0", kInfinity, 0, 0, kInfinity},
      {"v_rcp_f16 v6, v0", tiny, 0, 0, kLargest},
      {"v_rcp_f16 v6, v0", 0, 0, 0, kInfinity},
      {"v_rcp_f16 v6, v0", kMinus, 0, 0, kInfinity | kMinus},
      {"v_rcp_f16 v6, v0", tiny, 0, 0, kInfinity, kUsual & ~kDenormals},  // flushed: a zero
      {"v_rsq_f16 v6, v0", 0, 0, 0, kInfinity},
      {"v_log_f16 v6, v0", 0, 0, 0, kInfinity | kMinus},
      {"v_div_fixup_f16 v6, v0, v2, v4", 0x7e00, 0, one, 0xabcd0000 | kInfinity},  // 1 / 0
      // 32768 / 2^-24, whose steps overflowed.
      {"v_div_fixup_f16 v6, v0, v2, v4", 0x7e00, tiny, huge, 0xabcd0000 | kLargest},
  };
  for (const Target target : targets())
    for (const Case& each : cases) check(each, target);
}

TEST_CASE("with FP16_OVFL, results of every form are clamped: SDWA, omod, clamp, packed") {
  const u32 huge = 0x7800, one = 0x3c00;
  const Case cases[] = {
      {"v_mul_f16_sdwa v6, v0, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 "
       "src1_sel:WORD_0",
       huge << 16, huge, 0, kLargest << 16 | 0x1234},
      // 32768 * 1, then times two.
      {"v_mul_f16_e64 v6, v0, v2 mul:2", huge, one, 0, kLargest, kUsual & ~(kDenormals | kIeee)},
      {"v_mul_f16_e64 v6, v0, v2 clamp", huge, huge, 0, one},
      {"v_pk_mul_f16 v6, v0, v2", huge << 16 | huge, kInfinity << 16 | huge, 0,
       kInfinity << 16 | kLargest},
  };
  for (const Target target : targets())
    for (const Case& each : cases) check(each, target);
}

TEST_CASE("FP16_OVFL leaves float32 and float64 results alone") {
  Fragment fragment;
  Wave& wave = fragment.prepare("v_add_f32 v1, v0, v0\nv_add_f64 v[4:5], v[2:3], v[2:3]");
  wave.mode = kUsual | kOverflow;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    wave.vgpr[0].lane[lane] = 0x7f7fffff;
    wave.vgpr[2].lane[lane] = 0xffffffff;
    wave.vgpr[3].lane[lane] = 0x7fefffff;
  }
  fragment.finish();
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    REQUIRE(wave.vgpr[1].lane[lane] == 0x7f800000);
    REQUIRE(wave.vgpr[4].lane[lane] == 0);
    REQUIRE(wave.vgpr[5].lane[lane] == 0x7ff00000);
  }
}

// Bit 26 of COMPUTE_PGM_RSRC1 (llvm/Support/AMDHSAKernelDescriptor.h).
TEST_CASE("waves start with FP16_OVFL as their kernel object sets it") {
  for (const Target target : targets()) {
    Machine machine(target);
    LlvmMc assembler(target);
    const GpuAddress object = machine.assemble_kernel(assembler.assemble("s_endpgm"));
    machine.executor.enter();
    auto* const rsrc1 =
        const_cast<std::byte*>(machine.executor.memory.translate(object + 48, 4, Access::read));
    machine.executor.leave();
    for (const bool overflow : {false, true}) {
      if (overflow) rsrc1[3] |= std::byte{1u << 2};
      const auto state = machine.prepare(object, {}, {});
      Workgroup workgroup;
      workgroup.start(*state, {0, 0, 0}, 0);
      CHECK(workgroup.wave(0).mode == (overflow ? kUsual | kOverflow : kUsual));
    }
  }
}

}  // namespace uptempo::vgpu::gfx9::test
