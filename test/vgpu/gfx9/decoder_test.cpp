#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "gfx9/decode/encoding.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/code_objects.hpp"
#include "test/vgpu/gfx9/decoder_oracle.hpp"

using namespace uptempo::vgpu::gfx9;
using namespace uptempo::vgpu::gfx9::test;

namespace {

Instruction decoded(std::initializer_list<uint32_t> words, Target target = Target::gfx90a) {
  return decode(std::span(words.begin(), words.size()), target);
}

// The differences of one comparison, with the text of the first few.
class Report {
 public:
  void add(std::string what) {
    if (++count_ <= 10) text_ += what + "\n";
  }
  size_t count() const { return count_; }
  const std::string& text() const { return text_; }

 private:
  size_t count_ = 0;
  std::string text_;
};

constexpr size_t kWhole = std::numeric_limits<size_t>::max();

// Compares the instructions in the first `window` words of each `stride`. A window may begin inside
// an instruction, because the decoders must agree on any words.
void sweep(DecoderOracle& oracle, const Code& code, size_t window, size_t stride, Report& report) {
  const std::span<const uint32_t> words = code.words;
  for (size_t start = 0;
       start<words.size(); start = stride> words.size() ? words.size() : start + stride) {
    const size_t end = window < words.size() - start ? start + window : words.size();
    for (size_t at = start; at < end;) {
      unsigned size_bytes = 4;
      const auto difference =
          oracle.compare(words.subspan(at, std::min<size_t>(2, words.size() - at)), size_bytes);
      if (difference) report.add(code.object + " word " + std::to_string(at) + ": " + *difference);
      at += size_bytes / 4;
    }
  }
}

struct Totals {
  size_t objects = 0;
  uint64_t agreed = 0;
};

Totals sweep_file(const std::string& file, size_t window, size_t stride, Report& report) {
  std::map<Target, DecoderOracle> oracles;
  Totals totals;
  for_each_code(file, [&](const Code& code) {
    if (std::ranges::count(llvm_targets(), code.target) == 0) return;
    DecoderOracle& oracle = oracles.try_emplace(code.target, code.target).first->second;
    sweep(oracle, code, window, stride, report);
    ++totals.objects;
  });
  for (const auto& [target, oracle] : oracles) totals.agreed += oracle.agreed;
  return totals;
}

// All of ROCm's prebuilt libraries that this machine has; at least one.
std::vector<std::string> prebuilt_libraries() {
  std::vector<std::string> found = rocm_libraries(kSmallLibraries);
  REQUIRE_FALSE(found.empty());
  for (std::string& sparse : rocm_libraries(kSparseLibraries)) found.push_back(std::move(sparse));
  return found;
}

// Two words that resemble an instruction of `family` more often than random words: fields that must
// be 0 often are 0.
std::array<uint32_t, 2> random_words(std::mt19937_64& random) {
  const uint64_t r = random();
  std::array<uint32_t, 2> w{static_cast<uint32_t>(r), static_cast<uint32_t>(r >> 32)};
  if (random() & 1) w[1] &= static_cast<uint32_t>(random());
  switch (random() % 8) {
    case 0:
      w[0] = (w[0] & ~0x800001ffu) | 249u;
      break;  // SDWA
    case 1:
      w[0] = (w[0] & ~0x800001ffu) | 250u;
      break;  // DPP
    case 2:   // VOP3 without modifiers and with fewer sources
      w[0] = (w[0] & 0x03ff00ffu) | 0xd0000000u;
      w[1] &= (r & 1) != 0 ? 0x07ffffffu : 0x0003ffffu;
      break;
    case 3:  // DS with fewer registers
      w[0] = (w[0] & 0x03ffffffu) | 0xd8000000u;
      w[1] &= (r & 1) != 0 ? 0xff00ffffu : 0x00ff00ffu;
      break;
    case 4:  // FLAT, GLOBAL and SCRATCH without a scalar base
      w[0] = (w[0] & 0x03ffdfffu) | 0xdc000000u;
      w[1] |= 0x007f0000u;
      if ((w[0] >> 14 & 3) == 0) w[1] &= ~0x007f0000u;
      break;
    default:
      break;
  }
  return w;
}

}  // namespace

TEST_CASE("decoded fields equal those of the encoding") {
  SECTION("VOP2 with a literal") {
    const Instruction in = decoded({0x020402ff, 0x12345678});  // v_add_f32 v2, 0x12345678, v1
    CHECK(in.opcode == Opcode::v_add_f32);
    CHECK(in.format == Format::vop2);
    CHECK(in.size_bytes == 8);
    CHECK(in.dst == 2);
    CHECK(in.src[0] == kLiteral);
    CHECK(in.src[1] == kFirstVgpr + 1);
    CHECK(in.literal == 0x12345678);
  }
  SECTION("the lane mask of v_cndmask is VCC in its short form, as in the long one") {
    CHECK(decoded({0x00040300}).src[2] == 106);
    CHECK(decoded({0xd1000002, 0x01aa0300}).src[2] == 106);
    CHECK(decoded({0xd1000002, 0x00120300}).src[2] == 4);
  }
  SECTION("v_cndmask takes abs and neg under DPP and SDWA, but no sext") {
    const Instruction dpp = decoded({0x012e68fa, 0x58eed36c});
    CHECK(dpp.opcode == Opcode::v_cndmask_b32);
    CHECK(dpp.abs == 3);
    CHECK(dpp.neg == 2);
    const Instruction sdwa = decoded({0x00a20af9, 0x06160600});
    CHECK(sdwa.opcode == Opcode::v_cndmask_b32);
    CHECK(sdwa.neg == 1);
    CHECK(decoded({0x00a20af9, 0x060e0600}).opcode == Opcode::invalid);
  }
  SECTION("the carries of the short forms are VCC") {
    const Instruction in = decoded({0x38040300});  // v_addc_co_u32 v2, vcc, v0, v1, vcc
    CHECK(in.sdst == 106);
    CHECK(in.src[2] == 106);
  }
  SECTION("the result of a compare is VCC, or any pair in the long and SDWA forms") {
    CHECK(decoded({0x7d840300}).dst == 106);  // v_cmp_eq_i32
    CHECK(decoded({0xd0c2000a, 0x00020300}).dst == 10);
    CHECK(decoded({0x7d8402f9, 0x06068a00}).dst == 10);
  }
  SECTION("branch offsets count dwords, also backwards") {
    CHECK(static_cast<int32_t>(decoded({0xbf82fffe}).literal) == -2);
  }
  SECTION("GLOBAL offsets are signed") { CHECK(decoded({0xdc509fff, 0x007f0002}).offset == -1); }
  SECTION("a truncated instruction is invalid") {
    CHECK(decoded({0x020402ff}).opcode == Opcode::invalid);  // literal missing
    CHECK(decoded({0xd1c10002}).opcode == Opcode::invalid);  // VOP3 has two words
    CHECK(decode({}, Target::gfx90a).opcode == Opcode::invalid);
  }
  SECTION("the targets differ") {
    CHECK(decoded({0x76040300}, Target::gfx906).opcode == Opcode::v_fmac_f32);
    CHECK(decoded({0x76040300}, Target::gfx900).opcode == Opcode::invalid);
    CHECK(decoded({0xd3a00002, 0x04020300}, Target::gfx900).opcode == Opcode::v_mad_mix_f32);
    CHECK(decoded({0xd3a00002, 0x04020300}, Target::gfx906).opcode == Opcode::v_fma_mix_f32);
  }
  SECTION("an invalid instruction is four bytes long") {
    CHECK(decoded({0xffffffff, 0xffffffff}).size_bytes == 4);
  }
}

TEST_CASE(
    "no two entries of the encoding table claim the same bits, and every opcode has an encoding") {
  std::set<Opcode> encoded;
  std::set<std::tuple<Family, unsigned, unsigned>> taken;
  for (const Encoding& e : encodings()) {
    encoded.insert(e.opcode);
    for (unsigned t = 0; t < kTargetCount; ++t) {
      if (!(e.targets >> t & 1)) continue;
      CAPTURE(mnemonic(e.opcode), t);
      CHECK(taken.insert({e.family, e.number, t}).second);
      CHECK(find_encoding(e.family, e.number, static_cast<Target>(t)) == &e);
    }
  }
  CHECK(encoded.size() == kOpcodeCount - 1);
}

TEST_CASE("random words decode as LLVM decodes them, refusals included") {
  const char* wanted = std::getenv("UPTEMPO_RANDOM_WORDS");
  const long count = wanted ? std::atol(wanted) : 500'000;  // for each target
  for (const Target target : llvm_targets()) {
    DecoderOracle oracle(target);
    std::mt19937_64 random(20'240'601);
    Report report;
    for (long i = 0; i < count; ++i) {
      const auto words = random_words(random);
      unsigned size_bytes = 0;
      if (auto difference = oracle.compare(words, size_bytes)) report.add(std::move(*difference));
    }
    INFO(report.text());
    CHECK(report.count() == 0);
    CHECK(oracle.agreed > static_cast<uint64_t>(count) / 4);
    fmt::print("{}: {} words agree, {} refused by both, {} excluded\n", cpu_name(target),
               oracle.agreed, oracle.both_refuse, oracle.excluded);
  }
}

// This program contains our kernels.
TEST_CASE("our kernels decode as LLVM decodes them") {
  Report report;
  const Totals totals = sweep_file("/proc/self/exe", kWhole, kWhole, report);
  INFO(report.text());
  CHECK(report.count() == 0);
  CHECK(totals.objects >= 4);
  CHECK(totals.agreed > 1000);
}

TEST_CASE("samples of ROCm's prebuilt libraries decode as LLVM decodes them") {
  for (const std::string& library : prebuilt_libraries()) {
    Report report;
    const Totals totals = sweep_file(library, 512, 8'192, report);
    INFO(library << "\n" << report.text());
    CHECK(report.count() == 0);
    CHECK(totals.agreed > 500);  // rocFFT has 596, rocRAND over 10,000
  }
}

TEST_CASE("ROCm's prebuilt libraries decode completely as LLVM decodes them", "[.long]") {
  for (const std::string& library : prebuilt_libraries()) {
    Report report;
    const Totals totals = sweep_file(library, kWhole, kWhole, report);
    fmt::print("{}: {} code objects, {} instructions agree\n", library, totals.objects,
               totals.agreed);
    INFO(library << "\n" << report.text());
    CHECK(report.count() == 0);
    CHECK(totals.agreed > 100'000);
  }
}
