// Counts how much of the instruction set is decoded, executed and checked against the oracle, and
// checks that our kernels contain only executable instructions.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "gfx9/decode/encoding.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/code_objects.hpp"
#include "test/vgpu/gfx9/semantics/semantics.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

bool executes(Instruction in, Target target) {
  switch (in.format) {
    case Format::sop1:
    case Format::sop2:
    case Format::sopk:
    case Format::sopc:
    case Format::sopp:
    case Format::smem:
      return translate_scalar(in, MemoryPolicy::direct) != nullptr;
    case Format::vop1:
    case Format::vop2:
    case Format::vopc:
    case Format::vop3:
    case Format::vop3p:
      return translate_vector(in) != nullptr;
    case Format::ds:
    case Format::flat:
    case Format::mubuf:
    case Format::mtbuf:
      return translate_memory(in, target, MemoryPolicy::direct) != nullptr;
    case Format::other:
      break;
  }
  return false;
}

uint32_t source_code(Operand kind) {
  switch (kind) {
    case Operand::none:
    case Operand::s1:
    case Operand::s2:
    case Operand::mask:
    case Operand::lane:
      return 0;
    default:
      return kFirstVgpr;
  }
}

// An instance of a table entry with the simplest operands: register 0 everywhere.
std::array<uint32_t, 2> plain_words(const Encoding& e) {
  const uint32_t n = e.number, src0 = source_code(e.src[0]);
  const uint32_t sources = src0 | source_code(e.src[1]) << 9 | source_code(e.src[2]) << 18;
  switch (e.family) {
    case Family::sop1:
      return {0xbe800000 | n << 8, 0};
    case Family::sop2:
      return {0x80000000 | n << 23, 0};
    case Family::sopk:
      return {0xb0000000 | n << 23, 0};
    case Family::sopc:
      return {0xbf000000 | n << 16, 0};
    case Family::sopp:
      return {0xbf800000 | n << 16, 0};
    case Family::smem:
      return {0xc0000000 | n << 18 | (e.src[0] == Operand::none ? 0u : 0x20000u), 0};
    case Family::vop1:
      return {0x7e000000 | n << 9 | src0, 0};
    case Family::vop2:
      return {n << 25 | src0, 0};
    case Family::vopc:
      return {0x7c000000 | n << 17 | src0, 0};
    case Family::vop3:
      return {0xd0000000 | n << 16, sources};
    case Family::vop3p:
      return {0xd0000000 | n << 16,
              sources | ((e.modifiers.used >> 8 & 1) != 0 ? 0x18000000u : 0u)};
    case Family::ds:
      return {0xd8000000 | n << 17, 0};
    case Family::flat:
      return {0xdc000000 | n << 18, 0};
    case Family::scratch:
      return {0xdc004000 | n << 18, 0x7f0000};
    case Family::global:
      return {0xdc008000 | n << 18, 0x7f0000};
    case Family::mubuf:
      return {0xe0000000 | n << 18, 0x80000000};
    case Family::mtbuf:
      return {0xe8000000 | n << 15, 0x80000000};
    default:
      return {0, 0};
  }
}

std::string prefix(std::string_view mnemonic) {
  return std::string(mnemonic.substr(0, mnemonic.find('_') + 1));
}

// The instructions of a code object that cannot be executed, and how often they occur.
void find_missing(const Code& code, std::map<std::string, size_t>& missing, size_t& seen) {
  const std::span<const uint32_t> words = code.words;
  for (size_t at = 0; at < words.size();) {
    const Instruction in = decode(words.subspan(at), code.target);
    if (!executes(in, code.target))
      ++missing[fmt::format("{} ({})", mnemonic(in.opcode), cpu_name(code.target))];
    ++seen;
    at += in.size_bytes / 4;
  }
}

std::string listing(const std::map<std::string, size_t>& missing) {
  std::string text;
  for (const auto& [name, count] : missing) text += fmt::format("{} x{}\n", name, count);
  return text;
}

}  // namespace

// This program contains our kernels.
TEST_CASE("every instruction of our kernels, for every target, is executed") {
  std::map<std::string, size_t> missing;
  size_t seen = 0;
  for_each_code("/proc/self/exe", [&](const Code& code) { find_missing(code, missing, seen); });
  INFO(listing(missing));
  CHECK(missing.empty());
  CHECK(seen > 1000);
}

TEST_CASE("every instruction of one of ROCm's prebuilt libraries is executed") {
  REQUIRE_FALSE(rocm_libraries(kSmallLibraries).empty());
  for (const std::string& library : rocm_libraries(kSmallLibraries)) {
    std::map<std::string, size_t> missing;
    size_t seen = 0;
    for_each_code(library, [&](const Code& code) { find_missing(code, missing, seen); });
    INFO(listing(missing));
    CHECK(missing.empty());
  }
}

TEST_CASE("every instruction of ROCm's prebuilt sparse kernels is executed", "[.long]") {
  REQUIRE_FALSE(rocm_libraries(kSparseLibraries).empty());
  for (const std::string& library : rocm_libraries(kSparseLibraries)) {
    std::map<std::string, size_t> missing;
    size_t seen = 0;
    for_each_code(library, [&](const Code& code) { find_missing(code, missing, seen); });
    fmt::print("{}: {} instructions, {} kinds not executed\n{}", library, seen, missing.size(),
               listing(missing));
    CHECK(missing.empty());
  }
}

TEST_CASE("the opcodes of gfx90a are counted: decoded, executed and checked against the oracle") {
  struct Count {
    std::set<Opcode> decoded, executed, checked;
    std::string missing;
  };
  std::map<std::string, Count> families;
  for (const Encoding& e : encodings()) {
    if (!(e.targets >> static_cast<unsigned>(Target::gfx90a) & 1)) continue;
    Count& count = families[prefix(mnemonic(e.opcode))];
    if (!count.decoded.insert(e.opcode).second) continue;
    const auto words = plain_words(e);
    const Instruction in = decode(words, Target::gfx90a);
    if (in.opcode == e.opcode && executes(in, Target::gfx90a)) {
      count.executed.insert(e.opcode);
    } else {
      count.missing += fmt::format(" {}", mnemonic(e.opcode));
    }
    if (checked_opcodes().contains(e.opcode)) count.checked.insert(e.opcode);
  }
  for (const auto& [name, count] : families) {
    fmt::print("{:<9} {:3} decoded, {:3} executed, {:3} held against the oracle; not executed:{}\n",
               name, count.decoded.size(), count.executed.size(), count.checked.size(),
               count.missing.empty() ? " none" : count.missing);
  }
  CHECK(families.at("v_").executed.size() > 400);
  CHECK(families.at("s_").executed.size() > 150);
}

}  // namespace uptempo::vgpu::gfx9::test
