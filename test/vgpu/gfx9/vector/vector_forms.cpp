// The forms of instructions: operand kinds, modifiers, SDWA, DPP, op_sel, packed and mixed
// operands, lanes and scalars.
#include <cmath>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/vector/vector_machine.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

// Runs `body` with a new machine for each SIMD target.
template <class F>
void on_every_target(F body) {
  const vector::Simd best = vector::simd_in_use();
  for (const vector::Simd simd : simd_targets()) {
    vector::use_simd(simd);
    VectorMachine machine(31);
    INFO(name(simd));
    body(machine);
  }
  vector::use_simd(best);
}

constexpr OperandCode v(unsigned index) { return static_cast<OperandCode>(kFirstVgpr + index); }
u32 word(float f) { return std::bit_cast<u32>(f); }

}  // namespace

TEST_CASE("inline constants take the type of their operand") {
  on_every_target([](VectorMachine& m) {
    Instruction in = vop3(Opcode::v_add_f32, 2);
    in.src[0] = 242;  // 1.0
    m.registers[20].lane[0] = word(2.5f);
    m.run(in);
    CHECK(m.registers[40].lane[0] == word(3.5f));

    in = vop3(Opcode::v_add_f64, 2);
    in.src[0] = 243;  // -1.0
    in.src[1] = 246;  // 4.0
    m.run(in);
    CHECK(f64(m.pair(40, 7)) == 3.0);
    in.src[0] = 248;  // 1/(2 pi)
    in.src[1] = 128;
    m.run(in);
    CHECK(m.pair(40, 7) == 0x3fc45f306dc9c882u);

    in = vop3(Opcode::v_lshlrev_b64, 2);
    in.src[0] = 132;  // 4
    in.src[1] = 193;  // -1
    m.run(in);
    CHECK(m.pair(40, 3) == ~u64{0} << 4);

    in = vop3(Opcode::v_add_f16, 2);
    in.src[0] = 244;  // 2.0
    in.src[1] = 240;  // 0.5
    m.run(in);
    CHECK(m.registers[40].lane[9] == 0x4100u);

    in = vop3(Opcode::v_add_u16, 2);
    in.src[0] = 194;  // -2
    in.src[1] = 129;  // 1
    m.run(in);
    CHECK(m.registers[40].lane[9] == 0xffffu);
  });
}

TEST_CASE("an aperture is a 64-bit operand") {
  on_every_target([](VectorMachine& m) {
    const auto read = [&](unsigned code) {
      Instruction in = vop3(Opcode::v_lshlrev_b64, 2);
      in.src[0] = 128;
      in.src[1] = static_cast<OperandCode>(code);
      m.run(in);
      return m.pair(40, 11);
    };
    CHECK(read(kSharedBase) == 0x0001000000000000);
    CHECK(read(kSharedLimit) == 0x00010000ffffffff);
    CHECK(read(kPrivateBase) == 0x0002000000000000);
    CHECK(read(kPrivateLimit) == 0x00020000ffffffff);
  });
}

TEST_CASE("a literal has 32 bits, or is the high half of a float64") {
  on_every_target([](VectorMachine& m) {
    Instruction in = vop3(Opcode::v_add_u32, 2);
    in.format = Format::vop2;
    in.src[0] = kLiteral;
    in.literal = 0x12345678;
    m.registers[20].lane[1] = 1;
    m.run(in);
    CHECK(m.registers[40].lane[1] == 0x12345679u);
    in = vop3(Opcode::v_cvt_f32_f64, 1);
    in.src[0] = kLiteral;
    in.literal = 0x40080000;  // 3.0
    m.run(in);
    CHECK(m.registers[40].lane[1] == word(3.0f));
  });
}

TEST_CASE("VCCZ, EXECZ and SCC are operands") {
  on_every_target([](VectorMachine& m) {
    Instruction in = vop3(Opcode::v_mov_b32, 1);
    m.wave.set_vcc(0);
    in.src[0] = 251;
    m.run(in);
    CHECK(m.registers[40].lane[0] == 1);
    in.src[0] = 252;
    m.run(in);
    CHECK(m.registers[40].lane[0] == 0);
    m.wave.scc = true;
    in.src[0] = 253;
    m.run(in);
    CHECK(m.registers[40].lane[0] == 1);
  });
}

TEST_CASE("sources and destination may be the same registers, or overlap by one") {
  on_every_target([](VectorMachine& m) {
    Instruction in = vop3(Opcode::v_add_u32, 0);
    in.src[0] = in.src[1] = v(5);
    in.dst = 5;
    const Vgpr before = m.registers[5];
    m.run(in);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      REQUIRE(m.registers[5].lane[lane] == 2 * before.lane[lane]);

    in = vop3(Opcode::v_lshlrev_b64, 0);
    in.src[0] = 129 + 3;
    in.src[1] = v(6);
    in.dst = 7;
    const Vgpr low = m.registers[6], high = m.registers[7];
    m.run(in);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      REQUIRE(m.pair(7, lane) == (low.lane[lane] | static_cast<u64>(high.lane[lane]) << 32) << 4);
    }
  });
}

TEST_CASE("float operands take abs, neg, omod and clamp") {
  on_every_target([](VectorMachine& m) {
    for (const u64 exec : exec_shapes()) {
      for (unsigned modifiers = 0; modifiers < 64; ++modifiers) {
        m.wave.set_exec(exec);
        Instruction in = vop3(Opcode::v_fma_f32, 3);
        in.abs = modifiers & 7;
        in.neg = static_cast<uint8_t>(modifiers >> 3);
        in.src[2] = 30;  // a scalar takes modifiers, too
        const Vgpr before = m.registers[40];
        m.run(in);
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          float x[3] = {f32(m.registers[10].lane[lane]), f32(m.registers[20].lane[lane]),
                        f32(m.wave.scalar[30])};
          for (unsigned i = 0; i < 3; ++i) {
            if (in.abs >> i & 1) x[i] = std::fabs(x[i]);
            if (in.neg >> i & 1) x[i] = -x[i];
          }
          const float expected = std::fma(x[0], x[1], x[2]);
          const float got = f32(m.registers[40].lane[lane]);
          if (exec >> lane & 1) {
            REQUIRE((std::isnan(expected) ? std::isnan(got) : bits(got) == bits(expected)));
          } else {
            REQUIRE(m.registers[40].lane[lane] == before.lane[lane]);
          }
        }
      }
    }
    m.wave.set_exec(~u64{0});
    Instruction in = vop3(Opcode::v_add_f64, 2);
    in.neg = 2;
    in.abs = 1;
    m.run(in);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const double expected = std::fabs(f64(m.pair(10, lane))) - f64(m.pair(20, lane));
      REQUIRE((std::isnan(expected) ? std::isnan(f64(m.pair(40, lane)))
                                    : m.pair(40, lane) == bits(expected)));
    }
    in = vop3(Opcode::v_mul_f32, 2);
    in.omod = 3;  // half
    in.clamp = true;
    m.wave.mode = 0x100;  // denormals flushed, IEEE off, NaN clamps to zero
    m.registers[10].lane[0] = word(3.0f), m.registers[20].lane[0] = word(0.5f);
    m.registers[10].lane[1] = word(3.0f), m.registers[20].lane[1] = word(-1.0f);
    m.registers[10].lane[2] = word(3.0f), m.registers[20].lane[2] = word(5.0f);
    m.registers[10].lane[3] = word(NAN), m.registers[20].lane[3] = word(5.0f);
    m.run(in);
    CHECK(f32(m.registers[40].lane[0]) == 0.75f);
    CHECK(m.registers[40].lane[1] == 0);
    CHECK(f32(m.registers[40].lane[2]) == 1.0f);
    CHECK(m.registers[40].lane[3] == 0);
  });
}

TEST_CASE("omod is ignored if MODE keeps denormals or is IEEE, and leaves no negative zero") {
  on_every_target([](VectorMachine& m) {
    const auto doubled = [&](Opcode opcode, u32 mode, u64 a) {
      Instruction in = vop3(opcode, 2);
      in.omod = 1;
      in.src[1] = 242;  // 1.0
      m.wave.mode = mode;
      m.registers[10].lane[9] = static_cast<u32>(a),
      m.registers[11].lane[9] = static_cast<u32>(a >> 32);
      m.run(in);
      return opcode == Opcode::v_mul_f64 ? m.pair(40, 9) : m.registers[40].lane[9];
    };
    const u32 kIeee = 0x200, kKeepF32 = 0x20, kKeepOthers = 0x80;
    CHECK(doubled(Opcode::v_mul_f32, 0, word(1.5f)) == word(3.0f));
    CHECK(doubled(Opcode::v_mul_f32, kKeepOthers, word(1.5f)) == word(3.0f));
    CHECK(doubled(Opcode::v_mul_f32, kKeepF32, word(1.5f)) == word(1.5f));
    CHECK(doubled(Opcode::v_mul_f32, kIeee, word(1.5f)) == word(1.5f));
    CHECK(doubled(Opcode::v_mul_f32, kKernelMode, word(-0.0f)) == word(-0.0f));
    CHECK(doubled(Opcode::v_mul_f32, 0, word(-0.0f)) == 0);
    CHECK(doubled(Opcode::v_mul_f16, kKeepF32, 0x3e00) == 0x4200);
    CHECK(doubled(Opcode::v_mul_f16, kKeepOthers, 0x3e00) == 0x3e00);
    CHECK(doubled(Opcode::v_mul_f16, 0, 0x8000) == 0);
    CHECK(doubled(Opcode::v_mul_f64, 0, bits(1.5)) == bits(3.0));
    CHECK(doubled(Opcode::v_mul_f64, kKeepOthers, bits(1.5)) == bits(1.5));
    CHECK(doubled(Opcode::v_mul_f64, 0, bits(-0.0)) == 0);
  });
}

TEST_CASE("SDWA selects, extends and places bytes and words") {
  on_every_target([](VectorMachine& m) {
    const auto select = [](u32 x, unsigned sel, bool sext) -> u32 {
      if (sel == 6) return x;
      const unsigned width = sel < 4 ? 8 : 16, at = sel < 4 ? 8 * sel : 16 * (sel - 4);
      const u32 field = x >> at & ((1u << width) - 1);
      return sext && field >> (width - 1) ? field | ~0u << width : field;
    };
    m.wave.set_exec(0xfedcba9876543210);
    for (unsigned dst_sel = 0; dst_sel <= 6; ++dst_sel) {
      for (unsigned unused = 0; unused < 3; ++unused) {
        for (unsigned sel = 0; sel <= 6; ++sel) {
          Instruction in = vop3(Opcode::v_add_u32, 2);
          in.format = Format::vop2;
          in.modifier = OperandModifier::sdwa;
          const bool sext = (sel + unused) % 2 != 0;
          in.sdwa = {static_cast<uint16_t>(dst_sel & 7),
                     static_cast<uint16_t>(unused & 3),
                     static_cast<uint16_t>(sel & 7),
                     static_cast<uint16_t>((6 - sel) & 7),
                     sext,
                     !sext};
          const Vgpr before = m.registers[40];
          m.run(in);
          for (unsigned lane = 0; lane < kLanes; ++lane) {
            u32 expected = before.lane[lane];
            if (m.wave.exec() >> lane & 1) {
              const u32 sum = select(m.registers[10].lane[lane], sel, sext) +
                              select(m.registers[20].lane[lane], 6 - sel, !sext);
              if (dst_sel == 6) {
                expected = sum;
              } else {
                const unsigned width = dst_sel < 4 ? 8 : 16,
                               at = dst_sel < 4 ? 8 * dst_sel : 16 * (dst_sel - 4);
                const u32 field = ((1u << width) - 1) << at;
                const u32 above = at + width < 32 ? ~0u << (at + width) : 0;
                const u32 value = sum << at & field;
                if (unused == 2) expected = (expected & ~field) | value;
                if (unused == 0) expected = value;
                if (unused == 1) expected = value | (sum >> (width - 1) & 1 ? above : 0);
              }
            }
            CAPTURE(dst_sel, unused, sel, sext, lane);
            REQUIRE(m.registers[40].lane[lane] == expected);
          }
        }
      }
    }
  });
}

TEST_CASE("SDWA comparisons write a scalar pair") {
  on_every_target([](VectorMachine& m) {
    Instruction in = vop3(Opcode::v_cmp_eq_u32, 2);
    in.format = Format::vopc;
    in.modifier = OperandModifier::sdwa;
    in.sdwa = {6, 0, 1, 3, 0, 0};
    in.dst = 22;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      m.registers[10].lane[lane] = lane % 3 << 8;
      m.registers[20].lane[lane] = lane % 2 << 24;
    }
    m.run(in);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      CHECK((m.wave.pair(22) >> lane & 1) == (lane % 3 == lane % 2));
  });
}

TEST_CASE("DPP moves lanes within rows and across the wave") {
  struct Control {
    unsigned control;
    int (*source)(int lane);  // -1: none
  };
  const Control controls[] = {
      {0x1b, [](int lane) { return (lane & ~3) | (3 - (lane & 3)); }},
      {0x103, [](int lane) { return (lane & 15) + 3 < 16 ? lane + 3 : -1; }},
      {0x112, [](int lane) { return (lane & 15) >= 2 ? lane - 2 : -1; }},
      {0x125, [](int lane) { return (lane & ~15) | ((lane - 5) & 15); }},
      {0x130, [](int lane) { return lane == 63 ? -1 : lane + 1; }},
      {0x134, [](int lane) { return (lane + 1) % 64; }},
      {0x138, [](int lane) { return lane - 1; }},
      {0x13c, [](int lane) { return (lane + 63) % 64; }},
      {0x140, [](int lane) { return lane ^ 15; }},
      {0x141, [](int lane) { return lane ^ 7; }},
      {0x142, [](int lane) { return lane < 16 ? -1 : (lane & ~15) - 1; }},
      {0x143, [](int lane) { return lane < 32 ? -1 : 31; }},
      {0x15a, [](int lane) { return (lane & ~15) | 10; }}};
  on_every_target([&](VectorMachine& m) {
    for (const Control& c : controls) {
      for (const u64 exec : {~u64{0}, u64{0xf0f0ffff0ff0fff7}}) {
        for (const unsigned masks : {0xffu, 0x5fu, 0xf6u}) {  // rows, banks
          for (const bool bound : {false, true}) {
            m.wave.set_exec(exec);
            Instruction in = vop3(Opcode::v_sub_u32, 2);
            in.format = Format::vop2;
            in.modifier = OperandModifier::dpp;
            in.dpp.control = c.control & 0x1ff;
            in.dpp.row_mask = masks >> 4 & 15;
            in.dpp.bank_mask = masks & 15;
            in.dpp.bound_ctrl = bound;
            const Vgpr before = m.registers[40];
            m.run(in);
            for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
              const int from = c.source(lane);
              const bool valid = from >= 0 && (exec >> from & 1);
              const bool enabled = (exec >> lane & 1) && (masks >> (4 + lane / 16) & 1) &&
                                   (masks >> (lane % 16 / 4) & 1);
              const u32 operand = valid ? m.registers[10].lane[from] : 0;
              const u32 expected = enabled && (valid || bound)
                                       ? operand - m.registers[20].lane[lane]
                                       : before.lane[lane];
              CAPTURE(c.control, exec, masks, bound, lane);
              REQUIRE(m.registers[40].lane[lane] == expected);
            }
          }
        }
      }
    }
  });
  Instruction reserved = vop3(Opcode::v_mov_b32, 1);
  reserved.modifier = OperandModifier::dpp;
  reserved.dpp.control = 0x100;
  CHECK(translate_vector(reserved) == nullptr);
}

TEST_CASE("the carry of a lane that DPP disables is 0") {
  on_every_target([](VectorMachine& m) {
    Instruction in = vop3(Opcode::v_add_co_u32, 2);
    in.format = Format::vop2;
    in.modifier = OperandModifier::dpp;
    in.dpp.control = 0x111;  // row_shr:1: the first lane of a row has no source
    in.dpp.row_mask = 0xd;
    in.dpp.bank_mask = 0xf;
    in.sdst = kVccLo;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      m.registers[10].lane[lane] = m.registers[20].lane[lane] = 0x80000000;
    m.wave.set_vcc(~u64{0});
    m.run(in);
    CHECK(m.wave.vcc() == 0xfffefffe0000fffe);
    in.dpp.bound_ctrl = 1;  // 0 + 0x80000000
    m.run(in);
    CHECK(m.wave.vcc() == 0xfffefffe0000fffe);
    in.dpp.row_mask = 0xf;
    m.run(in);
    CHECK(m.wave.vcc() == 0xfffefffefffefffe);
  });
}

TEST_CASE("op_sel selects halves, and keeps the other half of the result") {
  on_every_target([](VectorMachine& m) {
    for (unsigned op_sel = 0; op_sel < 16; ++op_sel) {
      Instruction in = vop3(Opcode::v_mad_u16, 3);
      in.op_sel = static_cast<uint8_t>(op_sel);
      const Vgpr before = m.registers[40];
      m.run(in);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const auto half = [&](unsigned reg, unsigned i) {
          return m.registers[reg].lane[lane] >> (op_sel >> i & 1 ? 16 : 0) & 0xffff;
        };
        const u32 result = (half(10, 0) * half(20, 1) + half(30, 2)) & 0xffff;
        const u32 old = before.lane[lane];
        CAPTURE(op_sel, lane);
        REQUIRE(m.registers[40].lane[lane] ==
                (op_sel & 8 ? result << 16 | (old & 0xffff) : result | (old & 0xffff0000)));
      }
    }
  });
}

TEST_CASE("packed 16-bit instructions work on both halves as selected") {
  on_every_target([](VectorMachine& m) {
    for (const u64 exec : exec_shapes()) {
      for (unsigned select = 0; select < 64; ++select) {
        for (const Opcode opcode : {Opcode::v_pk_add_f16, Opcode::v_pk_mul_lo_u16,
                                    Opcode::v_pk_fma_f16, Opcode::v_pk_max_f16}) {
          m.wave.set_exec(exec);
          const bool floats = opcode != Opcode::v_pk_mul_lo_u16;
          Instruction in = vop3(opcode, 3);
          in.format = Format::vop3p;
          in.op_sel = select & 7;
          in.op_sel_hi = static_cast<uint8_t>(select >> 3);
          in.neg = floats ? select >> 1 & 7 : 0;
          in.neg_hi = floats ? static_cast<uint8_t>(select >> 2 & 7) : 0;
          const Vgpr before = m.registers[40];
          m.run(in);
          for (unsigned lane = 0; lane < kLanes; lane += 3) {
            if (!(exec >> lane & 1)) {
              REQUIRE(m.registers[40].lane[lane] == before.lane[lane]);
              continue;
            }
            for (unsigned h = 0; h < 2; ++h) {
              const unsigned sel = h ? in.op_sel_hi : in.op_sel, neg = h ? in.neg_hi : in.neg;
              u32 x[3];
              for (unsigned i = 0; i < 3; ++i) {
                x[i] = (m.registers[10 * (i + 1)].lane[lane] >> (sel >> i & 1 ? 16 : 0) & 0xffff) ^
                       (neg >> i & 1 ? 0x8000u : 0u);
              }
              const u32 got = m.registers[40].lane[lane] >> (16 * h) & 0xffff;
              const double a = f16(x[0]), b = f16(x[1]);
              CAPTURE(static_cast<unsigned>(opcode), select, lane, h, x[0], x[1], x[2]);
              if (opcode == Opcode::v_pk_mul_lo_u16) {
                REQUIRE(got == (x[0] * x[1] & 0xffff));
              } else if (opcode == Opcode::v_pk_max_f16) {
                if (!std::isnan(a) && !std::isnan(b)) REQUIRE(f16(got) == std::max(a, b));
              } else {
                const double exact = opcode == Opcode::v_pk_add_f16 ? a + b : a * b + f16(x[2]);
                REQUIRE((std::isnan(exact) ? std::isnan(f16(got)) : got == nearest_f16(exact)));
              }
            }
          }
        }
      }
    }
  });
}

TEST_CASE("packed float32 works on register pairs as selected") {
  on_every_target([](VectorMachine& m) {
    for (const u64 exec : {~u64{0}, u64{0x00ff12345678ff01}}) {
      for (unsigned select = 0; select < 64; ++select) {
        m.wave.set_exec(exec);
        Instruction in = vop3(Opcode::v_pk_fma_f32, 3);
        in.format = Format::vop3p;
        in.src[1] = 30;
        in.src[2] = v(41);  // overlaps the result
        in.op_sel = select & 7;
        in.op_sel_hi = static_cast<uint8_t>(select >> 3);
        in.neg = select & 1;
        in.neg_hi = select >> 1 & 1;
        const std::vector<Vgpr> before = m.registers;
        m.run(in);
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          for (unsigned h = 0; h < 2; ++h) {
            const unsigned sel = h ? in.op_sel_hi : in.op_sel;
            const float a = f32(before[10 + (sel & 1)].lane[lane]);
            const float b = f32(m.wave.scalar[30 + (sel >> 1 & 1)]);
            const float c = f32(before[41 + (sel >> 2 & 1)].lane[lane]);
            const float expected = std::fma((h ? in.neg_hi : in.neg) ? -a : a, b, c);
            const float got = f32(m.registers[40 + h].lane[lane]);
            CAPTURE(select, lane, h);
            if (!(exec >> lane & 1)) {
              REQUIRE(bits(got) == before[40 + h].lane[lane]);
            } else {
              REQUIRE((std::isnan(expected) ? std::isnan(got) : bits(got) == bits(expected)));
            }
          }
        }
      }
    }
  });
}

TEST_CASE("a packed move takes one register of each pair, also of its own result") {
  on_every_target([](VectorMachine& m) {
    constexpr OperandCode kPair = 30, kMinusOne = 193;  // s[30:31], and a constant
    for (const u64 exec : {~u64{0}, u64{0x00ff12345678ff01}}) {
      for (const OperandCode first : {v(10), v(40), v(39), kPair, kMinusOne}) {
        for (const OperandCode second : {v(20), v(40), v(41), kPair, kMinusOne}) {
          for (unsigned select = 0; select < 4; ++select) {
            m.wave.set_exec(exec);
            Instruction in = vop3(Opcode::v_pk_mov_b32, 2);
            in.format = Format::vop3p;
            in.src[0] = first;
            in.src[1] = second;
            in.op_sel = static_cast<uint8_t>(select);
            const std::vector<Vgpr> before = m.registers;
            m.run(in);
            for (unsigned lane = 0; lane < kLanes; ++lane) {
              for (unsigned h = 0; h < 2; ++h) {
                const OperandCode from = h == 0 ? first : second;
                const unsigned chosen = select >> h & 1;
                const uint32_t expected = !(exec >> lane & 1) ? before[40 + h].lane[lane]
                                          : from == kMinusOne ? ~0u
                                          : from == kPair     ? m.wave.scalar[30 + chosen]
                                                          : before[from - v(0) + chosen].lane[lane];
                CAPTURE(first, second, select, lane, h);
                REQUIRE(m.registers[40 + h].lane[lane] == expected);
              }
            }
          }
        }
      }
    }
  });
}

TEST_CASE("mixed precision reads each operand as float32 or as half of a register") {
  on_every_target([](VectorMachine& m) {
    for (const Opcode opcode :
         {Opcode::v_fma_mix_f32, Opcode::v_fma_mixlo_f16, Opcode::v_fma_mixhi_f16}) {
      for (unsigned select = 0; select < 64; ++select) {
        Instruction in = vop3(opcode, 3);
        in.format = Format::vop3p;
        in.op_sel = select & 7;
        in.op_sel_hi = static_cast<uint8_t>(select >> 3);
        in.neg = 1;
        in.neg_hi = 2;  // abs
        const Vgpr before = m.registers[40];
        m.run(in);
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          float x[3];
          for (unsigned i = 0; i < 3; ++i) {
            const u32 raw = m.registers[10 * (i + 1)].lane[lane];
            x[i] = in.op_sel_hi >> i & 1
                       ? static_cast<float>(f16(raw >> (in.op_sel >> i & 1 ? 16 : 0) & 0xffff))
                       : f32(raw);
          }
          const float exact = std::fma(-x[0], std::fabs(x[1]), x[2]);
          const u32 got = m.registers[40].lane[lane];
          const u32 half = opcode == Opcode::v_fma_mixhi_f16 ? got >> 16 : got & 0xffff;
          CAPTURE(static_cast<unsigned>(opcode), select, lane);
          if (opcode == Opcode::v_fma_mix_f32) {
            REQUIRE((std::isnan(exact) ? std::isnan(f32(got)) : got == bits(exact)));
            continue;
          }
          REQUIRE((std::isnan(exact) ? std::isnan(f16(half)) : half == nearest_f16(exact)));
          if (opcode == Opcode::v_fma_mixlo_f16) REQUIRE(got >> 16 == before.lane[lane] >> 16);
          if (opcode == Opcode::v_fma_mixhi_f16)
            REQUIRE((got & 0xffff) == (before.lane[lane] & 0xffff));
        }
      }
    }
  });
}

TEST_CASE("accumulating forms add to their destination") {
  on_every_target([](VectorMachine& m) {
    Instruction in = vop3(Opcode::v_fmac_f32, 2);
    in.format = Format::vop2;
    const Vgpr before = m.registers[40];
    m.run(in);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const float expected = std::fma(f32(m.registers[10].lane[lane]),
                                      f32(m.registers[20].lane[lane]), f32(before.lane[lane]));
      const float got = f32(m.registers[40].lane[lane]);
      REQUIRE((std::isnan(expected) ? std::isnan(got) : bits(got) == bits(expected)));
    }
  });
}

TEST_CASE("lanes and scalars exchange values") {
  on_every_target([](VectorMachine& m) {
    m.wave.set_exec(0x00000000000f0000);
    Instruction in = vop3(Opcode::v_readfirstlane_b32, 1);
    in.dst = 50;
    m.run(in);
    CHECK(m.wave.scalar[50] == m.registers[10].lane[16]);
    m.wave.set_exec(0);
    m.run(in);
    CHECK(m.wave.scalar[50] == m.registers[10].lane[0]);

    in = vop3(Opcode::v_readlane_b32, 2);
    in.src[1] = 30;
    in.dst = 51;
    m.wave.scalar[30] = 64 + 37;  // modulo the wave
    m.run(in);
    CHECK(m.wave.scalar[51] == m.registers[10].lane[37]);

    in = vop3(Opcode::v_writelane_b32, 2);
    in.src[0] = 31;
    in.src[1] = 128 + 63;
    Vgpr expected = m.registers[40];
    expected.lane[63] = m.wave.scalar[31];
    m.run(in);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      CHECK(m.registers[40].lane[lane] == expected.lane[lane]);
  });
}

TEST_CASE("v_swap_b32 exchanges active lanes") {
  on_every_target([](VectorMachine& m) {
    m.wave.set_exec(0xffff0000ffff0000);
    const Vgpr a = m.registers[40], b = m.registers[10];
    m.run(vop3(Opcode::v_swap_b32, 1));
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const bool active = m.wave.exec() >> lane & 1;
      CHECK(m.registers[40].lane[lane] == (active ? b : a).lane[lane]);
      CHECK(m.registers[10].lane[lane] == (active ? a : b).lane[lane]);
    }
  });
}

TEST_CASE("accumulation registers are the upper half of the file") {
  on_every_target([](VectorMachine& m) {
    Instruction in = vop3(Opcode::v_accvgpr_write_b32, 1);
    in.acc = 8;
    m.run(in);
    CHECK(m.registers[256 + 40].lane[12] == m.registers[10].lane[12]);
    in = vop3(Opcode::v_accvgpr_read_b32, 0);
    in.src[0] = v(40);
    in.acc = 1;
    in.dst = 45;
    m.run(in);
    CHECK(m.registers[45].lane[12] == m.registers[10].lane[12]);
  });
}

TEST_CASE("unsupported instructions are refused at translation") {
  Instruction interp = vop3(Opcode::v_interp_p1_f32, 2);
  CHECK(translate_vector(interp) == nullptr);
  Instruction clamped = vop3(Opcode::v_mul_lo_u32, 2);
  clamped.clamp = true;
  CHECK(translate_vector(clamped) == nullptr);
}

}  // namespace uptempo::vgpu::gfx9::test
