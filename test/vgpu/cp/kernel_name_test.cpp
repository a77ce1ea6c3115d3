// Kernel names from GPU memory: an image as the linker creates it and the loader copies it.
#include <elf.h>

#include <cstring>

#include "cp/kernel/kernel_name.hpp"
#include "device_fixture.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;

namespace {

// Descriptors of two kernels at 0xa00 and 0xa40, names in .dynstr, tables at the addresses of
// PT_DYNAMIC.
struct Image {
  alignas(4096) std::byte bytes[3 * 4096] = {};

  template <typename T>
  void put(size_t offset, const T& value) {
    std::memcpy(bytes + offset, &value, sizeof value);
  }

  Image() {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_machine = 224;
    header.e_phoff = 64;
    header.e_phnum = 2;
    put(0, header);
    Elf64_Phdr segment{};
    segment.p_type = PT_LOAD;
    put(64, segment);
    segment.p_type = PT_DYNAMIC;
    segment.p_vaddr = 0x2000;
    segment.p_memsz = 4 * sizeof(Elf64_Dyn);
    put(64 + sizeof segment, segment);
    const char strings[] = "\0sort.kd\0other.kd";
    std::memcpy(bytes + 0x300, strings, sizeof strings);
    Elf64_Sym symbol{};
    symbol.st_name = 1;
    symbol.st_value = 0xa00;
    put(0x400 + sizeof symbol, symbol);
    symbol.st_name = 9;
    symbol.st_value = 0xa40;
    put(0x400 + 2 * sizeof symbol, symbol);
    const uint32_t hash[2] = {1, 3};
    put(0x500, hash);
    const Elf64_Dyn entries[] = {
        {DT_SYMTAB, {0x400}}, {DT_STRTAB, {0x300}}, {DT_HASH, {0x500}}, {DT_NULL, {0}}};
    put(0x2000, entries);
  }
};

struct LoadedImage {
  Image image;
  AddressSpace memory;
  AddressSpace::Reader reader{memory};
  static constexpr GpuAddress kBase = 0x7000'0000;

  explicit LoadedImage(size_t pages = 3) {
    Mapping mapping;
    mapping.begin = kBase;
    mapping.end = kBase + pages * 4096;
    mapping.host = image.bytes;
    memory.map(mapping);
    reader.enter();
  }
  ~LoadedImage() { reader.leave(); }
};

}  // namespace

TEST_CASE("a kernel's name is the dynamic symbol at its descriptor") {
  LoadedImage loaded;
  CHECK(kernel_name(loaded.reader, LoadedImage::kBase + 0xa00) == "sort.kd");
  CHECK(kernel_name(loaded.reader, LoadedImage::kBase + 0xa40) == "other.kd");
}

TEST_CASE("control characters of a name become spaces, and no other byte changes") {
  LoadedImage loaded;
  std::memcpy(loaded.image.bytes + 0x301, "s\x1b\t\x7f\"k\xff", 7);
  CHECK(kernel_name(loaded.reader, LoadedImage::kBase + 0xa00) == "s   \"k\xff");
}

TEST_CASE("if no symbol is found, the name is the address") {
  LoadedImage loaded;
  CHECK(kernel_name(loaded.reader, LoadedImage::kBase + 0xa80) == "0x70000a80");
  CHECK(kernel_name(loaded.reader, 0x1234) == "0x1234");
}

TEST_CASE("a truncated or corrupt image is handled") {
  SECTION("the dynamic section is not mapped") {
    LoadedImage loaded(1);
    CHECK(kernel_name(loaded.reader, LoadedImage::kBase + 0xa00) == "0x70000a00");
  }
  SECTION("the tables point outside") {
    LoadedImage loaded;
    for (size_t offset = 0; offset < 0x30; offset += 8) {
      const uint64_t wild = 0xffff'ffff'ffff'0000 + offset;
      loaded.image.put(0x2000 + 8, wild);
      loaded.image.put(0x2000 + 24, wild);
      CHECK(kernel_name(loaded.reader, LoadedImage::kBase + 0xa00) == "0x70000a00");
    }
  }
  SECTION("a string that never ends") {
    LoadedImage loaded;
    std::memset(loaded.image.bytes + 0x2100, 'x', 0xf00);
    const uint64_t strings = 0x2100;
    loaded.image.put(0x2000 + 24, strings);
    CHECK(kernel_name(loaded.reader, LoadedImage::kBase + 0xa00) == "0x70000a00");
  }
}
