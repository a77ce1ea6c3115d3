#include <uptempo/program/elf_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {
namespace {

constexpr uint32_t kNoteMetadata = 32;  // LLVM AMDGPU User Guide, "Note Records"
constexpr uint64_t kDescriptorBytes = 64;
// LLVM, ELFRelocs/AMDGPU.def: R_AMDGPU_ABS32_LO and R_AMDGPU_ABS32_HI. ROCr's amd_hsa_elf.h: the
// last relocation and the kernel's symbol type of older code objects.
constexpr uint32_t kAbsolute32Low = 1, kAbsolute32High = 2, kInitImage = 5;
constexpr unsigned kKernelOfVersion2 = STT_LOOS;

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> found, Args&&... args) {
  throw Error({.code = ErrorCode::program,
               .status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
               .call = "code object",
               .asked = "an AMDGPU ELF file or a clang offload bundle of them",
               .found = "a code object that ROCr cannot load: " +
                        fmt::format(found, std::forward<Args>(args)...),
               .remedy = "pass the whole file, as the linker wrote it"});
}

// True if [offset, offset + size) is inside of [0, limit).
bool is_inside(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

// Enters the first note with metadata, unless there is one already. Returns false if a note is cut
// off.
bool read_notes(std::span<const std::byte> notes,
                std::optional<std::span<const std::byte>>& metadata) {
  for (uint64_t at = 0; at < notes.size();) {
    const auto note = read_at<Elf64_Nhdr>(notes, at);
    at += sizeof(Elf64_Nhdr);
    const auto padded = [](uint32_t size) { return (uint64_t{size} + 3) / 4 * 4; };
    if (!note || !is_inside(at, padded(note->n_namesz) + padded(note->n_descsz), notes.size()))
      return false;
    const std::string_view name(reinterpret_cast<const char*>(notes.data() + at), note->n_namesz);
    at += padded(note->n_namesz);
    if (note->n_type == kNoteMetadata && name.starts_with("AMDGPU") && !metadata)
      metadata = notes.subspan(at, note->n_descsz);
    at += padded(note->n_descsz);
  }
  return true;
}

class Checker {
 public:
  explicit Checker(std::span<const std::byte> bytes) { file_.bytes = bytes; }

  ElfFile check() && {
    read_header();
    read_segments();
    read_sections();
    for (size_t i = 0; i < sections_.size(); ++i) check_name(i);
    for (const Elf64_Shdr& section : sections_) check_memory(section);
    check_end_of_segments();
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& section = sections_[i];
      if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM) check_symbols(section);
      if (section.sh_type == SHT_RELA) check_relocations(section);
      if (section.sh_type == SHT_NOTE) check_notes(section);
    }
    return std::move(file_);
  }

 private:
  std::span<const std::byte> contents(const Elf64_Shdr& section) const {
    return file_.bytes.subspan(section.sh_offset, section.sh_size);
  }

  // A string of a table that has passed check_strings(); the offset is inside of it.
  std::string_view string_in(const Elf64_Shdr& table, uint64_t offset) const {
    return reinterpret_cast<const char*>(contents(table).data() + offset);
  }

  std::string name_of(const Elf64_Shdr& section) const {
    return std::string(string_in(sections_[header_.e_shstrndx], section.sh_name));
  }

  void read_header() {
    const auto header = read_at<Elf64_Ehdr>(file_.bytes, 0);
    if (!header) refuse("{} bytes, cut off in its header", file_.bytes.size());
    header_ = *header;
    if (header_.e_ident[EI_VERSION] != EV_CURRENT || header_.e_version != EV_CURRENT)
      refuse("ELF version {}, not 1", header_.e_version);
    if (header_.e_phentsize != sizeof(Elf64_Phdr) || header_.e_shentsize != sizeof(Elf64_Shdr)) {
      refuse("program headers of {} bytes, not 56, or section headers of {} bytes, not 64",
             header_.e_phentsize, header_.e_shentsize);
    }
    // ROCr has no extended numbering, which these values would ask for.
    if (header_.e_phnum == PN_XNUM || header_.e_shnum == 0 || header_.e_shnum >= SHN_LORESERVE)
      refuse("{} program headers and {} section headers", header_.e_phnum, header_.e_shnum);
    if (!is_inside(header_.e_phoff, uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr),
                   file_.bytes.size()) ||
        !is_inside(header_.e_shoff, uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr),
                   file_.bytes.size()))
      refuse("{} bytes, cut off before its tables end", file_.bytes.size());
  }

  void read_segments() {
    for (size_t i = 0; i < header_.e_phnum; ++i) {
      const auto segment =
          *read_at<Elf64_Phdr>(file_.bytes, header_.e_phoff + i * sizeof(Elf64_Phdr));
      if (!is_inside(segment.p_offset, segment.p_filesz, file_.bytes.size()))
        refuse("{} bytes, which segment {} exceeds", file_.bytes.size(), i);
      if (segment.p_type != PT_LOAD) continue;
      if (segment.p_filesz > segment.p_memsz)
        refuse("segment {} with {} bytes in the file and {} in memory", i, segment.p_filesz,
               segment.p_memsz);
      // ROCr assumes the order of the ELF specification, and a first address of 0 (executable.cpp,
      // LoadSegmentsV2 and getLoadBase).
      if (file_.segments.empty() ? segment.p_vaddr != 0 : segment.p_vaddr < memory_bytes_)
        refuse("segment {} at address 0x{:x}, which is not 0 or after the one before it", i,
               segment.p_vaddr);
      if (!is_inside(segment.p_vaddr, segment.p_memsz, UINT64_MAX))
        refuse("segment {} at the end of the address space", i);
      memory_bytes_ = segment.p_vaddr + segment.p_memsz;
      file_.segments.push_back(segment);
    }
    if (memory_bytes_ == 0) refuse("no loaded segment");
  }

  void read_sections() {
    // ROCr takes the size of the file from this table: the end of the section with the highest
    // offset, or of the table (amd_elf_image.cpp, ElfSize). libelf reads no section behind it.
    uint64_t highest = header_.e_shoff;
    uint64_t end = highest + uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr);
    for (size_t i = 0; i < header_.e_shnum; ++i) {
      const auto section =
          *read_at<Elf64_Shdr>(file_.bytes, header_.e_shoff + i * sizeof(Elf64_Shdr));
      if ((section.sh_type == SHT_NULL) != (i == 0))
        refuse("section {} of type {}: only section 0 has type 0", i, section.sh_type);
      const uint64_t size = section.sh_type == SHT_NOBITS ? 0 : section.sh_size;
      if (!is_inside(section.sh_offset, size, file_.bytes.size()))
        refuse("{} bytes, which section {} exceeds", file_.bytes.size(), i);
      if (section.sh_offset > highest) {
        highest = section.sh_offset;
        end = section.sh_offset + size;
      }
      sections_.push_back(section);
    }
    const auto ends_later = [&](const Elf64_Shdr& section) {
      return section.sh_type != SHT_NOBITS && section.sh_offset + section.sh_size > end;
    };
    if (std::ranges::any_of(sections_, ends_later) ||
        header_.e_phoff + header_.e_phnum * sizeof(Elf64_Phdr) > end ||
        header_.e_shoff + header_.e_shnum * sizeof(Elf64_Shdr) > end)
      refuse("tables outside of the {} bytes that ROCr reads", end);
    check_strings(header_.e_shstrndx, "section names");
  }

  // The table must end with a zero, so that each offset inside of it has a string.
  void check_strings(uint64_t index, std::string_view user) const {
    if (index >= sections_.size() || sections_[index].sh_type != SHT_STRTAB)
      refuse("{} in section {}, which is no string table", user, index);
    const std::span<const std::byte> table = contents(sections_[index]);
    if (table.empty() || table.back() != std::byte{0})
      refuse("{} in string table {}, which does not end with a zero", user, index);
  }

  void check_name(size_t index) const {
    const Elf64_Shdr& section = sections_[index];
    if (section.sh_name >= sections_[header_.e_shstrndx].sh_size)
      refuse("section {} with a name outside of the names", index);
    // ROCr 5.2 finds these by name and does not look at their types, which later releases do.
    struct Known {
      std::string_view name;
      uint32_t type;
    };
    static constexpr Known kKnown[] = {
        {".strtab", SHT_STRTAB}, {".symtab", SHT_SYMTAB}, {".note", SHT_NOTE}};
    const std::string name = name_of(section);
    for (const Known& known : kKnown) {
      if (name == known.name && section.sh_type != known.type)
        refuse("section '{}' of type {}, not {}", name, section.sh_type, known.type);
    }
  }

  // A section that is loaded has its place in a segment.
  void check_memory(const Elf64_Shdr& section) const {
    if ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_size == 0) return;
    const bool has_bytes = section.sh_type != SHT_NOBITS;
    for (const Elf64_Phdr& segment : file_.segments) {
      const uint64_t into = section.sh_addr - segment.p_vaddr;
      if (section.sh_addr >= segment.p_vaddr &&
          is_inside(into, section.sh_size, has_bytes ? segment.p_filesz : segment.p_memsz) &&
          (!has_bytes || section.sh_offset == segment.p_offset + into))
        return;
    }
    refuse("section '{}' at address 0x{:x}, offset 0x{:x}, which no segment loads there",
           name_of(section), section.sh_addr, section.sh_offset);
  }

  // ROCr allocates and clears memory up to the end of the last segment, which must be the end of a
  // section. lld rounds the last segment up to whole pages if it has code.
  void check_end_of_segments() const {
    uint64_t end = 0;
    for (const Elf64_Shdr& section : sections_) {
      if ((section.sh_flags & SHF_ALLOC) != 0 && section.sh_size != 0)
        end = std::max(end, section.sh_addr + section.sh_size);
    }
    constexpr uint64_t kPage = 64 << 10;
    if (memory_bytes_ > (end + kPage - 1) / kPage * kPage)
      refuse("segments of {} bytes, of which sections take {}", memory_bytes_, end);
  }

  void check_symbols(const Elf64_Shdr& table) {
    check_strings(table.sh_link, "symbol names");
    const Elf64_Shdr& names = sections_[table.sh_link];
    if (table.sh_size % sizeof(Elf64_Sym) != 0)
      refuse("a symbol table of {} bytes, which are no whole symbols", table.sh_size);
    for (uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = *read_at<Elf64_Sym>(file_.bytes, table.sh_offset + at);
      if (symbol.st_name >= names.sh_size)
        refuse("symbol {} with a name outside of the names", at / sizeof(Elf64_Sym));
      const std::string_view name = string_in(names, symbol.st_name);
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      if (type == kKernelOfVersion2)
        refuse("symbol '{}' of type {}, a kernel of code object version 2", name, type);
      if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
      if (type == STT_OBJECT) check_variable(symbol, name);
      if (symbol.st_shndx == SHN_UNDEF) continue;
      const auto [same, is_new] = file_.symbols.try_emplace(name, symbol);
      if (!is_new && same->second.st_value != symbol.st_value)
        refuse("symbol '{}' at addresses 0x{:x} and 0x{:x}", name, same->second.st_value,
               symbol.st_value);
    }
  }

  // Variables and kernel descriptors: ROCr asks for their section, and for their address in memory.
  void check_variable(const Elf64_Sym& symbol, std::string_view name) const {
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= sections_.size())
      refuse("variable '{}' in section {}, which does not exist", name, symbol.st_shndx);
    const Elf64_Shdr& section = sections_[symbol.st_shndx];
    if (symbol.st_value >= memory_bytes_)
      refuse("variable '{}' at address 0x{:x} of {} bytes of memory", name, symbol.st_value,
             memory_bytes_);
    if (section.sh_addralign >= UINT32_MAX)
      refuse("variable '{}' in a section with alignment {}", name, section.sh_addralign);
    if (name.ends_with(".kd") &&
        ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_type == SHT_NOBITS ||
         symbol.st_value < section.sh_addr ||
         !is_inside(symbol.st_value - section.sh_addr, kDescriptorBytes, section.sh_size)))
      refuse("kernel descriptor '{}' at address 0x{:x}, which is not inside of its section", name,
             symbol.st_value);
  }

  void check_relocations(const Elf64_Shdr& table) const {
    if (table.sh_link >= sections_.size() || table.sh_info >= sections_.size() ||
        (sections_[table.sh_link].sh_type != SHT_SYMTAB &&
         sections_[table.sh_link].sh_type != SHT_DYNSYM))
      refuse("relocations of section {} by symbols of section {}, which is no symbol table",
             table.sh_info, table.sh_link);
    if (table.sh_size % sizeof(Elf64_Rela) != 0)
      refuse("relocations of {} bytes, which are no whole ones", table.sh_size);
    const Elf64_Shdr& symbols = sections_[table.sh_link];
    for (uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Rela)) {
      const auto relocation = *read_at<Elf64_Rela>(file_.bytes, table.sh_offset + at);
      const uint64_t index = ELF64_R_SYM(relocation.r_info);
      const auto symbol =
          index < symbols.sh_size / sizeof(Elf64_Sym)
              ? read_at<Elf64_Sym>(file_.bytes, symbols.sh_offset + index * sizeof(Elf64_Sym))
              : std::nullopt;
      if (!symbol) refuse("a relocation by symbol {}, which does not exist", index);
      if (table.sh_info == 0) {
        check_dynamic_relocation(relocation, *symbol);
      } else if ((sections_[table.sh_info].sh_flags & SHF_ALLOC) != 0) {
        // Left by the linker (--emit-relocs). ROCr ignores all types but those of version 1, for
        // which it takes the address for an offset into the section.
        const auto type = ELF64_R_TYPE(relocation.r_info);
        if (type >= kAbsolute32Low && type <= kInitImage)
          refuse("a relocation of type {} for the linker, which ROCr would apply again", type);
      }
    }
  }

  // executable.cpp, ApplyDynamicRelocation.
  void check_dynamic_relocation(const Elf64_Rela& relocation, const Elf64_Sym& symbol) const {
    const auto symbol_type = ELF64_ST_TYPE(symbol.st_info);
    if ((symbol_type == STT_OBJECT || symbol_type == STT_FUNC) && symbol.st_value >= memory_bytes_)
      refuse("a relocation by a symbol at address 0x{:x} of {} bytes of memory", symbol.st_value,
             memory_bytes_);
    const auto type = ELF64_R_TYPE(relocation.r_info);
    const uint64_t size = type == kAbsolute32Low || type == kAbsolute32High ? 4 : 8;
    if (!is_inside(relocation.r_offset, size, memory_bytes_))
      refuse("a relocation at address 0x{:x} of {} bytes of memory", relocation.r_offset,
             memory_bytes_);
  }

  // ROCr searches all notes of a section (amd_elf_image.cpp, getNote).
  void check_notes(const Elf64_Shdr& section) {
    if (!read_notes(contents(section), file_.metadata))
      refuse("section '{}' with a note that is cut off", name_of(section));
  }

  ElfFile file_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  uint64_t memory_bytes_ = 0;  // that ROCr allocates: up to the end of the last segment
};

template <class... Args>
[[noreturn]] void refuse_image(fmt::format_string<Args...> found, Args&&... args) {
  throw Error({.code = ErrorCode::program,
               .status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
               .call = "code object",
               .asked = "the tables of a code object that ROCr has loaded",
               .found = fmt::format(found, std::forward<Args>(args)...),
               .remedy = "link it with lld, whose first segment has all tables"});
}

class ImageReader {
 public:
  explicit ImageReader(std::span<const std::byte> image) { file_.bytes = image; }

  ElfFile read() && {
    const auto header = read_at<Elf64_Ehdr>(file_.bytes, 0);
    if (!header || header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == PN_XNUM ||
        !is_inside(header->e_phoff, uint64_t{header->e_phnum} * sizeof(Elf64_Phdr),
                   file_.bytes.size()))
      refuse_image("{} bytes without program headers", file_.bytes.size());
    std::optional<Elf64_Phdr> dynamic;
    for (size_t i = 0; i < header->e_phnum; ++i) {
      const auto segment =
          *read_at<Elf64_Phdr>(file_.bytes, header->e_phoff + i * sizeof(Elf64_Phdr));
      if (segment.p_type == PT_LOAD) add(segment);
      if (segment.p_type == PT_NOTE && !read_notes(contents(segment, "notes"), file_.metadata))
        refuse_image("a note that is cut off");
      if (segment.p_type == PT_DYNAMIC) dynamic = segment;
    }
    if (!dynamic) refuse_image("no dynamic segment");
    read_symbols(contents(*dynamic, "the dynamic segment"));
    return std::move(file_);
  }

 private:
  std::span<const std::byte> bytes(uint64_t address, uint64_t size, std::string_view what) const {
    if (!is_inside(address, size, file_.bytes.size()))
      refuse_image("{} at address 0x{:x} of {} bytes of memory", what, address, file_.bytes.size());
    return file_.bytes.subspan(address, size);
  }

  std::span<const std::byte> contents(const Elf64_Phdr& segment, std::string_view what) const {
    return bytes(segment.p_vaddr, segment.p_filesz, what);
  }

  void add(Elf64_Phdr segment) {
    (void)contents(segment, "a segment");
    // Otherwise the image does not begin with the file's header.
    if (is_first_ && (segment.p_vaddr != 0 || segment.p_offset != 0))
      refuse_image("a first segment at address 0x{:x}, offset 0x{:x}", segment.p_vaddr,
                   segment.p_offset);
    is_first_ = false;
    segment.p_offset = segment.p_vaddr;
    if ((segment.p_flags & PF_W) == 0) file_.segments.push_back(segment);
  }

  // ELF specification, "Dynamic Section" and "Hash Table": the hash table tells the number of
  // symbols.
  void read_symbols(std::span<const std::byte> dynamic) {
    std::optional<uint64_t> symbols, names, names_size, hash;
    for (uint64_t at = 0;; at += sizeof(Elf64_Dyn)) {
      const auto entry = read_at<Elf64_Dyn>(dynamic, at);
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_SYMTAB) symbols = entry->d_un.d_ptr;
      if (entry->d_tag == DT_STRTAB) names = entry->d_un.d_ptr;
      if (entry->d_tag == DT_STRSZ) names_size = entry->d_un.d_val;
      if (entry->d_tag == DT_HASH) hash = entry->d_un.d_ptr;
    }
    if (!symbols || !names || !names_size || !hash)
      refuse_image("no dynamic symbols, or no hash table of them");
    const uint64_t count = *read_at<uint32_t>(bytes(*hash, 8, "the hash table"), 4);
    const auto table = bytes(*symbols, count * sizeof(Elf64_Sym), "the dynamic symbols");
    const auto strings = bytes(*names, *names_size, "the names of dynamic symbols");
    if (strings.empty() || strings.back() != std::byte{0})
      refuse_image("names of dynamic symbols that do not end with a zero");
    for (uint64_t at = 0; at < table.size(); at += sizeof(Elf64_Sym)) {
      const auto symbol = *read_at<Elf64_Sym>(table, at);
      if (symbol.st_name >= strings.size())
        refuse_image("symbol {} with a name outside of the names", at / sizeof(Elf64_Sym));
      if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL || symbol.st_shndx == SHN_UNDEF) continue;
      file_.symbols.try_emplace(reinterpret_cast<const char*>(strings.data() + symbol.st_name),
                                symbol);
    }
  }

  ElfFile file_;
  bool is_first_ = true;
};

}  // namespace

const Elf64_Sym* ElfFile::find(std::string_view name) const {
  const auto found = symbols.find(name);
  return found == symbols.end() ? nullptr : &found->second;
}

std::span<const std::byte> ElfFile::bytes_at(uint64_t address, uint64_t size) const {
  for (const Elf64_Phdr& segment : segments) {
    if (address >= segment.p_vaddr && is_inside(address - segment.p_vaddr, size, segment.p_filesz))
      return bytes.subspan(segment.p_offset + (address - segment.p_vaddr), size);
  }
  return {};
}

ElfFile check_elf_file(std::span<const std::byte> file) { return Checker(file).check(); }

ElfFile read_elf_image(std::span<const std::byte> image) { return ImageReader(image).read(); }

}  // namespace uptempo::detail
