// Matrix instructions: the product that the lanes hold is the product of the matrices that the lanes held.
#include <cmath>

#include "support/catch.hpp"
#include "vgpu/gfx9/vector_machine.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

enum class Input { f32, f16, bf16, i8, f64 };

struct Shape {
  Opcode opcode;
  Input input;
  unsigned rows, inner, per_lane;
};

// The value that a lane's element `k` encodes: a small integer, exact in every type, that depends on matrix, block, row and k.
int a_value(unsigned block, unsigned i, unsigned k) {
  return static_cast<int>((block * 7 + i * 3 + k * 5) % 11) - 5;
}
int b_value(unsigned block, unsigned j, unsigned k) {
  return static_cast<int>((block * 5 + j * 2 + k * 3) % 13) - 6;
}
int c_value(unsigned reg, unsigned lane) { return static_cast<int>((reg * 3 + lane) % 17) - 8; }

void encode(VectorMachine& m, const Shape& shape, unsigned first, unsigned lane, unsigned part, int value) {
  const auto or_in = [&](unsigned reg, u32 bits, unsigned at) {
    m.registers[first + reg].lane[lane] |= bits << at;
  };
  switch (shape.input) {
    case Input::f32:
      or_in(0, std::bit_cast<u32>(static_cast<float>(value)), 0);
      break;
    case Input::f16:
      or_in(part / 2, static_cast<u32>(nearest_f16(value)), 16 * (part % 2));
      break;
    case Input::bf16:
      or_in(part / 2, std::bit_cast<u32>(static_cast<float>(value)) >> 16, 16 * (part % 2));
      break;
    case Input::i8:
      or_in(0, static_cast<u32>(value) & 0xff, 8 * part);
      break;
    case Input::f64: {
      const u64 all = bits(static_cast<double>(value));
      or_in(0, static_cast<u32>(all), 0);
      or_in(1, static_cast<u32>(all >> 32), 0);
      break;
    }
  }
}

void check(const Shape& shape) {
  const unsigned groups = shape.inner / shape.per_lane, blocks = 64 / (shape.rows * groups);
  const unsigned words = shape.input == Input::f64 ? 2 : 1;
  const unsigned registers = shape.rows * shape.rows * blocks / 64;
  constexpr unsigned kA = 0, kB = 4, kC = 64, kD = 128;
  VectorMachine m(3);
  m.wave.set_exec(0x5a5a);  // does not apply
  for (unsigned reg = 0; reg < 8; ++reg) m.registers[reg] = {};
  for (unsigned block = 0; block < blocks; ++block) {
    for (unsigned i = 0; i < shape.rows; ++i) {
      for (unsigned k = 0; k < shape.inner; ++k) {
        const unsigned lane = i + shape.rows * (block + blocks * (k / shape.per_lane));
        encode(m, shape, kA, lane, k % shape.per_lane, a_value(block, i, k));
        encode(m, shape, kB, lane, k % shape.per_lane, b_value(block, i, k));
      }
    }
  }
  const auto number = [&](unsigned reg, unsigned lane) -> double {
    if (shape.input == Input::f64) return f64(m.pair(reg, lane));
    const u32 word = m.registers[reg].lane[lane];
    return shape.input == Input::i8 ? static_cast<double>(static_cast<std::int32_t>(word))
                                    : static_cast<double>(f32(word));
  };
  for (unsigned reg = 0; reg < registers; ++reg) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const int value = c_value(reg, lane);
      u32& low = m.registers[kC + reg * words].lane[lane];
      if (shape.input == Input::f64) {
        low = static_cast<u32>(bits(static_cast<double>(value)));
        m.registers[kC + reg * words + 1].lane[lane] =
            static_cast<u32>(bits(static_cast<double>(value)) >> 32);
      } else {
        low = shape.input == Input::i8 ? static_cast<u32>(value)
                                       : std::bit_cast<u32>(static_cast<float>(value));
      }
    }
  }
  Instruction in = vop3(shape.opcode, 0);
  in.format = Format::vop3p;
  in.src[0] = kFirstVgpr + kA;
  in.src[1] = kFirstVgpr + kB;
  in.src[2] = kFirstVgpr + kC;
  in.dst = kD;
  m.run(in);
  for (unsigned block = 0; block < blocks; ++block) {
    for (unsigned i = 0; i < shape.rows; ++i) {
      for (unsigned j = 0; j < shape.rows; ++j) {
        unsigned reg = 0, lane = 0;
        if (shape.input == Input::f64) {
          reg = shape.rows == 16 ? i / 4 : 0;
          lane = shape.rows == 16 ? j + 16 * (i % 4) : j + 4 * i + 16 * block;
        } else if (shape.rows == 32) {
          reg = 16 * block + 4 * (i / 8) + i % 4;
          lane = j + 32 * (i / 4 % 2);
        } else if (shape.rows == 16) {
          reg = 4 * block + i % 4;
          lane = j + 16 * (i / 4);
        } else {
          reg = i;
          lane = j + 4 * block;
        }
        int expected = c_value(reg, lane);
        for (unsigned k = 0; k < shape.inner; ++k) expected += a_value(block, i, k) * b_value(block, j, k);
        CAPTURE(static_cast<unsigned>(shape.opcode), block, i, j, reg, lane);
        REQUIRE(number(kD + reg * words, lane) == expected);
      }
    }
  }
}

}  // namespace

TEST_CASE("matrix instructions multiply blocks and add") {
  const Shape shapes[] = {{Opcode::v_mfma_f32_32x32x1f32, Input::f32, 32, 1, 1},
                          {Opcode::v_mfma_f32_16x16x1f32, Input::f32, 16, 1, 1},
                          {Opcode::v_mfma_f32_4x4x1f32, Input::f32, 4, 1, 1},
                          {Opcode::v_mfma_f32_32x32x2f32, Input::f32, 32, 2, 1},
                          {Opcode::v_mfma_f32_16x16x4f32, Input::f32, 16, 4, 1},
                          {Opcode::v_mfma_f32_32x32x4f16, Input::f16, 32, 4, 4},
                          {Opcode::v_mfma_f32_4x4x4f16, Input::f16, 4, 4, 4},
                          {Opcode::v_mfma_f32_16x16x16f16, Input::f16, 16, 16, 4},
                          {Opcode::v_mfma_f32_32x32x8f16, Input::f16, 32, 8, 4},
                          {Opcode::v_mfma_i32_32x32x8i8, Input::i8, 32, 8, 4},
                          {Opcode::v_mfma_i32_16x16x16i8, Input::i8, 16, 16, 4},
                          {Opcode::v_mfma_i32_4x4x4i8, Input::i8, 4, 4, 4},
                          {Opcode::v_mfma_f32_32x32x4bf16, Input::bf16, 32, 4, 2},
                          {Opcode::v_mfma_f32_16x16x8bf16, Input::bf16, 16, 8, 2},
                          {Opcode::v_mfma_f32_4x4x2bf16, Input::bf16, 4, 2, 2},
                          {Opcode::v_mfma_f32_32x32x8bf16_1k, Input::bf16, 32, 8, 4},
                          {Opcode::v_mfma_f32_16x16x4bf16_1k, Input::bf16, 16, 4, 4},
                          {Opcode::v_mfma_f64_16x16x4f64, Input::f64, 16, 4, 1},
                          {Opcode::v_mfma_f64_4x4x4f64, Input::f64, 4, 4, 1}};
  const vector::Simd best = vector::simd_in_use();
  for (const vector::Simd simd : simd_targets()) {
    vector::use_simd(simd);
    INFO(name(simd));
    for (const Shape& shape : shapes) check(shape);
  }
  vector::use_simd(best);
}

TEST_CASE("a matrix instruction may overwrite its addend, and takes a constant for it") {
  VectorMachine m(8);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    m.registers[0].lane[lane] = std::bit_cast<u32>(2.0f);
    m.registers[1].lane[lane] = std::bit_cast<u32>(3.0f);
  }
  Instruction in = vop3(Opcode::v_mfma_f32_4x4x1f32, 0);
  in.format = Format::vop3p;
  in.src[0] = kFirstVgpr;
  in.src[1] = kFirstVgpr + 1;
  in.src[2] = 242;  // 1.0
  in.dst = 8;
  in.acc = 8;  // accumulation registers a[8:11]
  m.run(in);
  in.src[2] = kFirstVgpr + 8;
  in.acc = 12;
  m.run(in);
  for (unsigned lane = 0; lane < kLanes; ++lane) CHECK(f32(m.registers[256 + 8].lane[lane]) == 13.0f);
}

}  // namespace uptempo::vgpu::gfx9::test
