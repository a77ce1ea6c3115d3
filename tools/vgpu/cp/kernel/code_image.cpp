#include "cp/kernel/code_image.hpp"

#include <elf.h>

#include <algorithm>

namespace uptempo::vgpu {
namespace {

constexpr GpuAddress kPageBytes = 4096;  // ROCr allocates code objects in pages
constexpr uint16_t kMachineAmdGpu = 224;
constexpr uint64_t kMaxSymbols = 1u << 20;
constexpr uint32_t kMetadataNote = 32;  // NT_AMDGPU_METADATA
constexpr char kNoteOwner[] = "AMDGPU";

constexpr uint64_t in_words(uint64_t bytes) noexcept { return (bytes + 3) / 4 * 4; }

}  // namespace

std::optional<CodeImage> CodeImage::of(AddressSpace::Reader& memory, GpuAddress kernel_object) {
  const Mapping* const mapping = memory.find(kernel_object);
  if (mapping == nullptr) return std::nullopt;
  const GpuAddress lowest = mapping->begin;
  for (GpuAddress base = kernel_object / kPageBytes * kPageBytes; base >= lowest;
       base -= kPageBytes) {
    const CodeImage image(memory, base);
    if (image.is_code_object()) return image;
    if (base < kPageBytes) break;
  }
  return std::nullopt;
}

bool CodeImage::is_code_object() const {
  const auto header = read<Elf64_Ehdr>(0);
  return header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
         header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_machine == kMachineAmdGpu;
}

std::span<const std::byte> CodeImage::bytes(uint64_t offset, uint64_t size) const {
  if (size == 0) return {};
  const std::byte* const begin = memory_.translate(base_ + offset, size, Access::read);
  return begin == nullptr ? std::span<const std::byte>() : std::span(begin, size);
}

template <typename Visit>
void CodeImage::for_segments(Visit visit) const {
  const auto header = read<Elf64_Ehdr>(0);
  for (unsigned index = 0; header && index < header->e_phnum; ++index) {
    const auto segment = read<Elf64_Phdr>(header->e_phoff + index * sizeof(Elf64_Phdr));
    if (!segment || visit(*segment)) return;
  }
}

std::optional<std::string> CodeImage::symbol_at(uint64_t offset) const {
  uint64_t symbols = 0, strings = 0, hash = 0;
  for_segments([&](const Elf64_Phdr& segment) {
    if (segment.p_type != PT_DYNAMIC) return false;
    for (uint64_t at = 0; at < segment.p_memsz; at += sizeof(Elf64_Dyn)) {
      const auto entry = read<Elf64_Dyn>(segment.p_vaddr + at);
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_SYMTAB) symbols = entry->d_un.d_ptr;
      if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
      if (entry->d_tag == DT_HASH) hash = entry->d_un.d_ptr;
    }
    return false;
  });
  if (symbols == 0 || strings == 0 || hash == 0) return std::nullopt;
  // DT_HASH's second word is the number of symbols (System V ABI, "Hash Table").
  const uint64_t count = std::min<uint64_t>(read<uint32_t>(hash + 4).value_or(0), kMaxSymbols);
  for (uint64_t index = 1; index < count; ++index) {
    const auto symbol = read<Elf64_Sym>(symbols + index * sizeof(Elf64_Sym));
    if (!symbol) return std::nullopt;
    if (symbol->st_value != offset || symbol->st_name == 0) continue;
    return text_at(strings + symbol->st_name);
  }
  return std::nullopt;
}

std::span<const std::byte> CodeImage::metadata() const {
  std::span<const std::byte> found;
  for_segments([&](const Elf64_Phdr& segment) {
    if (segment.p_type != PT_NOTE) return false;
    std::span<const std::byte> notes = bytes(segment.p_vaddr, segment.p_memsz);
    while (notes.size() >= sizeof(Elf64_Nhdr)) {
      Elf64_Nhdr note;
      std::memcpy(&note, notes.data(), sizeof note);
      const uint64_t contents = sizeof note + in_words(note.n_namesz);
      const uint64_t end = contents + in_words(note.n_descsz);
      if (contents + note.n_descsz > notes.size()) return false;
      if (note.n_type == kMetadataNote && note.n_namesz == sizeof kNoteOwner &&
          std::memcmp(notes.data() + sizeof note, kNoteOwner, sizeof kNoteOwner) == 0) {
        found = notes.subspan(contents, note.n_descsz);
        return true;
      }
      notes = notes.subspan(std::min<uint64_t>(end, notes.size()));
    }
    return false;
  });
  return found;
}

std::optional<std::string> CodeImage::text_at(uint64_t offset) const {
  std::string text;
  for (;; ++offset) {
    const auto letter = read<char>(offset);
    if (!letter) return std::nullopt;
    if (*letter == '\0') return text;
    const auto code = static_cast<unsigned char>(*letter);
    text.push_back(code < 0x20 || code == 0x7f ? ' ' : *letter);
  }
}

}  // namespace uptempo::vgpu
