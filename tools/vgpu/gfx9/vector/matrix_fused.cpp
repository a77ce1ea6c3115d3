// Matrix instructions of gfx942 whose hardware adds several products at once: float16, bfloat16,
// xf32 and 8-bit floats, dense (MFMA) and sparse (SMFMAC), and sparse int8.
//
// Layouts and compression indices: as AMD's matrix instruction calculator prints them
// (test/vgpu/gfx9/matrix/layouts.txt).
//
// Arithmetic of the dense instructions: as in MMA-Sim, a public model of the hardware
// (github.com/microsoft/MMA-Sim, commit c785138, mmasim/simulator/amd.py and arithmetic.py; arXiv
// 2511.10909), for CDNA3. A group of products (kGroup) is aligned to its largest exponent, each
// product truncated to 24 fractional bits, and summed exactly. The sum and the addend are aligned
// to the larger of their exponents and rounded down, to 31 and 24 fractional bits. Their sum is
// rounded to float32, to nearest even. 8-bit floats: the products with even and with odd k are
// summed separately first. Denormals are kept. No source covers the sparse instructions; here their
// groups have as many stored products as a dense group has products.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "gfx9/vector/entry.hpp"
#include "gfx9/vector/float8.hpp"
#include "gfx9/vector/half.hpp"
#include "gfx9/vector/matrix.hpp"

namespace uptempo::vgpu::gfx9::vector {
namespace {

using i64 = int64_t;

// Input formats: element `k` of a lane as float, the exponent of denormals, and the number of
// products that are added at once.
struct F16In {
  static constexpr unsigned kBits = 16, kGroup = 8;
  static constexpr int kSmallestExponent = -14;
  static float element(const Vgpr* v, unsigned lane, unsigned k) {
    return half_value(v[k / 2].lane[lane] >> (16 * (k % 2)) & 0xffffu);
  }
};
struct Bf16In {
  static constexpr unsigned kBits = 16, kGroup = 8;
  static constexpr int kSmallestExponent = -126;
  static float element(const Vgpr* v, unsigned lane, unsigned k) {
    return std::bit_cast<float>(v[k / 2].lane[lane] >> (16 * (k % 2)) << 16);
  }
};
// float32 without its low 13 bits of fraction.
struct Xf32In {
  static constexpr unsigned kBits = 32, kGroup = 4;
  static constexpr int kSmallestExponent = -126;
  static float element(const Vgpr* v, unsigned lane, unsigned k) {
    return std::bit_cast<float>(v[k].lane[lane] & 0xffffe000u);
  }
};
template <const Float8& kFormat>
struct F8In {
  static constexpr unsigned kBits = 8, kGroup = 16;
  static constexpr int kSmallestExponent = 1 - kFormat.bias;
  static float element(const Vgpr* v, unsigned lane, unsigned k) {
    return float8_value(kFormat, v[k / 4].lane[lane] >> (8 * (k % 4)) & 0xffu);
  }
};
using Fp8In = F8In<kFp8>;
using Bf8In = F8In<kBf8>;
struct I8In {
  static constexpr unsigned kBits = 8, kGroup = 1;
  static constexpr int kSmallestExponent = 0;
  static float element(const Vgpr* v, unsigned lane, unsigned k) {
    return static_cast<float>(static_cast<int32_t>(v[k / 4].lane[lane] << (24 - 8 * (k % 4))) >>
                              24);
  }
};

// The exponent of a finite number before normalisation, that of 0 being -126.
template <class In>
int exponent_of(float x) {
  const auto field = static_cast<int>(std::bit_cast<uint32_t>(x) >> 23 & 0xff);
  if (x == 0.0f) return -126;
  return std::max(field - 127, In::kSmallestExponent);
}

struct Input {
  float value;
  int exponent;
};
struct Product {
  double value;
  int exponent;
};

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}
// Rounds down where bits are lost.
i64 shifted(i64 value, int left) {
  if (left >= 0) return static_cast<i64>(static_cast<uint64_t>(value) << left);
  return value >> std::min(-left, 63);
}

// A number in units of 2^(exponent - 24).
struct Aligned {
  i64 sum;
  int exponent;
};
Aligned aligned_sum(const Product* products, unsigned count, unsigned stride) {
  int exponent = products[0].exponent;
  for (unsigned i = stride; i < count; i += stride)
    exponent = std::max(exponent, products[i].exponent);
  i64 sum = 0;
  const double scale = power_of_two(24 - exponent);
  for (unsigned i = 0; i < count; i += stride) sum += static_cast<i64>(products[i].value * scale);
  return {sum, exponent};
}

float add_group(const Product* products, unsigned count, float c, bool by_parity) {
  double rough = static_cast<double>(c);
  bool overflows = false, underflows = false;  // past float32's largest and smallest number
  for (unsigned i = 0; i < count; ++i) {
    rough += products[i].value;
    overflows |= products[i].value >= 0x1p128;
    underflows |= products[i].value <= -0x1p128;
  }
  if (!std::isfinite(rough)) return static_cast<float>(rough);
  if (overflows && underflows) return std::numeric_limits<float>::quiet_NaN();
  if (overflows || underflows)
    return overflows ? std::numeric_limits<float>::infinity()
                     : -std::numeric_limits<float>::infinity();

  Aligned sum;
  if (by_parity) {
    const Aligned even = aligned_sum(products, count, 2),
                  odd = aligned_sum(products + 1, count - 1, 2);
    sum.exponent = std::max(even.exponent, odd.exponent);
    sum.sum = shifted(even.sum, even.exponent - sum.exponent) +
              shifted(odd.sum, odd.exponent - sum.exponent);
  } else {
    sum = aligned_sum(products, count, 1);
  }
  const auto bits = std::bit_cast<uint32_t>(c);
  const auto field = static_cast<int>(bits >> 23 & 0xff);
  const int c_exponent = std::max(field, 1) - 127;
  const i64 magnitude = (bits & 0x7fffff) | (field != 0 ? 0x800000 : 0);  // times 2^-23
  const i64 significand = bits >> 31 != 0 ? -magnitude : magnitude;
  const int exponent = std::max(sum.exponent, c_exponent);
  const i64 from_products = shifted(sum.sum, 7 + sum.exponent - exponent);  // times 2^-31
  i64 from_c = shifted(significand, 1 + c_exponent - exponent);             // times 2^-24
  if (by_parity && c_exponent < exponent - 25) from_c = 0;
  const auto total = static_cast<double>(from_products + from_c * 128);
  return static_cast<float>(total * power_of_two(exponent - 31));
}

template <class A, class B, unsigned kM, unsigned kK, bool kSparse>
struct Fused {
  static_assert(A::kBits == B::kBits && A::kGroup == B::kGroup);
  static constexpr bool kInteger = std::is_same_v<A, I8In>;
  static constexpr unsigned kStored = kSparse ? kK / 2 : kK;                // entries of a row of A
  static constexpr unsigned kPerLane = A::kBits == 16 ? 4 : 64 / A::kBits;  // of A
  static constexpr unsigned kLaneGroups = kStored / kPerLane;
  static constexpr unsigned kBlocks = 64 / (kM * kLaneGroups);
  using Rows = MatrixRows<kM, kBlocks, 4>;

  static const Op* run(const Op& op, Wave& wave) {
    const Instruction& in = op.in;
    const Vgpr* const sources[2] = {wave.vgpr + (in.src[0] - kFirstVgpr),
                                    wave.vgpr + (in.src[1] - kFirstVgpr)};
    Input a[kBlocks][kM][kStored], b[kBlocks][kK][kM];
    fill(in, sources, a, b);
    unsigned k_of[kM][kStored];
    if constexpr (kSparse) find_indices(in, wave, k_of);

    Vgpr result[Rows::kRegisters];
    for (unsigned block = 0; block < kBlocks; ++block) {
      for (unsigned i = 0; i < kM; ++i) {
        for (unsigned j = 0; j < kM; ++j) {
          const unsigned reg = Rows::reg(block, i), lane = Rows::lane(block, i) + j;
          const uint32_t c = addend(in, wave, reg, lane);
          const auto factor = [&](unsigned s) -> const Input& {
            return b[block][kSparse ? k_of[i][s] : s][j];
          };
          if constexpr (kInteger) {
            uint32_t sum = c;
            for (unsigned s = 0; s < kStored; ++s)
              sum += static_cast<uint32_t>(
                  static_cast<int32_t>(a[block][i][s].value * factor(s).value));
            result[reg].lane[lane] = sum;
          } else {
            result[reg].lane[lane] =
                std::bit_cast<uint32_t>(dot(a[block][i], factor, std::bit_cast<float>(c)));
          }
        }
      }
    }
    if ((wave.mode & kModeFp16Ovfl) != 0) [[unlikely]]
      clamp(in, wave, a, b, k_of, result);
    for (unsigned reg = 0; reg < Rows::kRegisters; ++reg) wave.vgpr[in.dst + reg] = result[reg];
    return next(op);
  }

  static void clamp(const Instruction& in, const Wave& wave, const Input (&a)[kBlocks][kM][kStored],
                    const Input (&b)[kBlocks][kK][kM],
                    [[maybe_unused]] const unsigned (&k_of)[kM][kStored],
                    Vgpr (&result)[Rows::kRegisters]) {
    for (unsigned block = 0; block < kBlocks; ++block) {
      for (unsigned i = 0; i < kM; ++i) {
        for (unsigned j = 0; j < kM; ++j) {
          const unsigned reg = Rows::reg(block, i), lane = Rows::lane(block, i) + j;
          const uint32_t c = addend(in, wave, reg, lane);
          uint32_t& sum = result[reg].lane[lane];
          if constexpr (kInteger) {
            sum = clamped_sum(c, sum);
          } else {
            sum = std::bit_cast<uint32_t>(clamped_sum(
                std::bit_cast<float>(c), std::bit_cast<float>(sum), kStored, [&](unsigned s) {
                  return std::isfinite(a[block][i][s].value) &&
                         std::isfinite(b[block][kSparse ? k_of[i][s] : s][j].value);
                }));
          }
        }
      }
    }
  }

  template <class Factor>
  static float dot(const Input* row, Factor&& factor, float c) {
    constexpr unsigned kGroup = std::min(A::kGroup, kStored);
    for (unsigned first = 0; first < kStored; first += kGroup) {
      Product products[kGroup];
      for (unsigned s = 0; s < kGroup; ++s) {
        const Input &x = row[first + s], &y = factor(first + s);
        products[s] = {static_cast<double>(x.value) * static_cast<double>(y.value),
                       x.exponent + y.exponent};
      }
      c = add_group(products, kGroup, c, A::kBits == 8);
    }
    return c;
  }

  static void fill(const Instruction& in, const Vgpr* const (&sources)[2],
                   Input (&a)[kBlocks][kM][kStored], Input (&b)[kBlocks][kK][kM]) {
    // A group of 2^CBSZ blocks shares block ABID of the group.
    const unsigned mask = kSparse ? 0 : (1u << matrix_cbsz(in)) - 1, chosen = matrix_abid(in);
    constexpr unsigned kPerLaneB = kK / kLaneGroups;
    for (unsigned block = 0; block < kBlocks; ++block) {
      const unsigned a_block = (block & ~mask) | (chosen & mask);
      for (unsigned i = 0; i < kM; ++i) {
        for (unsigned s = 0; s < kStored; ++s) {
          const unsigned lane = i + kM * (a_block + kBlocks * (s / kPerLane));
          const float value = A::element(sources[0], lane, s % kPerLane);
          a[block][i][s] = {value, exponent_of<A>(value)};
        }
        for (unsigned k = 0; k < kK; ++k) {
          const unsigned lane =
              matrix_b_lane(i + kM * (block + kBlocks * (k / kPerLaneB)), matrix_blgp(in));
          const float value = B::element(sources[1], lane, k % kPerLaneB);
          b[block][k][i] = {value, exponent_of<B>(value)};
        }
      }
    }
  }

  // Two stored entries of A belong to four k. Two bits of src2 for each state which k it is.
  static void find_indices(const Instruction& in, const Wave& wave, unsigned (&k_of)[kM][kStored]) {
    const unsigned set = matrix_cbsz(in) == 0 ? matrix_abid(in) : 0;
    const Vgpr& indices = wave.vgpr[in.src[2] - kFirstVgpr];
    for (unsigned i = 0; i < kM; ++i) {
      for (unsigned s = 0; s < kStored; ++s) {
        const uint32_t bits = indices.lane[i + kM * (s / kPerLane)] >> (2 * kPerLane * set);
        k_of[i][s] = s / 2 * 4 + (bits >> (2 * (s % kPerLane)) & 3);
      }
    }
  }

  static uint32_t addend(const Instruction& in, const Wave& wave, unsigned reg, unsigned lane) {
    if constexpr (kSparse) return wave.vgpr[in.dst + reg].lane[lane];
    if (is_vgpr(in.src[2])) return wave.vgpr[in.src[2] - kFirstVgpr + reg].lane[lane];
    return static_cast<uint32_t>(scalar_operand(wave, in, 2, Type::u32));
  }
};

template <class A, class B, unsigned kM, unsigned kK, bool kSparse = false>
constexpr Entry fused(Opcode opcode) {
  if (matrix_blocks(opcode) != Fused<A, B, kM, kK, kSparse>::kBlocks)
    throw "the number of blocks differs from matrix.hpp";
  Entry e;
  e.opcode = opcode;
  e.own = &Fused<A, B, kM, kK, kSparse>::run;
  e.sources = 3;
  return e;
}
template <class A, class B, unsigned kM, unsigned kK>
constexpr Entry sparse(Opcode opcode) {
  if (sparse_index_sets(opcode) * 2 * Fused<A, B, kM, kK, true>::kPerLane != 32)
    throw "the number of index sets differs from matrix.hpp";
  return fused<A, B, kM, kK, true>(opcode);
}

constexpr Entry kEntries[] = {
    fused<Xf32In, Xf32In, 16, 8>(Opcode::v_mfma_f32_16x16x8_xf32),
    fused<Xf32In, Xf32In, 32, 4>(Opcode::v_mfma_f32_32x32x4_xf32),
    fused<F16In, F16In, 32, 4>(Opcode::v_mfma_f32_32x32x4_2b_f16),
    fused<F16In, F16In, 16, 4>(Opcode::v_mfma_f32_16x16x4_4b_f16),
    fused<F16In, F16In, 4, 4>(Opcode::v_mfma_f32_4x4x4_16b_f16),
    fused<F16In, F16In, 32, 8>(Opcode::v_mfma_f32_32x32x8_f16),
    fused<F16In, F16In, 16, 16>(Opcode::v_mfma_f32_16x16x16_f16),
    fused<Bf16In, Bf16In, 32, 4>(Opcode::v_mfma_f32_32x32x4_2b_bf16),
    fused<Bf16In, Bf16In, 16, 4>(Opcode::v_mfma_f32_16x16x4_4b_bf16),
    fused<Bf16In, Bf16In, 4, 4>(Opcode::v_mfma_f32_4x4x4_16b_bf16),
    fused<Bf16In, Bf16In, 32, 8>(Opcode::v_mfma_f32_32x32x8_bf16),
    fused<Bf16In, Bf16In, 16, 16>(Opcode::v_mfma_f32_16x16x16_bf16),
    fused<Bf8In, Bf8In, 16, 32>(Opcode::v_mfma_f32_16x16x32_bf8_bf8),
    fused<Bf8In, Fp8In, 16, 32>(Opcode::v_mfma_f32_16x16x32_bf8_fp8),
    fused<Fp8In, Bf8In, 16, 32>(Opcode::v_mfma_f32_16x16x32_fp8_bf8),
    fused<Fp8In, Fp8In, 16, 32>(Opcode::v_mfma_f32_16x16x32_fp8_fp8),
    fused<Bf8In, Bf8In, 32, 16>(Opcode::v_mfma_f32_32x32x16_bf8_bf8),
    fused<Bf8In, Fp8In, 32, 16>(Opcode::v_mfma_f32_32x32x16_bf8_fp8),
    fused<Fp8In, Bf8In, 32, 16>(Opcode::v_mfma_f32_32x32x16_fp8_bf8),
    fused<Fp8In, Fp8In, 32, 16>(Opcode::v_mfma_f32_32x32x16_fp8_fp8),
    sparse<F16In, F16In, 16, 32>(Opcode::v_smfmac_f32_16x16x32_f16),
    sparse<F16In, F16In, 32, 16>(Opcode::v_smfmac_f32_32x32x16_f16),
    sparse<Bf16In, Bf16In, 16, 32>(Opcode::v_smfmac_f32_16x16x32_bf16),
    sparse<Bf16In, Bf16In, 32, 16>(Opcode::v_smfmac_f32_32x32x16_bf16),
    sparse<I8In, I8In, 16, 64>(Opcode::v_smfmac_i32_16x16x64_i8),
    sparse<I8In, I8In, 32, 32>(Opcode::v_smfmac_i32_32x32x32_i8),
    sparse<Bf8In, Bf8In, 16, 64>(Opcode::v_smfmac_f32_16x16x64_bf8_bf8),
    sparse<Bf8In, Fp8In, 16, 64>(Opcode::v_smfmac_f32_16x16x64_bf8_fp8),
    sparse<Fp8In, Bf8In, 16, 64>(Opcode::v_smfmac_f32_16x16x64_fp8_bf8),
    sparse<Fp8In, Fp8In, 16, 64>(Opcode::v_smfmac_f32_16x16x64_fp8_fp8),
    sparse<Bf8In, Bf8In, 32, 32>(Opcode::v_smfmac_f32_32x32x32_bf8_bf8),
    sparse<Bf8In, Fp8In, 32, 32>(Opcode::v_smfmac_f32_32x32x32_bf8_fp8),
    sparse<Fp8In, Bf8In, 32, 32>(Opcode::v_smfmac_f32_32x32x32_fp8_bf8),
    sparse<Fp8In, Fp8In, 32, 32>(Opcode::v_smfmac_f32_32x32x32_fp8_fp8),
};

}  // namespace

std::span<const Entry> matrix_fused_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector
