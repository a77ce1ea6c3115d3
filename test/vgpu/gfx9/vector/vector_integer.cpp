// Integer and bit instructions against scalar references.
#include <limits>
#include <utility>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/vector/vector_machine.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

u32 lo(u64 v) { return static_cast<u32>(v); }
i32 sx(u64 v) { return static_cast<i32>(lo(v)); }
i64 sx24(u64 v) { return static_cast<i32>(lo(v) << 8) >> 8; }
int16_t sx16(u64 v) { return static_cast<int16_t>(v); }
u64 u16(u64 v) { return v & 0xffff; }

void two(Opcode opcode, u64 (*f)(u64, u64)) {
  check_lanes({opcode, 2}, [&](u64 a, u64 b, u64, bool) { return f(a, b) & 0xffffffff; });
}
void three(Opcode opcode, u64 (*f)(u64, u64, u64)) {
  check_lanes({opcode, 3}, [&](u64 a, u64 b, u64 c, bool) { return f(a, b, c) & 0xffffffff; });
}
void one(Opcode opcode, u64 (*f)(u64)) {
  check_lanes({opcode, 1}, [&](u64 a, u64, u64, bool) { return f(a) & 0xffffffff; });
}

}  // namespace

TEST_CASE("32-bit additions wrap, and multiplications keep the half that they name") {
  two(Opcode::v_add_u32, [](u64 a, u64 b) { return a + b; });
  two(Opcode::v_sub_u32, [](u64 a, u64 b) { return a - b; });
  two(Opcode::v_subrev_u32, [](u64 a, u64 b) { return b - a; });
  two(Opcode::v_add_i32, [](u64 a, u64 b) { return a + b; });
  two(Opcode::v_sub_i32, [](u64 a, u64 b) { return a - b; });
  two(Opcode::v_mul_lo_u32, [](u64 a, u64 b) { return a * b; });
  two(Opcode::v_mul_hi_u32, [](u64 a, u64 b) { return a * b >> 32; });
  two(Opcode::v_mul_hi_i32,
      [](u64 a, u64 b) { return static_cast<u64>(i64{sx(a)} * sx(b) >> 32); });
  two(Opcode::v_mul_u32_u24, [](u64 a, u64 b) { return (a & 0xffffff) * (b & 0xffffff); });
  two(Opcode::v_mul_hi_u32_u24, [](u64 a, u64 b) { return (a & 0xffffff) * (b & 0xffffff) >> 32; });
  two(Opcode::v_mul_i32_i24, [](u64 a, u64 b) { return static_cast<u64>(sx24(a) * sx24(b)); });
  two(Opcode::v_mul_hi_i32_i24,
      [](u64 a, u64 b) { return static_cast<u64>(sx24(a) * sx24(b) >> 32); });
  three(Opcode::v_mad_u32_u24,
        [](u64 a, u64 b, u64 c) { return (a & 0xffffff) * (b & 0xffffff) + c; });
  three(Opcode::v_mad_i32_i24,
        [](u64 a, u64 b, u64 c) { return static_cast<u64>(sx24(a) * sx24(b)) + c; });
  three(Opcode::v_mad_u32_u16, [](u64 a, u64 b, u64 c) { return u16(a) * u16(b) + c; });
  three(Opcode::v_mad_i32_i16,
        [](u64 a, u64 b, u64 c) { return static_cast<u64>(i64{sx16(a)} * sx16(b)) + c; });
  three(Opcode::v_add3_u32, [](u64 a, u64 b, u64 c) { return a + b + c; });
  three(Opcode::v_xad_u32, [](u64 a, u64 b, u64 c) { return (a ^ b) + c; });
  three(Opcode::v_lshl_add_u32, [](u64 a, u64 b, u64 c) { return (a << (b & 31)) + c; });
  three(Opcode::v_add_lshl_u32, [](u64 a, u64 b, u64 c) { return (a + b) << (c & 31); });
}

TEST_CASE("64-bit multiply-adds are exact modulo 2^64") {
  check_lanes({Opcode::v_mad_u64_u32, 3, {1, 1, 2}, 2},
              [](u64 a, u64 b, u64 c, bool) { return a * b + c; });
  check_lanes({Opcode::v_mad_i64_i32, 3, {1, 1, 2}, 2},
              [](u64 a, u64 b, u64 c, bool) { return static_cast<u64>(i64{sx(a)} * sx(b)) + c; });
}

TEST_CASE("integer min, max and median choose by sign") {
  two(Opcode::v_min_u32, [](u64 a, u64 b) { return std::min(a, b); });
  two(Opcode::v_max_u32, [](u64 a, u64 b) { return std::max(a, b); });
  two(Opcode::v_min_i32,
      [](u64 a, u64 b) { return u64{lo(static_cast<u64>(std::min(sx(a), sx(b))))}; });
  two(Opcode::v_max_i32,
      [](u64 a, u64 b) { return u64{lo(static_cast<u64>(std::max(sx(a), sx(b))))}; });
  three(Opcode::v_min3_u32, [](u64 a, u64 b, u64 c) { return std::min({a, b, c}); });
  three(Opcode::v_max3_i32, [](u64 a, u64 b, u64 c) {
    return static_cast<u64>(std::max({sx(a), sx(b), sx(c)}));
  });
  three(Opcode::v_med3_u32, [](u64 a, u64 b, u64 c) {
    return a + b + c - std::min({a, b, c}) - std::max({a, b, c});
  });
  three(Opcode::v_med3_i32, [](u64 a, u64 b, u64 c) {
    const i64 x = sx(a), y = sx(b), z = sx(c);
    return static_cast<u64>(x + y + z - std::min({x, y, z}) - std::max({x, y, z}));
  });
}

TEST_CASE("bitwise logic, shifts and fields agree with the reference") {
  one(Opcode::v_mov_b32, [](u64 a) { return a; });
  one(Opcode::v_not_b32, [](u64 a) { return ~a; });
  two(Opcode::v_and_b32, [](u64 a, u64 b) { return a & b; });
  two(Opcode::v_or_b32, [](u64 a, u64 b) { return a | b; });
  two(Opcode::v_xor_b32, [](u64 a, u64 b) { return a ^ b; });
  two(Opcode::v_xnor_b32, [](u64 a, u64 b) { return ~(a ^ b); });
  three(Opcode::v_or3_b32, [](u64 a, u64 b, u64 c) { return a | b | c; });
  three(Opcode::v_and_or_b32, [](u64 a, u64 b, u64 c) { return (a & b) | c; });
  three(Opcode::v_lshl_or_b32, [](u64 a, u64 b, u64 c) { return a << (b & 31) | c; });
  three(Opcode::v_bfi_b32, [](u64 a, u64 b, u64 c) { return (a & b) | (~a & c); });
  two(Opcode::v_lshlrev_b32, [](u64 a, u64 b) { return b << (a & 31); });
  two(Opcode::v_lshrrev_b32, [](u64 a, u64 b) { return b >> (a & 31); });
  two(Opcode::v_ashrrev_i32, [](u64 a, u64 b) { return static_cast<u64>(i64{sx(b)} >> (a & 31)); });
  two(Opcode::v_bfm_b32, [](u64 a, u64 b) { return ((u64{1} << (a & 31)) - 1) << (b & 31); });
  three(Opcode::v_bfe_u32,
        [](u64 a, u64 b, u64 c) { return a >> (b & 31) & ((u64{1} << (c & 31)) - 1); });
  three(Opcode::v_bfe_i32, [](u64 a, u64 b, u64 c) {
    const unsigned width = c & 31;
    if (width == 0) return u64{0};
    const i64 field =
        static_cast<i64>((i64{sx(a)} >> (b & 31)) & static_cast<i64>((u64{1} << width) - 1));
    return static_cast<u64>(field >> (width - 1) & 1 ? field - (i64{1} << width) : field);
  });
  three(Opcode::v_alignbit_b32, [](u64 a, u64 b, u64 c) { return (a << 32 | b) >> (c & 31); });
  three(Opcode::v_alignbyte_b32,
        [](u64 a, u64 b, u64 c) { return (a << 32 | b) >> (8 * (c & 3)); });
  check_lanes({Opcode::v_lshlrev_b64, 2, {1, 2, 1}, 2},
              [](u64 a, u64 b, u64, bool) { return b << (a & 63); });
  check_lanes({Opcode::v_lshrrev_b64, 2, {1, 2, 1}, 2},
              [](u64 a, u64 b, u64, bool) { return b >> (a & 63); });
  check_lanes({Opcode::v_ashrrev_i64, 2, {1, 2, 1}, 2}, [](u64 a, u64 b, u64, bool) {
    return static_cast<u64>(static_cast<i64>(b) >> (a & 63));
  });
}

TEST_CASE("v_perm_b32 selects bytes, signs and constants") {
  three(Opcode::v_perm_b32, [](u64 a, u64 b, u64 c) {
    const u64 data = a << 32 | b;
    u64 result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned selector = c >> (8 * i) & 0xff;
      u64 byte = 0xff;
      if (selector < 8) byte = data >> (8 * selector) & 0xff;
      if (selector >= 8 && selector < 12) byte = data >> (16 * (selector - 8) + 15) & 1 ? 0xff : 0;
      if (selector == 12) byte = 0;
      result |= byte << (8 * i);
    }
    return result;
  });
}

TEST_CASE("bits are counted and reversed") {
  one(Opcode::v_bfrev_b32, [](u64 a) {
    u64 r = 0;
    for (unsigned i = 0; i < 32; ++i) r |= (a >> i & 1) << (31 - i);
    return r;
  });
  one(Opcode::v_ffbh_u32,
      [](u64 a) { return a == 0 ? ~u64{0} : static_cast<u64>(std::countl_zero(lo(a))); });
  one(Opcode::v_ffbl_b32,
      [](u64 a) { return a == 0 ? ~u64{0} : static_cast<u64>(std::countr_zero(lo(a))); });
  one(Opcode::v_ffbh_i32, [](u64 a) {
    const u32 folded = sx(a) < 0 ? ~lo(a) : lo(a);
    return folded == 0 ? ~u64{0} : static_cast<u64>(std::countl_zero(folded));
  });
  two(Opcode::v_bcnt_u32_b32, [](u64 a, u64 b) { return static_cast<u64>(std::popcount(a)) + b; });
}

TEST_CASE("v_mbcnt counts mask bits of lower lanes") {
  for (const vector::Simd simd : simd_targets()) {
    vector::use_simd(simd);
    VectorMachine machine(5);
    Instruction in = vop3(Opcode::v_mbcnt_lo_u32_b32, 2);
    in.src[0] = 30;
    in.src[1] = 128;
    machine.run(in);
    in.opcode = Opcode::v_mbcnt_hi_u32_b32;
    in.src[0] = 31;
    in.src[1] = static_cast<OperandCode>(kFirstVgpr + in.dst);
    machine.run(in);
    const u64 mask = machine.wave.pair(30);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      CAPTURE(name(simd), lane, mask);
      REQUIRE(machine.registers[in.dst].lane[lane] ==
              static_cast<u32>(std::popcount(mask & ((u64{1} << lane) - 1))));
    }
  }
  vector::use_simd(simd_targets().front());
}

TEST_CASE("carries are one bit per active lane") {
  struct Carry {
    Opcode opcode;
    bool takes;
    u64 (*exact)(u64 a, u64 b, u64 carry);  // more than 32 bits: carried or borrowed
  };
  const Carry cases[] = {
      {Opcode::v_add_co_u32, false, [](u64 a, u64 b, u64) { return a + b; }},
      {Opcode::v_sub_co_u32, false, [](u64 a, u64 b, u64) { return a - b; }},
      {Opcode::v_subrev_co_u32, false, [](u64 a, u64 b, u64) { return b - a; }},
      {Opcode::v_addc_co_u32, true, [](u64 a, u64 b, u64 c) { return a + b + c; }},
      {Opcode::v_subb_co_u32, true, [](u64 a, u64 b, u64 c) { return a - b - c; }},
      {Opcode::v_subbrev_co_u32, true, [](u64 a, u64 b, u64 c) { return b - a - c; }}};
  for (const Carry& c : cases) {
    check_lanes({c.opcode, 2, {1, 1, 1}, 1, Compare::bits, c.takes ? 2u : 0u},
                [&](u64 a, u64 b, u64, bool carry) {
                  return c.exact(a, b, c.takes && carry) & 0xffffffff;
                });
    for (const vector::Simd simd : simd_targets()) {
      vector::use_simd(simd);
      for (const u64 exec : exec_shapes()) {
        VectorMachine machine(lo(exec) + 3);
        machine.wave.set_exec(exec);
        Instruction in = vop3(c.opcode, 2);
        in.src[2] = in.sdst = kVccLo;  // carry in and out in one register, as in the VOP2 forms
        const u64 carries = machine.wave.vcc();
        const Vgpr a = machine.registers[10], b = machine.registers[20];
        machine.run(in);
        u64 expected = 0;
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          const bool out =
              c.exact(a.lane[lane], b.lane[lane], c.takes ? carries >> lane & 1 : 0) >> 32 != 0;
          if (exec >> lane & 1) expected |= u64{out} << lane;
        }
        CAPTURE(name(simd), exec);
        REQUIRE(machine.wave.vcc() == expected);
      }
    }
  }
  vector::use_simd(simd_targets().front());
}

TEST_CASE("v_mad_u64_u32 carries out of bit 63") {
  for (const vector::Simd simd : simd_targets()) {
    vector::use_simd(simd);
    for (const bool is_signed : {false, true}) {
      VectorMachine machine(9);
      machine.run(vop3(is_signed ? Opcode::v_mad_i64_i32 : Opcode::v_mad_u64_u32, 3));
      u64 expected = 0;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u32 a = machine.registers[10].lane[lane], b = machine.registers[20].lane[lane];
        const u64 c = machine.pair(30, lane);
        __extension__ using Exact = __int128;
        const Exact sum =
            is_signed ? Exact{i64{sx(a)} * sx(b)} + static_cast<i64>(c) : Exact{u64{a} * b} + c;
        expected |= static_cast<u64>(sum >> 64 & 1) << lane;
      }
      CAPTURE(name(simd), is_signed);
      CHECK(machine.wave.pair(20) == expected);
    }
  }
  vector::use_simd(simd_targets().front());
}

TEST_CASE("v_cndmask_b32 selects by a scalar pair") {
  check_lanes({Opcode::v_cndmask_b32, 2, {1, 1, 1}, 1, Compare::bits, 2},
              [](u64 a, u64 b, u64, bool pick) { return pick ? b : a; });
}

TEST_CASE("16-bit integer results zero the high half") {
  two(Opcode::v_add_u16, [](u64 a, u64 b) { return u16(a + b); });
  two(Opcode::v_sub_u16, [](u64 a, u64 b) { return u16(a - b); });
  two(Opcode::v_subrev_u16, [](u64 a, u64 b) { return u16(b - a); });
  two(Opcode::v_mul_lo_u16, [](u64 a, u64 b) { return u16(a * b); });
  two(Opcode::v_min_u16, [](u64 a, u64 b) { return std::min(u16(a), u16(b)); });
  two(Opcode::v_max_i16,
      [](u64 a, u64 b) { return u16(static_cast<u64>(std::max(sx16(a), sx16(b)))); });
  two(Opcode::v_lshlrev_b16, [](u64 a, u64 b) { return u16(b << (a & 15)); });
  two(Opcode::v_lshrrev_b16, [](u64 a, u64 b) { return u16(b) >> (a & 15); });
  two(Opcode::v_ashrrev_i16,
      [](u64 a, u64 b) { return u16(static_cast<u64>(sx16(b) >> (a & 15))); });
}

TEST_CASE("sums of absolute differences and dot products agree with the reference") {
  const auto byte = [](u64 v, unsigned i) { return static_cast<i64>(v >> (8 * i) & 0xff); };
  check_lanes({Opcode::v_sad_u8, 3}, [&](u64 a, u64 b, u64 c, bool) {
    for (unsigned i = 0; i < 4; ++i) c += static_cast<u64>(std::abs(byte(a, i) - byte(b, i)));
    return c & 0xffffffff;
  });
  three(Opcode::v_sad_u32, [](u64 a, u64 b, u64 c) { return std::max(a, b) - std::min(a, b) + c; });
  check_lanes({Opcode::v_dot4_i32_i8, 3}, [&](u64 a, u64 b, u64 c, bool) {
    for (unsigned i = 0; i < 4; ++i)
      c += static_cast<u64>(static_cast<i64>(static_cast<signed char>(byte(a, i))) *
                            static_cast<signed char>(byte(b, i)));
    return c & 0xffffffff;
  });
  three(Opcode::v_dot2_u32_u16,
        [](u64 a, u64 b, u64 c) { return u16(a) * u16(b) + (a >> 16) * (b >> 16) + c; });
}

TEST_CASE("v_mqsad_u32_u8 sums at four byte offsets, and omits reference bytes of zero") {
  const bool saturates = GENERATE(false, true);
  VectorMachine m(12);
  const u64 exec = 0xfffffffffffffff0;
  m.wave.set_exec(exec);
  Instruction in = vop3(Opcode::v_mqsad_u32_u8, 3);
  in.dst = 30;  // its own addend
  in.clamp = saturates;
  for (unsigned lane = 0; lane < kLanes; lane += 2) m.registers[31].lane[lane] = 0xfffffff0;
  const std::vector<Vgpr> before = m.registers;
  m.run(in);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const u64 data = before[10].lane[lane] | u64{before[11].lane[lane]} << 32;
    for (unsigned offset = 0; offset < 4; ++offset) {
      u64 expected = before[30 + offset].lane[lane];
      for (unsigned i = 0; i < 4 && (exec >> lane & 1); ++i) {
        const int reference = static_cast<int>(before[20].lane[lane] >> (8 * i) & 0xff);
        const int value = static_cast<int>(data >> (8 * (i + offset)) & 0xff);
        if (reference != 0) expected += static_cast<u32>(std::abs(value - reference));
      }
      CAPTURE(lane, offset);
      REQUIRE(m.registers[30 + offset].lane[lane] ==
              (saturates ? std::min<u64>(expected, 0xffffffff) : lo(expected)));
    }
  }
}

TEST_CASE("the clamp bit saturates integers") {
  struct Saturating {
    Opcode opcode;
    i64 (*exact)(u64, u64);
    i64 low, high;
  };
  const Saturating cases[] = {
      {Opcode::v_add_u32, [](u64 a, u64 b) { return static_cast<i64>(a + b); }, 0, 0xffffffff},
      {Opcode::v_sub_u32, [](u64 a, u64 b) { return static_cast<i64>(a - b); }, 0, 0xffffffff},
      {Opcode::v_subrev_u32, [](u64 a, u64 b) { return static_cast<i64>(b - a); }, 0, 0xffffffff},
      {Opcode::v_add_i32, [](u64 a, u64 b) { return i64{sx(a)} + sx(b); },
       std::numeric_limits<i32>::min(), std::numeric_limits<i32>::max()},
      {Opcode::v_sub_i32, [](u64 a, u64 b) { return i64{sx(a)} - sx(b); },
       std::numeric_limits<i32>::min(), std::numeric_limits<i32>::max()},
      {Opcode::v_add_u16, [](u64 a, u64 b) { return static_cast<i64>(u16(a) + u16(b)); }, 0,
       0xffff},
  };
  for (const Saturating& c : cases) {
    for (const vector::Simd simd : simd_targets()) {
      vector::use_simd(simd);
      VectorMachine machine(21);
      Instruction in = vop3(c.opcode, 2);
      in.clamp = true;
      machine.run(in);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u32 a = machine.registers[10].lane[lane], b = machine.registers[20].lane[lane];
        const i64 expected = std::min(std::max(c.exact(a, b), c.low), c.high);
        CAPTURE(name(simd), static_cast<unsigned>(c.opcode), a, b);
        REQUIRE(machine.registers[40].lane[lane] == lo(static_cast<u64>(expected)));
      }
    }
  }
  vector::use_simd(simd_targets().front());
}

}  // namespace uptempo::vgpu::gfx9::test
