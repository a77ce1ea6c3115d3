#include "launcher/elf_program.hpp"

#include <elf.h>
#include <cstring>
#include <fstream>
#include <optional>

namespace uptempo::vgpu {
namespace {

template <typename Record>
std::optional<Record> read_at(std::ifstream& file, uint64_t offset) {
  Record record;
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  if (!file.read(reinterpret_cast<char*>(&record), sizeof record)) return std::nullopt;
  return record;
}

std::string string_at(std::ifstream& file, uint64_t offset) {
  std::string text;
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  std::getline(file, text, '\0');
  return text;
}

std::optional<uint64_t> file_offset(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& segment : segments)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address < segment.p_vaddr + segment.p_filesz)
      return address - segment.p_vaddr + segment.p_offset;
  return std::nullopt;
}

ElfProgram inspect(const std::string& path) {
  ElfProgram program;
  std::ifstream file(path, std::ios::binary);
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return program;
  program.elf = true;
  program.elf64 = header->e_ident[EI_CLASS] == ELFCLASS64;
  if (!program.elf64) return program;
  std::vector<Elf64_Phdr> segments;
  for (unsigned i = 0; i < header->e_phnum; ++i)
    if (const auto segment =
            read_at<Elf64_Phdr>(file, header->e_phoff + uint64_t{i} * header->e_phentsize))
      segments.push_back(*segment);
  uint64_t names = 0;
  std::vector<uint64_t> needed;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) program.dynamic = true;
    if (segment.p_type != PT_DYNAMIC) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = read_at<Elf64_Dyn>(file, segment.p_offset + at);
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_NEEDED) needed.push_back(entry->d_un.d_val);
      if (entry->d_tag == DT_STRTAB) names = entry->d_un.d_ptr;
    }
  }
  const auto table = file_offset(segments, names);
  if (table)
    for (const uint64_t offset : needed) program.needed.push_back(string_at(file, *table + offset));
  return program;
}

}  // namespace

ElfProgram inspect_program(const std::string& path) noexcept {
  try {
    return inspect(path);
  } catch (...) {
    return {};
  }
}

}  // namespace uptempo::vgpu
