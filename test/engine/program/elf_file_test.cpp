// The checks of a code object's tables: one field of a good file changes, and the error names it.
// device_damaged_code_test.cpp has ROCr as the judge.
#include <uptempo/program/elf_file.hpp>

#include <elf.h>
#include <uptempo/kernels/bitonic_sort.hpp>

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <uptempo/program/loaded_kernel.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/program/code_object_bytes.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;

namespace {

using uptempo::test::at;
using uptempo::test::contains;
using uptempo::test::elf_for;
using uptempo::test::error_of;

// A code object whose tables a test changes.
class Elf {
 public:
  Elf() : bytes(elf_for("gfx90a")) {}

  Elf64_Ehdr header() const { return at<Elf64_Ehdr>(bytes, 0); }
  template <class T>
  Elf& change(size_t offset, const std::function<void(T&)>& how) {
    T value = at<T>(bytes, offset);
    how(value);
    std::memcpy(bytes.data() + offset, &value, sizeof value);
    return *this;
  }

  size_t section(std::string_view name) const {
    const auto names = at<Elf64_Shdr>(bytes, header().e_shoff + header().e_shstrndx * 64u);
    for (size_t i = 1; i < header().e_shnum; ++i) {
      const size_t offset = header().e_shoff + i * sizeof(Elf64_Shdr);
      const uint64_t text = names.sh_offset + at<Elf64_Shdr>(bytes, offset).sh_name;
      if (reinterpret_cast<const char*>(bytes.data() + text) == name) return offset;
    }
    FAIL("no section " << name);
    return 0;
  }
  // The loaded segment of that number.
  size_t segment(unsigned number) const {
    for (size_t i = 0; i < header().e_phnum; ++i) {
      const size_t offset = header().e_phoff + i * sizeof(Elf64_Phdr);
      if (at<Elf64_Phdr>(bytes, offset).p_type == PT_LOAD && number-- == 0) return offset;
    }
    FAIL("no such segment");
    return 0;
  }
  // A symbol of .symtab.
  size_t symbol(std::string_view name) const {
    const auto table = at<Elf64_Shdr>(bytes, section(".symtab"));
    const auto names = at<Elf64_Shdr>(bytes, section(".strtab"));
    for (uint64_t offset = table.sh_offset; offset < table.sh_offset + table.sh_size;
         offset += 24) {
      const uint64_t text = names.sh_offset + at<Elf64_Sym>(bytes, offset).st_name;
      if (reinterpret_cast<const char*>(bytes.data() + text) == name) return offset;
    }
    FAIL("no symbol " << name);
    return 0;
  }
  Elf& in_section(std::string_view name, const std::function<void(Elf64_Shdr&)>& how) {
    return change(section(name), how);
  }
  Elf& in_segment(unsigned number, const std::function<void(Elf64_Phdr&)>& how) {
    return change(segment(number), how);
  }
  Elf& in_symbol(std::string_view name, const std::function<void(Elf64_Sym&)>& how) {
    return change(symbol(name), how);
  }

  std::string refusal() const {
    // A copy, so that AddressSanitizer detects a read past the end.
    const std::vector<std::byte> copy = bytes;
    return error_of<Error>([&] { (void)read_code_object(copy); });
  }

  std::vector<std::byte> bytes;
};

}  // namespace

TEST_CASE("a code object as the linker wrote it has its symbols and metadata", "[elf]") {
  const Elf elf;
  CHECK(elf.refusal() == "no error");
  const detail::ElfFile file = detail::check_elf_file(elf.bytes);
  REQUIRE(file.find("spin.kd") != nullptr);
  CHECK(file.find("spin.kd")->st_size == 64);
  CHECK(file.find("no such symbol") == nullptr);
  CHECK(file.metadata.has_value());
  CHECK(file.bytes_at(0, 4).size() == 4);
  CHECK(std::memcmp(file.bytes_at(0, 4).data(), ELFMAG, 4) == 0);
  CHECK(file.bytes_at(file.segments.back().p_vaddr + file.segments.back().p_memsz, 1).empty());
}

TEST_CASE("a header of another format is refused", "[elf]") {
  const auto refusal = [](const std::function<void(Elf64_Ehdr&)>& how) {
    return Elf().change(0, how).refusal();
  };
  CHECK(contains(refusal([](auto& h) { h.e_version = 2; }), "ELF version 2, not 1"));
  CHECK(contains(refusal([](auto& h) { h.e_shentsize = 63; }), "section headers of 63 bytes"));
  CHECK(contains(refusal([](auto& h) { h.e_phentsize = 57; }), "program headers of 57 bytes"));
  CHECK(contains(refusal([](auto& h) { h.e_shnum = 0; }), "0 section headers"));
  CHECK(contains(refusal([](auto& h) { h.e_shnum = 0xff00; }), "65280 section headers"));
  CHECK(contains(refusal([](auto& h) { h.e_phnum = 0; }), "no loaded segment"));
  CHECK(contains(refusal([](auto& h) { h.e_phnum = PN_XNUM; }), "65535 program headers"));
  CHECK(contains(refusal([](auto& h) { h.e_shoff = UINT64_MAX; }), "cut off before its tables"));
  CHECK(contains(refusal([](auto& h) { h.e_phoff += 1 << 20; }), "cut off before its tables"));
  CHECK(contains(refusal([](auto& h) { h.e_shstrndx = 0; }), "which is no string table"));
  CHECK(contains(refusal([](auto& h) { h.e_shstrndx = 0xffff; }), "which is no string table"));
}

TEST_CASE("segments outside of the file, in disorder or without sections are refused", "[elf]") {
  const auto refusal = [](unsigned number, const std::function<void(Elf64_Phdr&)>& how) {
    return Elf().in_segment(number, how).refusal();
  };
  CHECK(contains(refusal(1, [](auto& s) { s.p_offset = UINT64_MAX; }), "which segment"));
  CHECK(contains(refusal(1, [](auto& s) { s.p_filesz = UINT64_MAX; }), "which segment"));
  CHECK(contains(refusal(1, [](auto& s) { s.p_memsz = 1; }), "in the file and 1 in memory"));
  CHECK(contains(refusal(0, [](auto& s) { s.p_vaddr = 0x1000; }), "at address 0x1000"));
  CHECK(contains(refusal(2, [](auto& s) { s.p_vaddr = 8; }), "at address 0x8"));
  CHECK(contains(refusal(2, [](auto& s) { s.p_vaddr = UINT64_MAX - 1; }), "address space"));
  CHECK(contains(refusal(2, [](auto& s) { s.p_vaddr += 8; }), "which no segment loads there"));
  CHECK(contains(refusal(2, [](auto& s) { s.p_memsz = uint64_t{4} << 30; }), "of which sections"));
  CHECK(contains(refusal(1, [](auto& s) { s.p_type = PT_NULL; }), "which no segment loads there"));
}

TEST_CASE("sections outside of the file, of a wrong type or without a name are refused", "[elf]") {
  const auto refusal = [](std::string_view name, const std::function<void(Elf64_Shdr&)>& how) {
    return Elf().in_section(name, how).refusal();
  };
  CHECK(contains(refusal(".note", [](auto& s) { s.sh_offset = UINT64_MAX; }), "which section 1"));
  CHECK(contains(refusal(".note", [](auto& s) { s.sh_size = UINT64_MAX; }), "which section 1"));
  CHECK(contains(refusal(".text", [](auto& s) { s.sh_type = SHT_NULL; }), "only section 0"));
  CHECK(contains(refusal(".text", [](auto& s) { s.sh_name = 1 << 20; }), "outside of the names"));
  CHECK(contains(refusal(".text", [](auto& s) { s.sh_addr += 4; }), "'.text' at address"));
  CHECK(contains(refusal(".note", [](auto& s) { s.sh_type = SHT_PROGBITS; }), "'.note' of type 1"));
  CHECK(contains(refusal(".symtab", [](auto& s) { s.sh_type = SHT_HASH; }), "'.symtab' of type 5"));
  CHECK(contains(refusal(".strtab", [](auto& s) { s.sh_type = SHT_NOTE; }), "'.strtab' of type 7"));
  CHECK(contains(refusal(".symtab", [](auto& s) { s.sh_link = 1000; }), "no string table"));
  CHECK(contains(refusal(".dynsym", [](auto& s) { s.sh_link = 1; }), "no string table"));
  CHECK(contains(refusal(".symtab", [](auto& s) { s.sh_size -= 1; }), "no whole symbols"));
  CHECK(contains(refusal(".strtab", [](auto& s) { s.sh_size -= 1; }), "does not end with a zero"));
  CHECK(contains(refusal(".shstrtab", [](auto& s) { s.sh_size = 0; }), "does not end with a zero"));
  CHECK(contains(refusal(".note", [](auto& s) { s.sh_size -= 4; }), "a note that is cut off"));
  CHECK(contains(refusal(".comment", [](auto& s) { s.sh_type = SHT_RELA; }), "no symbol table"));
}

TEST_CASE("symbols without a section, a name or memory are refused", "[elf]") {
  const auto refusal = [](const std::function<void(Elf64_Sym&)>& how) {
    return Elf().in_symbol("spin.kd", how).refusal();
  };
  CHECK(contains(refusal([](auto& s) { s.st_name = UINT32_MAX; }), "outside of the names"));
  CHECK(contains(refusal([](auto& s) { s.st_shndx = 0; }), "in section 0, which does not exist"));
  CHECK(contains(refusal([](auto& s) { s.st_shndx = SHN_ABS; }), "in section 65521"));
  CHECK(contains(refusal([](auto& s) { s.st_value = UINT64_MAX; }), "bytes of memory"));
  CHECK(contains(refusal([](auto& s) { s.st_value = 0; }), "not inside of its section"));
  CHECK(contains(refusal([](auto& s) { s.st_info = STB_GLOBAL << 4 | STT_LOOS; }), "version 2"));
  CHECK(contains(refusal([](auto& s) { s.st_value += 64; }), "at addresses"));
  // ROCr uses no local symbol.
  CHECK(refusal([](auto& s) { s.st_info = STT_OBJECT, s.st_shndx = SHN_ABS; }) == "no error");
}

// LLVM AMDGPU User Guide, "Kernel Descriptor": bytes 16 to 23 are the distance of the code, which
// is aligned to 256.
TEST_CASE("a kernel whose descriptor leads to no code is refused", "[elf]") {
  const auto refusal = [](uint64_t distance) {
    Elf elf;
    const detail::ElfFile file = detail::check_elf_file(elf.bytes);
    const auto descriptor = file.bytes_at(file.find("spin.kd")->st_value, 64);
    const auto offset = static_cast<size_t>(descriptor.data() - elf.bytes.data());
    elf.change<uint64_t>(offset + 16, [=](uint64_t& value) { value += distance; });
    const CodeObject object = read_code_object(elf.bytes);
    KernelMetadata kernel;
    kernel.symbol = "spin.kd";
    return error_of<Error>([&] { (void)kernel_start(object, kernel); });
  };
  CHECK(refusal(0) == "no error");
  CHECK(contains(refusal(4), "not aligned to 256 bytes or has no code"));
  CHECK(contains(refusal(1 << 20), "not aligned to 256 bytes or has no code"));
  CHECK(contains(refusal(~uint64_t{0xffff}), "not aligned to 256 bytes or has no code"));
}
