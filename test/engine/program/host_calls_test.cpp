// Code that can call the host, by words of its instructions.
#include <uptempo/program/loaded_kernel.hpp>

#include <cstdint>
#include <cstring>
#include <vector>

#include <uptempo/program/elf_file.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/program/code_object_bytes.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using uptempo::test::at;
using uptempo::test::contains;
using uptempo::test::elf_for;
using uptempo::test::error_of;
using uptempo::test::target;

// AMD, "Vega ISA" and "RDNA3 ISA", SOPP: s_sendmsg is opcode 16, from RDNA3 on 54; message 1 is
// MSG_INTERRUPT.
TEST_CASE("code without an interrupt of the host cannot call it", "[program]") {
  const auto calls = [](const char* processor, uint32_t word, bool in_code) {
    std::vector<std::byte> elf = elf_for("gfx90a");
    for (unsigned i = 0; i < at<uint16_t>(elf, 56); ++i) {                   // e_phnum
      const size_t segment = at<uint64_t>(elf, 32) + i * 56;                 // e_phoff
      if (at<uint32_t>(elf, segment) != 1) continue;                         // PT_LOAD
      if (((at<uint32_t>(elf, segment + 4) & 1) != 0) != in_code) continue;  // PF_X
      const size_t end = at<uint64_t>(elf, segment + 8) + at<uint64_t>(elf, segment + 32);
      std::memcpy(elf.data() + end / 4 * 4 - 4, &word, sizeof word);
      break;
    }
    CodeObject object = read_code_object(elf);
    object.target = target(processor);
    return can_call_host(object);
  };
  CHECK_FALSE(calls("gfx90a", 0xbf810000, true));
  CHECK(calls("gfx90a", 0xbf900001, true));
  CHECK(calls("gfx803", 0xbf900001, true));
  CHECK(calls("gfx1030", 0xbf900001, true));
  CHECK(calls("gfx9-generic", 0xbf900001, true));
  CHECK(calls("gfx1100", 0xbfb60001, true));
  CHECK(calls("gfx1201", 0xbfb60001, true));
  CHECK(calls("gfx11-generic", 0xbfb60001, true));
  CHECK_FALSE(calls("gfx1100", 0xbf900001, true));
  CHECK_FALSE(calls("gfx90a", 0xbfb60001, true));
  CHECK_FALSE(calls("gfx90a", 0xbf900002, true));
  CHECK_FALSE(calls("gfx90a", 0xbf900001, false));
}

// llvm-mc 19: s_setpc_b64 s[30:31], s_swappc_b64 s[30:31], s[16:17], s_call_b64 s[30:31], 4, and
// s_sendmsg sendmsg(MSG_INTERRUPT).
TEST_CASE("a kernel calls the host itself, or by another function, or not at all", "[program]") {
  struct Words {
    const char* processor;
    uint32_t set_pc, swap_pc, call, interrupt;
  };
  const Words all[] = {
      {"gfx803", 0xbe801d1e, 0xbe9e1e10, 0, 0xbf900001},
      {"gfx90a", 0xbe801d1e, 0xbe9e1e10, 0xba9e0004, 0xbf900001},
      {"gfx1030", 0xbe80201e, 0xbe9e2110, 0xbb1e0004, 0xbf900001},
      {"gfx1100", 0xbe80481e, 0xbe9e4910, 0xba1e0004, 0xbfb60001},
      {"gfx1201", 0xbe80481e, 0xbe9e4910, 0xba1e0004, 0xbfb60001},
  };
  static constexpr uint32_t kNothing = 0xbf800000;  // s_nop 0
  // Makes `word` the only instruction of spin(). combine() has the message if `others_call`.
  const auto calls = [](const Words& words, uint32_t word, bool others_call) {
    std::vector<std::byte> elf = elf_for("gfx90a");
    const auto put = [&](const char* kernel, uint32_t instruction) {
      const detail::ElfFile file = detail::check_elf_file(elf);
      const Elf64_Sym* const symbol = file.find(kernel);
      REQUIRE(symbol);
      for (unsigned i = 0; i < at<uint16_t>(elf, 56); ++i) {
        const size_t segment = at<uint64_t>(elf, 32) + i * 56;
        const uint64_t address = at<uint64_t>(elf, segment + 16);
        if (at<uint32_t>(elf, segment) != 1 || symbol->st_value < address ||
            symbol->st_value >= address + at<uint64_t>(elf, segment + 32))
          continue;
        const uint64_t offset = at<uint64_t>(elf, segment + 8) + symbol->st_value - address;
        for (size_t into = 0; into + 4 <= symbol->st_size; into += 4)
          std::memcpy(elf.data() + offset + into, &kNothing, sizeof kNothing);
        std::memcpy(elf.data() + offset, &instruction, sizeof instruction);
        return;
      }
      FAIL("no segment holds " << kernel);
    };
    put("spin", word);
    if (others_call) put("combine", words.interrupt);
    CodeObject object = read_code_object(elf);
    object.target = target(words.processor);
    return can_call_host(object) && can_call_host(object, "spin");
  };
  for (const Words& words : all) {
    CAPTURE(words.processor);
    CHECK(calls(words, words.interrupt, false));
    for (const uint32_t word : {words.set_pc, words.swap_pc, words.call}) {
      if (word == 0) continue;
      CAPTURE(word);
      CHECK(calls(words, word, true));
      CHECK_FALSE(calls(words, word, false));
    }
    CHECK_FALSE(calls(words, kNothing, true));
  }
}

TEST_CASE("a kernel whose code the file does not have may call the host", "[program]") {
  std::vector<std::byte> elf = elf_for("gfx90a");
  CHECK_FALSE(can_call_host(read_code_object(elf), "spin"));
  CHECK(can_call_host(read_code_object(elf), "no_such_kernel"));
  const Elf64_Sym symbol = *detail::check_elf_file(elf).find("spin");
  // All of its entries in symbol tables.
  for (const uint64_t size : {uint64_t{1} << 20, UINT64_MAX}) {
    CAPTURE(size);
    unsigned changed = 0;
    for (size_t at_byte = 0; at_byte + sizeof symbol <= elf.size(); ++at_byte) {
      if (at<uint64_t>(elf, at_byte + 8) != symbol.st_value ||
          at<uint16_t>(elf, at_byte + 6) != symbol.st_shndx ||
          at<uint8_t>(elf, at_byte + 4) != 0x12)
        continue;  // st_info: global function
      std::memcpy(elf.data() + at_byte + 16, &size, sizeof size);
      ++changed;
    }
    CHECK(changed == 2);
    CHECK(can_call_host(read_code_object(elf), "spin"));
  }
}
