// Matrix instructions: every entry of A, B, C and D is at the place that AMD's matrix instruction
// calculator prints (matrix/layouts.txt), and D is the product of the matrices plus C. Inputs are
// integers whose products and sums are exact in every type, so the order of additions does not
// matter.
#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "gfx9/decode/encoding.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/matrix/layouts.hpp"
#include "test/vgpu/gfx9/vector/vector_machine.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i64 = int64_t;

bool is_matrix(std::string_view name) {
  return name.starts_with("v_mfma") || name.starts_with("v_smfmac");
}

// 8-bit floats of small integers; their exponents have a bias of 8 and 16.
u64 encoded8(unsigned fraction_bits, int bias, i64 value) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::abs(static_cast<double>(value)), &exponent) * 2 - 1;
  return (value < 0 ? 0x80u : 0u) | static_cast<u64>(exponent - 1 + bias) << fraction_bits |
         static_cast<u64>(std::ldexp(fraction, static_cast<int>(fraction_bits)));
}

u64 encoded(Element element, i64 value) {
  const auto number = static_cast<double>(value);
  switch (element) {
    case Element::fp8:
      return encoded8(3, 8, value);
    case Element::bf8:
      return encoded8(2, 16, value);
    case Element::f64:
      return bits(number);
    case Element::f32:
    case Element::xf32:
      return bits(static_cast<float>(number));
    case Element::f16:
      return nearest_f16(number);
    case Element::bf16:
      return bits(static_cast<float>(number)) >> 16;
    case Element::i32:
    case Element::i8:
      break;
  }
  return static_cast<u64>(value);
}

i64 decoded8(unsigned fraction_bits, int bias, u64 bits) {
  const auto magnitude = static_cast<unsigned>(bits & 0x7f);
  if (magnitude == 0) return 0;
  const double fraction =
      1 + std::ldexp(magnitude & ((1u << fraction_bits) - 1), -static_cast<int>(fraction_bits));
  const auto value =
      static_cast<i64>(std::ldexp(fraction, static_cast<int>(magnitude >> fraction_bits) - bias));
  return (bits & 0x80) != 0 ? -value : value;
}

i64 decoded(Element element, u64 bits) {
  switch (element) {
    case Element::fp8:
      return decoded8(3, 8, bits);
    case Element::bf8:
      return decoded8(2, 16, bits);
    case Element::f64:
      return static_cast<i64>(f64(bits));
    case Element::f32:
    case Element::xf32:
      return static_cast<i64>(f32(bits));
    case Element::f16:
      return static_cast<i64>(f16(bits));
    case Element::bf16:
      return static_cast<i64>(f32(bits << 16));
    case Element::i32:
      return static_cast<int32_t>(bits);
    case Element::i8:
      break;
  }
  return static_cast<int8_t>(bits);
}

// The largest magnitudes for which an input is exact in its type, and 16 products and an addend in
// the type of the result.
i64 largest_input(Element in) {
  switch (in) {
    case Element::f64:
      return i64{1} << 24;
    case Element::f32:
    case Element::xf32:
      return 1000;
    case Element::fp8:
      return 16;
    case Element::bf8:
      return 8;
    default:
      return 127;
  }
}
i64 largest_addend(Element out) { return out == Element::f64 ? i64{1} << 51 : 1'000'000; }

// The k of entry A[i][k / 4 * 4 + part] that a sparse instruction stores as entry `part` of a pair.
unsigned stored_k(const std::vector<Vgpr>& before, const Layout& indices, unsigned i, unsigned pair,
                  unsigned part) {
  const Place place = indices.at(0, i, 4 * pair);
  return 4 * pair + (before[kC + place.reg].lane[place.lane] >> (place.bit + 2 * part) & 3);
}

// Fills registers with integers of the type, a random one in every place that can hold one.
void fill(VectorMachine& m, unsigned first, unsigned registers, Element element, i64 largest) {
  const unsigned width = width_bits(element);
  const auto random = [&] {
    const u64 wide = static_cast<u64>(m.random()) << 32 | m.random();
    return static_cast<i64>(wide % static_cast<u64>(2 * largest + 1)) - largest;
  };
  for (unsigned reg = 0; reg < registers; reg += std::max(width / 32, 1u)) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (width == 64) {
        const u64 value = encoded(element, random());
        m.registers[first + reg].lane[lane] = static_cast<u32>(value);
        m.registers[first + reg + 1].lane[lane] = static_cast<u32>(value >> 32);
        continue;
      }
      u64 word = 0;
      for (unsigned bit = 0; bit < 32; bit += width)
        word |= (encoded(element, random()) & ((u64{1} << width) - 1)) << bit;
      m.registers[first + reg].lane[lane] = static_cast<u32>(word);
    }
  }
}

i64 read(const std::vector<Vgpr>& registers, unsigned first, Element element, Place place) {
  return decoded(element, entry_bits(registers, first, element, place));
}

// Effects of the instruction that the tables do not contain; empty if there are none.
std::string difference(const MatrixInstruction& what, const Layout& a, const Layout& b,
                       const Layout& c, const Layout* indices, Files files, VectorMachine& m) {
  const unsigned first_a = kA + kFileRegisters * files.a, first_b = kB + kFileRegisters * files.b;
  const unsigned first_d = kD + kFileRegisters * files.cd;
  const unsigned first_c = what.sparse ? first_d : kC + kFileRegisters * files.cd;
  fill(m, first_a, what.registers[0], what.a_type, largest_input(what.a_type));
  fill(m, first_b, what.registers[1], what.b_type, largest_input(what.b_type));
  fill(m, first_c, what.registers[2], what.out, largest_addend(what.out));
  if (what.sparse) {
    for (u32& lane : m.registers[kC].lane) lane = m.random();
  }
  const std::vector<Vgpr> before = m.registers;
  const Layout& modified = indices != nullptr ? *indices : a;
  const Instruction in =
      decode(encode(what, files, modified.cbsz, modified.abid, b.blgp), what.target);
  if (mnemonic(in.opcode) != what.name) return "decoded as " + std::string(mnemonic(in.opcode));
  m.run(in);

  std::ostringstream text;
  unsigned wrong = 0;
  std::set<std::pair<unsigned, unsigned>> written;
  for (unsigned block = 0; block < what.blocks; ++block) {
    for (unsigned i = 0; i < what.m; ++i) {
      for (unsigned j = 0; j < what.n; ++j) {
        const auto negate = [](i64 value, bool negated) { return negated ? -value : value; };
        i64 expected = negate(read(before, first_c, what.out, c.at(block, i, j)), c.negated);
        for (unsigned s = 0; s < (what.sparse ? what.k / 2 : what.k); ++s) {
          const unsigned k = what.sparse ? stored_k(before, *indices, i, s / 2, s % 2) : s;
          Place place = a.at(block, i, what.sparse ? s / 2 * 4 : k);
          if (what.sparse) place.bit += s % 2 * width_bits(what.a_type);
          expected += negate(read(before, first_a, what.a_type, place), a.negated) *
                      negate(read(before, first_b, what.b_type, b.at(block, k, j)), b.negated);
        }
        const Place place = what.d[0].at(block, i, j);
        for (unsigned part = 0; part < std::max(width_bits(what.out) / 32, 1u); ++part)
          written.emplace(first_d + place.reg + part, place.lane);
        const i64 got = read(m.registers, first_d, what.out, place);
        if (got == expected || wrong++ != 0) continue;
        text << "D[" << i << "][" << j << "] of block " << block << " is in register " << place.reg
             << " lane " << place.lane << ": got " << got << ", expected " << expected << "; ";
      }
    }
  }
  if (wrong != 0) text << wrong << " entries of D differ; ";
  if (written.size() != what.registers[3] * kLanes)
    text << "the table does not have every lane of D; ";
  unsigned touched = 0;
  for (unsigned reg = 0; reg < m.registers.size(); ++reg) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      touched +=
          m.registers[reg].lane[lane] != before[reg].lane[lane] && !written.contains({reg, lane});
    }
  }
  if (touched != 0) text << touched << " lanes outside of D were written; ";
  return text.str();
}

// The combinations of register files that the target allows.
std::vector<Files> file_choices(const MatrixInstruction& what) {
  const auto choices = [](const std::string& names) {
    std::vector<unsigned> result;
    for (const char file : names) result.push_back(file == 'a');
    return result;
  };
  std::vector<Files> result;
  for (const unsigned a : choices(what.files[0]))
    for (const unsigned b : choices(what.files[1]))
      for (const unsigned cd : choices(what.files[2])) result.push_back({a, b, cd});
  return result;
}

}  // namespace

TEST_CASE("every matrix opcode has a layout, and every layout has an opcode") {
  const std::vector<MatrixInstruction> layouts = read_layouts();
  std::set<std::string> executed;
  for (unsigned t = 0; t < kTargetCount; ++t) {
    const auto target = static_cast<Target>(t);
    std::set<std::string> ours, theirs;
    for (const Encoding& e : encodings()) {
      if (is_matrix(mnemonic(e.opcode)) && (e.targets >> static_cast<unsigned>(target) & 1) != 0)
        ours.emplace(mnemonic(e.opcode));
    }
    for (const MatrixInstruction& each : layouts) {
      if (each.target == target) theirs.insert(each.name);
    }
    CAPTURE(static_cast<unsigned>(target));
    CHECK(ours == theirs);
    executed.insert(theirs.begin(), theirs.end());
  }
  std::set<std::string> named;
  for (size_t i = 1; i < kOpcodeCount; ++i) {
    const std::string_view name = mnemonic(static_cast<Opcode>(i));
    if (!is_matrix(name)) continue;
    named.emplace(name);
    CAPTURE(name);
    CHECK(vector::table()[i].own != nullptr);
  }
  CHECK(named == executed);
}

TEST_CASE("matrix entries are in the registers, lanes and bits that AMD's calculator prints") {
  const std::vector<MatrixInstruction> layouts = read_layouts();
  const vector::Simd best = vector::simd_in_use();
  for (const vector::Simd simd : simd_targets()) {
    vector::use_simd(simd);
    for (const MatrixInstruction& what : layouts) {
      VectorMachine m(static_cast<u32>(what.name.size() * what.k));
      m.wave.set_exec(0x5a5a);  // does not apply
      const std::vector<Files> files = file_choices(what);
      unsigned runs = 0;
      // Every setting of the modifiers, with the register files in turn; without modifiers, all
      // files.
      const bool negates = what.c.size() > 1;
      std::vector<const Layout*> indices{nullptr};
      if (what.sparse) {
        indices.clear();
        for (const Layout& each : what.indices) indices.push_back(&each);
      }
      for (size_t setting = 0; setting < what.a.size() * what.b.size() * indices.size();
           ++setting) {
        const Layout& a = what.a[setting / indices.size() / what.b.size()];
        const Layout& b = what.b[setting / indices.size() % what.b.size()];
        const Layout* const index = indices[setting % indices.size()];
        if (negates && a.blgp != b.blgp) continue;
        const Layout& c = what.sparse ? what.d[0] : what.c[negates ? b.blgp : 0];
        {
          const bool plain = a.cbsz == 0 && b.blgp == 0;
          for (unsigned i = 0; i < (plain ? files.size() : 1); ++i) {
            const Files use = files[runs++ % files.size()];
            const std::string text = difference(what, a, b, c, index, use, m);
            if (text.empty()) continue;
            CAPTURE(name(simd), name(what.target), what.name, a.cbsz, a.abid, b.blgp, use.a, use.b,
                    use.cd);
            CHECK(text == "");
          }
        }
      }
      CHECK(runs >= files.size());
    }
  }
  vector::use_simd(best);
}

// The calculator refuses CBSZ above log2(blocks), ABID outside the group of 2^CBSZ blocks, CBSZ and
// ABID with one block, BLGP with float64 before gfx942, and BLGP with gfx942's instructions of one
// block on inputs of 16 bits and less.
TEST_CASE("a modifier that AMD does not define for a matrix instruction is not supported") {
  for (const MatrixInstruction& what : read_layouts()) {
    std::set<std::pair<unsigned, unsigned>> broadcasts;
    std::set<unsigned> patterns;
    for (const Layout& a : what.sparse ? what.indices : what.a) broadcasts.emplace(a.cbsz, a.abid);
    // "Setting CBSZ!=0 will cause the ABID field to be ignored", says the calculator's README.
    for (unsigned i = 0; what.sparse && i < 7 * 16; ++i) broadcasts.emplace(1 + i / 16, i % 16);
    for (const Layout& b : what.b) patterns.insert(b.blgp);
    std::vector<std::string> wrong;
    unsigned supported = 0;
    for (unsigned cbsz = 0; cbsz < 8; ++cbsz) {
      for (unsigned abid = 0; abid < 16; ++abid) {
        for (unsigned blgp = 0; blgp < 8; ++blgp) {
          Instruction in =
              decode(encode(what, {.a = 0, .b = 0, .cd = 1}, cbsz, abid, blgp), what.target);
          const bool defined = broadcasts.contains({cbsz, abid}) && patterns.contains(blgp);
          const bool translated = translate_vector(in) != nullptr;
          supported += translated;
          if (translated == defined) continue;
          wrong.push_back("cbsz " + std::to_string(cbsz) + " abid " + std::to_string(abid) +
                          " blgp " + std::to_string(blgp) +
                          (defined ? " is defined" : " is not defined"));
        }
      }
    }
    CAPTURE(name(what.target), what.name, wrong.empty() ? "" : wrong.front());
    CHECK(wrong.size() == 0);
    CHECK(supported == broadcasts.size() * patterns.size());
  }
}

TEST_CASE("a matrix instruction may overwrite its addend, and accepts a constant for it") {
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
  for (unsigned lane = 0; lane < kLanes; ++lane)
    CHECK(f32(m.registers[256 + 8].lane[lane]) == 13.0f);
}

}  // namespace uptempo::vgpu::gfx9::test
