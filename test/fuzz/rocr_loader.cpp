#include "test/fuzz/rocr_loader.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "test/fuzz/fuzz.hpp"

namespace uptempo::fuzz {
namespace {

using Span = std::span<const std::byte>;

template <class T>
T value_at(Span bytes, uint64_t offset, std::string_view what) {
  require(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset, what);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

struct Descriptor {
  std::byte bytes[64];
};

struct Section {
  Elf64_Shdr header;
  Span data;  // as libelf returns it: empty if the header is wrong
};

class RocrLoader {
 public:
  explicit RocrLoader(Span file) : image_(file) {
    header_ = value_at<Elf64_Ehdr>(file, 0, "a header");
    image_ = file.first(std::min<uint64_t>(size_of_image(), file.size()));
    require(image_.size() == size_of_image(), "ROCr's size of the file is not larger");
  }

  void load() {
    read_sections();
    load_segments();
    for (const Section& section : sections_) {
      if (name_of(section) == ".note" || section.header.sh_type == SHT_NOTE) read_notes(section);
      if (name_of(section) == ".symtab" || section.header.sh_type == SHT_SYMTAB)
        load_symbols(section);
    }
    for (const Section& section : sections_)
      if (section.header.sh_type == SHT_RELA) apply(section);
  }

 private:
  uint64_t size_of_image() const {
    uint64_t highest = header_.e_shoff;
    uint64_t size = highest + uint64_t{header_.e_shentsize} * header_.e_shnum;
    for (unsigned i = 0; i < header_.e_shnum; ++i) {
      const auto section = value_at<Elf64_Shdr>(image_, header_.e_shoff + i * sizeof(Elf64_Shdr),
                                                "a section header is in the file");
      if (section.sh_offset <= highest) continue;
      highest = section.sh_offset;
      size = highest + (section.sh_type == SHT_NOBITS ? 0 : section.sh_size);
    }
    return size;
  }

  void read_sections() {
    for (unsigned i = 0; i < header_.e_shnum; ++i) {
      Section section{.header = value_at<Elf64_Shdr>(
                          image_, header_.e_shoff + i * sizeof(Elf64_Shdr), "a section header"),
                      .data = {}};
      const Elf64_Shdr& shdr = section.header;
      require(i == 0 || shdr.sh_type != SHT_NULL, "ROCr calls no section that is null");
      if (shdr.sh_type != SHT_NOBITS && shdr.sh_offset <= image_.size() &&
          shdr.sh_size <= image_.size() - shdr.sh_offset)
        section.data = image_.subspan(shdr.sh_offset, shdr.sh_size);
      sections_.push_back(section);
    }
    for (const Section& section : sections_) {
      (void)name_of(section);
      const uint32_t type = section.header.sh_type;
      if (name_of(section) == ".symtab") require(type == SHT_SYMTAB, ".symtab is cast to one");
      if (name_of(section) == ".strtab") require(type == SHT_STRTAB, ".strtab is cast to one");
      if (name_of(section) == ".note") require(type == SHT_NOTE, ".note is cast to one");
      if (type == SHT_SYMTAB || type == SHT_DYNSYM)
        require(section_at(section.header.sh_link).header.sh_type == SHT_STRTAB,
                "names of symbols are in a string table");
      if (type == SHT_RELA) {
        (void)section_at(section.header.sh_info);
        const uint32_t symbols = section_at(section.header.sh_link).header.sh_type;
        require(symbols == SHT_SYMTAB || symbols == SHT_DYNSYM, "relocations have symbols");
        require(section.data.size() == section.header.sh_size &&
                    section.data.size() % sizeof(Elf64_Rela) == 0,
                "libelf returns the relocations");
      }
    }
  }

  const Section& section_at(uint64_t index) const {
    require(index < sections_.size(), "a section that is referred to exists");
    return sections_[index];
  }

  std::string_view string_at(const Section& table, uint64_t offset) const {
    require(offset < table.data.size(), "a string is inside of its table");
    const std::string_view text(reinterpret_cast<const char*>(table.data.data()),
                                table.data.size());
    const size_t end = text.find('\0', offset);
    require(end != std::string_view::npos, "a string ends inside of its table");
    return text.substr(offset, end - offset);
  }

  std::string_view name_of(const Section& section) const {
    if (&section == sections_.data()) return {};  // ROCr has no object for it
    return string_at(section_at(header_.e_shstrndx), section.header.sh_name);
  }

  void load_segments() {
    std::vector<Elf64_Phdr> segments;
    for (unsigned i = 0; i < header_.e_phnum; ++i) {
      const auto segment = value_at<Elf64_Phdr>(image_, header_.e_phoff + i * sizeof(Elf64_Phdr),
                                                "a program header is in the file");
      if (segment.p_type == PT_LOAD) segments.push_back(segment);
    }
    if (segments.empty()) return;  // an error of ROCr
    first_ = segments.front().p_vaddr;
    size_ = segments.back().p_vaddr + segments.back().p_memsz;
    require(size_ > 0, "ROCr allocates something");
    require(is_loaded(0), "ROCr asks for address 0");
    for (const Elf64_Phdr& segment : segments) {
      if (segment.p_filesz == 0) continue;
      require(
          segment.p_offset <= image_.size() && segment.p_filesz <= image_.size() - segment.p_offset,
          "a segment is copied from the file");
      write(segment.p_vaddr, segment.p_filesz);
    }
  }

  bool is_loaded(uint64_t address) const { return first_ <= address && address < first_ + size_; }

  void write(uint64_t address, uint64_t size) const {
    require(is_loaded(address) && size <= size_ - (address - first_), "ROCr writes its memory");
  }

  void read_notes(const Section& section) const {
    for (uint64_t at = 0; at < section.data.size();) {
      const auto note = value_at<Elf64_Nhdr>(section.data, at, "a note is in its section");
      const uint64_t name_size = (uint64_t{note.n_namesz} + 3) & ~uint64_t{3};
      const uint64_t size =
          sizeof note + name_size + ((uint64_t{note.n_descsz} + 3) & ~uint64_t{3});
      require(size <= section.data.size() - at, "a note ends in its section");
      at += size;
    }
  }

  void load_symbols(const Section& table) const {
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.data.size(); at += sizeof(Elf64_Sym)) {
      const auto symbol = value_at<Elf64_Sym>(table.data, at, "a symbol");
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      require(type != STT_LOOS, "a kernel of version 2, whose section is patched");
      if (type != STT_OBJECT || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
      const std::string_view name = string_at(section_at(table.header.sh_link), symbol.st_name);
      require(symbol.st_shndx != SHN_UNDEF, "a variable has a section");
      const Section& section = section_at(symbol.st_shndx);
      const bool is_in_memory = is_loaded(section.header.sh_addr);
      if (is_in_memory) require(is_loaded(symbol.st_value), "a variable is in memory");
      require(section.header.sh_addralign < UINT32_MAX, "an alignment has 32 bits");
      if (!name.ends_with(".kd")) continue;
      require(is_in_memory, "a kernel has an address");
      require(section.header.sh_type != SHT_NOBITS, "a kernel descriptor is in the file");
      (void)value_at<Descriptor>(section.data, symbol.st_value - section.header.sh_addr,
                                 "a kernel descriptor is in its section");
    }
  }

  void apply(const Section& table) const {
    const Section& target = section_at(table.header.sh_info);
    const bool is_dynamic = table.header.sh_info == 0;
    if (!is_dynamic && (target.header.sh_flags & SHF_ALLOC) == 0) return;
    const Section& symbols = section_at(table.header.sh_link);
    for (uint64_t at = 0; at < table.data.size(); at += sizeof(Elf64_Rela)) {
      const auto relocation = value_at<Elf64_Rela>(table.data, at, "a relocation");
      const auto symbol =
          value_at<Elf64_Sym>(symbols.data, ELF64_R_SYM(relocation.r_info) * sizeof(Elf64_Sym),
                              "a relocation's symbol exists");
      (void)string_at(section_at(symbols.header.sh_link), symbol.st_name);
      const auto type = ELF64_R_TYPE(relocation.r_info);
      const unsigned symbol_type = ELF64_ST_TYPE(symbol.st_info);
      if (!is_dynamic) {
        require(type == 0 || type > 5, "ROCr applies no relocation of a linker");
        continue;
      }
      if (symbol_type == STT_OBJECT || symbol_type == STT_FUNC)
        require(is_loaded(symbol.st_value), "a relocation's symbol is in memory");
      if (type == 1 || type == 2) write(relocation.r_offset, 4);
      if (type == 3 || type == 13) write(relocation.r_offset, 8);
    }
  }

  Span image_;
  Elf64_Ehdr header_;
  std::vector<Section> sections_;
  uint64_t first_ = 0, size_ = 0;  // addresses of the memory
};

}  // namespace

void load_as_rocr(std::span<const std::byte> file) { RocrLoader(file).load(); }

}  // namespace uptempo::fuzz
