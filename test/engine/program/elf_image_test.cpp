// The loaded part of a code object, without section headers, against the ELF file that it was
// loaded from.
#include <elf.h>
#include <uptempo/kernels/bitonic_sort.hpp>

#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <uptempo/program/elf_file.hpp>
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

// As ROCr loads it: each segment at its address, zero elsewhere.
std::vector<std::byte> load(const std::vector<std::byte>& file) {
  std::vector<std::byte> image;
  const auto header = at<Elf64_Ehdr>(file, 0);
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = at<Elf64_Phdr>(file, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_LOAD) continue;
    image.resize(segment.p_vaddr + segment.p_memsz);
    std::memcpy(image.data() + segment.p_vaddr, file.data() + segment.p_offset, segment.p_filesz);
  }
  return image;
}

bool is_equal(std::span<const std::byte> one, std::span<const std::byte> other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size()) == 0;
}

void require_same(const std::vector<std::byte>& file) {
  const std::vector<std::byte> image = load(file);
  const CodeObject loaded = read_loaded_code_object(image);
  const CodeObject whole = read_code_object(file);
  CHECK(loaded.target == whole.target);
  CHECK(loaded.version == whole.version);
  CHECK(is_equal(metadata_note(loaded), metadata_note(whole)));
  CHECK(can_call_host(loaded) == can_call_host(whole));
  const std::vector<KernelMetadata> kernels = program_metadata(whole).kernels;
  CHECK(program_metadata(loaded).kernels.size() == kernels.size());
  REQUIRE_FALSE(kernels.empty());
  for (const KernelMetadata& kernel : kernels) {
    INFO(kernel.name);
    for (const std::string& name : {kernel.name, kernel.symbol}) {
      const Elf64_Sym* const symbol = loaded.elf->find(name);
      REQUIRE(symbol != nullptr);
      CHECK(symbol->st_value == whole.elf->find(name)->st_value);
      CHECK(symbol->st_size == whole.elf->find(name)->st_size);
      CHECK(is_equal(loaded.elf->bytes_at(symbol->st_value, symbol->st_size),
                     whole.elf->bytes_at(symbol->st_value, symbol->st_size)));
    }
    CHECK(can_call_host(loaded, kernel.name) == can_call_host(whole, kernel.name));
    const KernelStart start = kernel_start(loaded, kernel), expected = kernel_start(whole, kernel);
    CHECK(start.packet == expected.packet);
    CHECK(start.private_segment_bytes == expected.private_segment_bytes);
    CHECK(start.hidden_arguments == expected.hidden_arguments);
  }
  // The device may write these.
  for (const Elf64_Phdr& segment : loaded.elf->segments) CHECK((segment.p_flags & PF_W) == 0);
}

// The error of an image of which a test has changed a value at an offset.
template <class T>
std::string refusal(size_t offset, const std::function<void(T&)>& how) {
  std::vector<std::byte> image = load(elf_for("gfx90a"));
  T value = at<T>(image, offset);
  how(value);
  std::memcpy(image.data() + offset, &value, sizeof value);
  return error_of<Error>([&] { (void)read_loaded_code_object(image); });
}

// The offset of the program header of that type.
size_t header_of(uint32_t type) {
  const std::vector<std::byte> image = load(elf_for("gfx90a"));
  const auto header = at<Elf64_Ehdr>(image, 0);
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const size_t offset = header.e_phoff + i * sizeof(Elf64_Phdr);
    if (at<Elf64_Phdr>(image, offset).p_type == type) return offset;
  }
  FAIL("no such segment");
  return 0;
}

// The offset of the dynamic entry of that tag.
size_t entry_of(int64_t tag) {
  const std::vector<std::byte> image = load(elf_for("gfx90a"));
  size_t offset = at<Elf64_Phdr>(image, header_of(PT_DYNAMIC)).p_vaddr;
  while (at<Elf64_Dyn>(image, offset).d_tag != tag) offset += sizeof(Elf64_Dyn);
  return offset;
}

std::string segment_refusal(uint32_t type, const std::function<void(Elf64_Phdr&)>& how) {
  return refusal<Elf64_Phdr>(header_of(type), how);
}

std::string entry_refusal(int64_t tag, const std::function<void(Elf64_Dyn&)>& how) {
  return refusal<Elf64_Dyn>(entry_of(tag), how);
}

}  // namespace

TEST_CASE("a loaded code object has the metadata, symbols and code of its file", "[elf]") {
  for (const char* const processor : {"gfx900", "gfx906", "gfx90a"}) {
    INFO(processor);
    require_same(elf_for(processor));
  }
  const CodeObject sort =
      select_code_object(builtin_kernels::bitonic_sort(), test::target("gfx90a"));
  require_same({sort.bytes.begin(), sort.bytes.end()});
}

TEST_CASE("a loaded code object with damaged tables is refused", "[elf]") {
  CHECK(segment_refusal(PT_LOAD, [](auto&) {}) == "no error");
  const auto header = [](const std::function<void(Elf64_Ehdr&)>& how) {
    return refusal<Elf64_Ehdr>(0, how);
  };
  CHECK(contains(header([](auto& h) { h.e_ident[0] = 0; }), "not an ELF file"));
  CHECK(contains(header([](auto& h) { h.e_phoff = UINT64_MAX; }), "without program headers"));
  CHECK(contains(header([](auto& h) { h.e_phentsize = 57; }), "without program headers"));
  CHECK(contains(header([](auto& h) { h.e_phnum = PN_XNUM; }), "without program headers"));
  CHECK(contains(header([](auto& h) { h.e_phnum = 0; }), "no dynamic segment"));
  CHECK(contains(segment_refusal(PT_LOAD, [](auto& s) { s.p_offset = 64; }), "offset 0x40"));
  CHECK(contains(segment_refusal(PT_LOAD, [](auto& s) { s.p_vaddr = 64; }), "address 0x40"));
  CHECK(contains(segment_refusal(PT_LOAD, [](auto& s) { s.p_filesz = UINT64_MAX; }), "a segment"));
  CHECK(contains(segment_refusal(PT_NOTE, [](auto& s) { s.p_filesz -= 4; }), "cut off"));
  CHECK(contains(segment_refusal(PT_NOTE, [](auto& s) { s.p_vaddr = 1 << 30; }), "notes at"));
  CHECK(contains(segment_refusal(PT_DYNAMIC, [](auto& s) { s.p_type = PT_NULL; }), "no dynamic"));
  CHECK(contains(segment_refusal(PT_DYNAMIC, [](auto& s) { s.p_filesz = 0; }), "no dynamic symb"));
  CHECK(contains(entry_refusal(DT_HASH, [](auto& d) { d.d_tag = DT_BIND_NOW; }), "no hash table"));
  CHECK(contains(entry_refusal(DT_HASH, [](auto& d) { d.d_un.d_ptr = ~0ull; }), "the hash table"));
  CHECK(contains(entry_refusal(DT_SYMTAB, [](auto& d) { d.d_un.d_ptr = 1 << 30; }), "symbols at"));
  CHECK(contains(entry_refusal(DT_STRTAB, [](auto& d) { d.d_un.d_ptr = 1 << 30; }), "names of"));
  CHECK(contains(entry_refusal(DT_STRSZ, [](auto& d) { d.d_un.d_val -= 1; }), "end with a zero"));
  CHECK(contains(entry_refusal(DT_STRSZ, [](auto& d) { d.d_un.d_val = 1; }), "outside of the"));
}

TEST_CASE("any damaged image is read or refused, without an access outside of it", "[elf]") {
  const std::vector<std::byte> image = load(elf_for("gfx90a"));
  std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same in each run
  for (int round = 0; round < 3000; ++round) {
    // A copy of its own, so that AddressSanitizer detects a read past the end.
    std::vector<std::byte> damaged = image;
    for (int i = 0; i < 4; ++i)
      damaged[random() % (round % 2 == 0 ? 0x400 : damaged.size())] = std::byte(random());
    if (round % 16 == 0) damaged.resize(random() % damaged.size());
    try {
      const CodeObject object = read_loaded_code_object(damaged);
      for (const auto& [name, symbol] : object.elf->symbols)
        (void)object.elf->bytes_at(symbol.st_value, symbol.st_size);
      (void)program_metadata(object);
    } catch (const std::runtime_error&) {
      // refused
    }
  }
  CHECK_NOTHROW(read_loaded_code_object(image));
}
