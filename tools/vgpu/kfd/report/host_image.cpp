#include "kfd/report/host_image.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/demangled.hpp"

namespace uptempo::vgpu::kfd {

HostImage::HostImage(const std::string& path, const DwarfLibrary& library) : library_(library) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  struct stat status {};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    size_ = static_cast<size_t>(status.st_size);
    // Private and writable, because libelf takes a pointer to bytes that it may change.
    void* const at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (at != MAP_FAILED) bytes_ = static_cast<char*>(at);
  }
  close(file);
  const auto header = read<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr) ||
      header->e_phentsize != sizeof(Elf64_Phdr))
    return;
  header_ = *header;
  if (!library_.complete()) return;
  elf_ = library_.elf_memory(bytes_, size_);
  if (elf_ != nullptr) dwarf_ = library_.begin(elf_, DwarfLibrary::kRead, nullptr);
}

HostImage::~HostImage() {
  if (dwarf_ != nullptr) library_.end(dwarf_);
  if (elf_ != nullptr) library_.elf_end(elf_);
  if (bytes_ != nullptr) munmap(bytes_, size_);
}

void HostImage::for_each_segment(const std::function<void(const Elf64_Phdr&)>& visit) const {
  for (unsigned i = 0; i < header_.e_phnum; ++i) {
    const auto segment = read<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return;
    if (segment->p_type == PT_LOAD) visit(*segment);
  }
}

std::optional<uint64_t> HostImage::address_of(uint64_t offset) const {
  std::optional<uint64_t> address;
  for_each_segment([&](const Elf64_Phdr& segment) {
    if (!address && offset >= segment.p_offset && offset - segment.p_offset < segment.p_filesz)
      address = segment.p_vaddr + (offset - segment.p_offset);
  });
  return address;
}

std::string_view HostImage::bytes_at(uint64_t address, size_t count) const {
  std::string_view found;
  for_each_segment([&](const Elf64_Phdr& segment) {
    if (address < segment.p_vaddr || address - segment.p_vaddr > segment.p_filesz ||
        segment.p_filesz - (address - segment.p_vaddr) < count)
      return;
    const uint64_t offset = segment.p_offset + (address - segment.p_vaddr);
    if (offset <= size_ && size_ - offset >= count) found = {bytes_ + offset, count};
  });
  return found;
}

void HostImage::for_each_function(
    uint32_t table_type, const std::function<bool(const char*, const Elf64_Sym&)>& goes_on) const {
  for (unsigned i = 0; i < header_.e_shnum; ++i) {
    const auto table = read<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr));
    if (!table || table->sh_type != table_type) continue;
    const auto strings =
        read<Elf64_Shdr>(header_.e_shoff + uint64_t{table->sh_link} * sizeof(Elf64_Shdr));
    if (!strings) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read<Elf64_Sym>(table->sh_offset + at);
      if (!symbol) break;
      const uint64_t name = strings->sh_offset + symbol->st_name;
      if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
          name >= size_ || memchr(bytes_ + name, 0, size_ - name) == nullptr)
        continue;
      if (!goes_on(bytes_ + name, *symbol)) return;
    }
  }
}

std::string HostImage::function_at(uint64_t address) const {
  std::string found;
  for (const uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
    for_each_function(type, [&](const char* name, const Elf64_Sym& symbol) {
      if (address >= symbol.st_value && address - symbol.st_value < symbol.st_size)
        found = demangled(name);
      return found.empty();
    });
    if (!found.empty()) break;
  }
  return found;
}

void HostImage::for_each_exported(
    const std::function<void(const char* name, const Elf64_Sym&)>& visit) const {
  for_each_function(SHT_DYNSYM, [&](const char* name, const Elf64_Sym& symbol) {
    visit(name, symbol);
    return true;
  });
}

}  // namespace uptempo::vgpu::kfd
