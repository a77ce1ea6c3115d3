// Matrix instructions (MFMA) of gfx908 and gfx90a, and those of gfx942 on float32, float64 and
// int8: D = A * B + C on small matrices spread over the lanes. matrix_fused.cpp has the other ones
// of gfx942.
//
// Layouts: as AMD's matrix instruction calculator prints them (test/vgpu/gfx9/matrix/layouts.txt).
// There are M = N rows and columns, K inner elements of which each lane holds kPerLane, and as many
// independent blocks as fill 64 lanes. EXEC does not apply.
//
// Order and rounding of additions: as in MMA-Sim, a public model of the hardware
// (github.com/microsoft/MMA-Sim, commit c785138, mmasim/simulator/amd.py; arXiv 2511.10909), for
// CDNA1 and CDNA2. Float32 and float64: each product is added with one rounding, k ascending.
// Float16 and bfloat16: the products of one lane are summed in pairs, ((p0 + p1) + (p2 + p3)), then
// the sum is added, each step with one rounding. Rounding is to nearest even.
//
// Denormals: kept, but for float16 and bfloat16 on gfx90a (Instruction::flushes). There those of A,
// B and C become +0, and those of products and sums become zeros of their sign, as in MMA-Sim.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/matrix.cpp"
#include <hwy/foreach_target.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <type_traits>

#include "gfx9/vector/half.hpp"
#include "gfx9/vector/instruction-inl.hpp"
#include "gfx9/vector/matrix.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

// Input formats: element `k` of a lane, given the lane's registers, and the number of products that
// are summed before they are added to the result.
struct F32In {
  using Value = float;
  static constexpr unsigned kPerLane = 1;
  static constexpr unsigned kAddedTogether = 1;
  static float element(const Vgpr* v, unsigned lane, unsigned) {
    return std::bit_cast<float>(v[0].lane[lane]);
  }
};
struct F16In {
  using Value = float;
  static constexpr unsigned kPerLane = 4;
  static constexpr unsigned kAddedTogether = 4;
  static constexpr float kSmallest = 0x1p-14f;  // normal number
  static float element(const Vgpr* v, unsigned lane, unsigned k) {
    return half_value(v[k / 2].lane[lane] >> (16 * (k % 2)) & 0xffffu);
  }
};
template <unsigned kCount>
struct Bf16In {
  using Value = float;
  static constexpr unsigned kPerLane = kCount;
  static constexpr unsigned kAddedTogether = kCount;
  static constexpr float kSmallest = FLT_MIN;
  static float element(const Vgpr* v, unsigned lane, unsigned k) {
    return std::bit_cast<float>(v[k / 2].lane[lane] >> (16 * (k % 2)) << 16);
  }
};
template <unsigned kCount>
struct I8In {
  using Value = int32_t;
  static constexpr unsigned kPerLane = kCount;
  static constexpr unsigned kAddedTogether = 1;
  static int32_t element(const Vgpr* v, unsigned lane, unsigned k) {
    return static_cast<int32_t>(v[k / 4].lane[lane] << (24 - 8 * (k % 4))) >> 24;
  }
};
struct F64In {
  using Value = double;
  static constexpr unsigned kPerLane = 1;
  static constexpr unsigned kAddedTogether = 1;
  static double element(const Vgpr* v, unsigned lane, unsigned) {
    return std::bit_cast<double>(v[0].lane[lane] | static_cast<uint64_t>(v[1].lane[lane]) << 32);
  }
};

template <class In, unsigned kM, unsigned kK>
struct Mfma {
  using T = typename In::Value;
  static constexpr bool kDouble = std::is_same_v<T, double>;
  static constexpr unsigned kGroups = kK / In::kPerLane;
  static constexpr unsigned kBlocks = 64 / (kM * kGroups);
  using Rows = MatrixRows<kM, kBlocks, kDouble ? 1 : 4>;
  static constexpr unsigned kRegisters = Rows::kRegisters;
  static constexpr bool kMayFlush = In::kAddedTogether > 1;  // of 16 bits

  static const Op* run(const Op& op, Wave& wave) { return run(op, wave, false); }
  static const Op* run_gfx942(const Op& op, Wave& wave) {
    return run(op, wave, (wave.mode & kModeFp16Ovfl) != 0);
  }

  static HWY_NOINLINE const Op* run(const Op& op, Wave& wave, bool clamps) {
    const Instruction& in = op.in;
    const unsigned broadcast = matrix_cbsz(in), chosen = matrix_abid(in);
    // BLGP of the float64 instructions: bits 0 to 2 negate A, B and C.
    const unsigned pattern = kDouble ? 0 : matrix_blgp(in), negated = kDouble ? matrix_blgp(in) : 0;
    alignas(64) T a[kBlocks][kK][kM];
    alignas(64) T b[kBlocks][kK][kM];
    Vgpr constants[2][2];
    const Vgpr* const sources[2] = {source(wave, in, 0, constants[0]),
                                    source(wave, in, 1, constants[1])};
    for (unsigned block = 0; block < kBlocks; ++block) {
      // A group of 2^CBSZ blocks shares block ABID of the group.
      const unsigned mask = (1u << broadcast) - 1;
      const unsigned a_block = (block & ~mask) | (chosen & mask);
      for (unsigned k = 0; k < kK; ++k) {
        for (unsigned i = 0; i < kM; ++i) {
          const unsigned group = k / In::kPerLane, part = k % In::kPerLane;
          a[block][k][i] = In::element(sources[0], i + kM * (a_block + kBlocks * group), part);
          b[block][k][i] = In::element(
              sources[1], matrix_b_lane(i + kM * (block + kBlocks * group), pattern), part);
          if (negated & 1) a[block][k][i] = -a[block][k][i];
          if (negated & 2) b[block][k][i] = -b[block][k][i];
        }
      }
    }
    alignas(64) T result[kRegisters][kLanes];
    addend(wave, in, result);
    if (negated & 4) {
      for (auto& row : result)
        for (T& entry : row) entry = -entry;
    }
    if constexpr (kMayFlush) {
      if (in.flushes) {
        flush(a, In::kSmallest);
        flush(b, In::kSmallest);
        flush(result, FLT_MIN);
        add<true>(a, b, result);
        put(wave, in, result);
        return next(op);
      }
    }
    add<false>(a, b, result);
    if constexpr (!kDouble) {
      if (clamps) [[unlikely]]
        clamp(wave, in, a, b, result);
    }
    put(wave, in, result);
    return next(op);
  }

  static HWY_NOINLINE void clamp(const Wave& wave, const Instruction& in,
                                 const T (&a)[kBlocks][kK][kM], const T (&b)[kBlocks][kK][kM],
                                 T (&result)[kRegisters][kLanes]) {
    T addends[kRegisters][kLanes];
    addend(wave, in, addends);
    for (unsigned block = 0; block < kBlocks; ++block) {
      for (unsigned i = 0; i < kM; ++i) {
        for (unsigned j = 0; j < kM; ++j) {
          const unsigned reg = Rows::reg(block, i), lane = Rows::lane(block, i) + j;
          const T c = addends[reg][lane];
          T& sum = result[reg][lane];
          if constexpr (std::is_same_v<T, int32_t>) {
            sum = std::bit_cast<int32_t>(
                clamped_sum(std::bit_cast<uint32_t>(c), std::bit_cast<uint32_t>(sum)));
          } else {
            sum = clamped_sum(c, sum, kK, [&](unsigned k) {
              return std::isfinite(a[block][k][i]) && std::isfinite(b[block][k][j]);
            });
          }
        }
      }
    }
  }

  template <class Array>
  static void flush(Array& values, float smallest) {
    auto* const begin = reinterpret_cast<float*>(&values);
    for (size_t i = 0; i < sizeof(Array) / sizeof(float); ++i)
      if (std::fabs(begin[i]) < smallest) begin[i] = 0;
  }

  // result += a * b
  template <bool kFlushes>
  static HWY_INLINE void add(const T (&a)[kBlocks][kK][kM], const T (&b)[kBlocks][kK][kM],
                             T (&result)[kRegisters][kLanes]) {
    const hn::CappedTag<T, kM> d;
    constexpr size_t kN = hn::MaxLanes(hn::CappedTag<T, kM>{});
    for (unsigned block = 0; block < kBlocks; ++block) {
      for (unsigned i = 0; i < kM; ++i) {
        T* const row = &result[Rows::reg(block, i)][Rows::lane(block, i)];
        for (size_t j = 0; j < kM; j += kN) {
          auto sum = hn::LoadU(d, row + j);
          const auto x = [&](unsigned k) HWY_ATTR { return hn::Set(d, a[block][k][i]); };
          const auto y = [&](unsigned k) HWY_ATTR { return hn::LoadU(d, &b[block][k][j]); };
          [[maybe_unused]] const auto settled = [&](auto value) HWY_ATTR {
            if constexpr (kFlushes) {
              const auto zero = hn::CopySign(hn::Zero(d), value);
              return hn::IfThenElse(hn::Lt(hn::Abs(value), hn::Set(d, FLT_MIN)), zero, value);
            } else {
              return value;
            }
          };
          // The rounded product. A zero is +0, as from a fused addition to +0, also one from an
          // underflow of bfloat16.
          [[maybe_unused]] const auto product = [&](unsigned k) HWY_ATTR {
            return settled(hn::Add(hn::Mul(x(k), y(k)), hn::Zero(d)));
          };
          [[maybe_unused]] const auto pair = [&](unsigned k) HWY_ATTR {
            return settled(hn::Add(product(k), product(k + 1)));
          };
          for (unsigned k = 0; k < kK; k += In::kAddedTogether) {
            if constexpr (std::is_same_v<T, int32_t>) {
              sum = hn::Add(hn::Mul(x(k), y(k)), sum);
            } else if constexpr (In::kAddedTogether == 1) {
              sum = fused(x(k), y(k), sum);
            } else if constexpr (In::kAddedTogether == 2) {
              sum = settled(hn::Add(sum, pair(k)));
            } else {
              sum = settled(hn::Add(sum, settled(hn::Add(pair(k), pair(k + 2)))));
            }
          }
          hn::StoreU(sum, d, row + j);
        }
      }
    }
  }

  static const Vgpr* source(const Wave& wave, const Instruction& in, unsigned i, Vgpr (&room)[2]) {
    if (is_vgpr(in.src[i])) return wave.vgpr + (in.src[i] - kFirstVgpr);
    const uint64_t value = scalar_operand(wave, in, i, kDouble ? Type::f64 : Type::u32);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      room[0].lane[lane] = static_cast<uint32_t>(value);
      room[1].lane[lane] = static_cast<uint32_t>(kDouble ? value >> 32 : value);
    }
    return room;
  }
  static void addend(const Wave& wave, const Instruction& in, T (&result)[kRegisters][kLanes]) {
    for (unsigned r = 0; r < kRegisters; ++r) {
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        uint64_t bits;
        if (is_vgpr(in.src[2])) {
          const Vgpr* const v = wave.vgpr + (in.src[2] - kFirstVgpr) + r * (kDouble ? 2 : 1);
          bits = v[0].lane[lane] | (kDouble ? static_cast<uint64_t>(v[1].lane[lane]) << 32 : 0);
        } else {
          bits = scalar_operand(wave, in, 2, kDouble ? Type::f64 : Type::u32);
        }
        if constexpr (kDouble) {
          result[r][lane] = std::bit_cast<double>(bits);
        } else {
          result[r][lane] = std::bit_cast<T>(static_cast<uint32_t>(bits));
        }
      }
    }
  }
  static void put(Wave& wave, const Instruction& in, const T (&result)[kRegisters][kLanes]) {
    for (unsigned r = 0; r < kRegisters; ++r) {
      Vgpr* const v = wave.vgpr + in.dst + r * (kDouble ? 2 : 1);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        if constexpr (kDouble) {
          const auto bits = std::bit_cast<uint64_t>(result[r][lane]);
          v[0].lane[lane] = static_cast<uint32_t>(bits);
          v[1].lane[lane] = static_cast<uint32_t>(bits >> 32);
        } else {
          v[0].lane[lane] = std::bit_cast<uint32_t>(result[r][lane]);
        }
      }
    }
  }
};

template <class In, unsigned kM, unsigned kK>
constexpr Entry mfma(Opcode opcode) {
  if (matrix_blocks(opcode) != Mfma<In, kM, kK>::kBlocks)
    throw "the number of blocks differs from matrix.hpp";
  Entry e;
  e.opcode = opcode;
  e.own = &Mfma<In, kM, kK>::run;
  e.sources = 3;
  return e;
}

template <class In, unsigned kM, unsigned kK>
constexpr Entry mfma942(Opcode opcode) {
  Entry e = mfma<In, kM, kK>(opcode);
  e.own = &Mfma<In, kM, kK>::run_gfx942;
  return e;
}

constexpr Entry kEntries[] = {
    mfma<F32In, 32, 1>(Opcode::v_mfma_f32_32x32x1f32),
    mfma<F32In, 16, 1>(Opcode::v_mfma_f32_16x16x1f32),
    mfma<F32In, 4, 1>(Opcode::v_mfma_f32_4x4x1f32),
    mfma<F32In, 32, 2>(Opcode::v_mfma_f32_32x32x2f32),
    mfma<F32In, 16, 4>(Opcode::v_mfma_f32_16x16x4f32),
    mfma<F16In, 32, 4>(Opcode::v_mfma_f32_32x32x4f16),
    mfma<F16In, 16, 4>(Opcode::v_mfma_f32_16x16x4f16),
    mfma<F16In, 4, 4>(Opcode::v_mfma_f32_4x4x4f16),
    mfma<F16In, 32, 8>(Opcode::v_mfma_f32_32x32x8f16),
    mfma<F16In, 16, 16>(Opcode::v_mfma_f32_16x16x16f16),
    mfma<I8In<4>, 32, 4>(Opcode::v_mfma_i32_32x32x4i8),
    mfma<I8In<4>, 16, 4>(Opcode::v_mfma_i32_16x16x4i8),
    mfma<I8In<4>, 4, 4>(Opcode::v_mfma_i32_4x4x4i8),
    mfma<I8In<4>, 32, 8>(Opcode::v_mfma_i32_32x32x8i8),
    mfma<I8In<4>, 16, 16>(Opcode::v_mfma_i32_16x16x16i8),
    mfma<Bf16In<2>, 32, 2>(Opcode::v_mfma_f32_32x32x2bf16),
    mfma<Bf16In<2>, 16, 2>(Opcode::v_mfma_f32_16x16x2bf16),
    mfma<Bf16In<2>, 4, 2>(Opcode::v_mfma_f32_4x4x2bf16),
    mfma<Bf16In<2>, 32, 4>(Opcode::v_mfma_f32_32x32x4bf16),
    mfma<Bf16In<2>, 16, 8>(Opcode::v_mfma_f32_16x16x8bf16),
    mfma<Bf16In<4>, 32, 4>(Opcode::v_mfma_f32_32x32x4bf16_1k),
    mfma<Bf16In<4>, 16, 4>(Opcode::v_mfma_f32_16x16x4bf16_1k),
    mfma<Bf16In<4>, 4, 4>(Opcode::v_mfma_f32_4x4x4bf16_1k),
    mfma<Bf16In<4>, 32, 8>(Opcode::v_mfma_f32_32x32x8bf16_1k),
    mfma<Bf16In<4>, 16, 16>(Opcode::v_mfma_f32_16x16x16bf16_1k),
    mfma<F64In, 16, 4>(Opcode::v_mfma_f64_16x16x4f64),
    mfma<F64In, 4, 4>(Opcode::v_mfma_f64_4x4x4f64),
    // gfx942
    mfma942<F32In, 32, 1>(Opcode::v_mfma_f32_32x32x1_2b_f32),
    mfma942<F32In, 16, 1>(Opcode::v_mfma_f32_16x16x1_4b_f32),
    mfma942<F32In, 4, 1>(Opcode::v_mfma_f32_4x4x1_16b_f32),
    mfma942<F32In, 32, 2>(Opcode::v_mfma_f32_32x32x2_f32),
    mfma942<F32In, 16, 4>(Opcode::v_mfma_f32_16x16x4_f32),
    mfma942<I8In<4>, 32, 4>(Opcode::v_mfma_i32_32x32x4_2b_i8),
    mfma942<I8In<4>, 16, 4>(Opcode::v_mfma_i32_16x16x4_4b_i8),
    mfma942<I8In<4>, 4, 4>(Opcode::v_mfma_i32_4x4x4_16b_i8),
    mfma942<I8In<8>, 32, 16>(Opcode::v_mfma_i32_32x32x16_i8),
    mfma942<I8In<8>, 16, 32>(Opcode::v_mfma_i32_16x16x32_i8),
    mfma942<F64In, 16, 4>(Opcode::v_mfma_f64_16x16x4_f64),
    mfma942<F64In, 4, 4>(Opcode::v_mfma_f64_4x4x4_4b_f64),
};

}  // namespace

std::span<const Entry> matrix_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
