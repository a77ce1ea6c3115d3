#include "engine/program/code_object.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <string_view>

#include "engine/runtime/error.hpp"

namespace uptempo {
namespace {

// LLVM AMDGPU User Guide, tables "AMDGPU ELF Header", "e_flags", "Note Records".
constexpr uint8_t kOsAbiHsa = 64;
constexpr uint16_t kMachineAmdgpu = 224;
constexpr uint32_t kNoteMetadata = 32;
constexpr std::string_view kBundleMagic = "__CLANG_OFFLOAD_BUNDLE__";

struct Processor {
  uint32_t machine;  // e_flags & 0xff
  const char* name;
};
// LLVM's EF_AMDGPU_MACH_AMDGCN_* (llvm/BinaryFormat/ELF.h).
constexpr Processor kProcessors[] = {
    {0x20, "gfx600"},  {0x21, "gfx601"},  {0x22, "gfx700"},  {0x23, "gfx701"},  {0x24, "gfx702"},
    {0x25, "gfx703"},  {0x26, "gfx704"},  {0x28, "gfx801"},  {0x29, "gfx802"},  {0x2a, "gfx803"},
    {0x2b, "gfx810"},  {0x2c, "gfx900"},  {0x2d, "gfx902"},  {0x2e, "gfx904"},  {0x2f, "gfx906"},
    {0x30, "gfx908"},  {0x31, "gfx909"},  {0x32, "gfx90c"},  {0x33, "gfx1010"}, {0x34, "gfx1011"},
    {0x35, "gfx1012"}, {0x36, "gfx1030"}, {0x37, "gfx1031"}, {0x38, "gfx1032"}, {0x39, "gfx1033"},
    {0x3a, "gfx602"},  {0x3b, "gfx705"},  {0x3c, "gfx805"},  {0x3d, "gfx1035"}, {0x3e, "gfx1034"},
    {0x3f, "gfx90a"},  {0x40, "gfx940"},  {0x41, "gfx1100"}, {0x42, "gfx1013"}, {0x43, "gfx1150"},
    {0x44, "gfx1103"}, {0x45, "gfx1036"}, {0x46, "gfx1101"}, {0x47, "gfx1102"}, {0x48, "gfx1200"},
    {0x4a, "gfx1151"}, {0x4b, "gfx941"},  {0x4c, "gfx942"},  {0x4e, "gfx1201"}, {0x4f, "gfx950"},
    {0x55, "gfx1152"}, {0x58, "gfx1153"},
};

[[noreturn]] void refuse(
    std::string found,
    std::string remedy = "pass a code object built by clang for amdgcn-amd-amdhsa") {
  throw Error({.status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
               .call = "code object",
               .asked = "an AMDGPU ELF file or a clang offload bundle of them",
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

// The value at an offset, if it is inside. Copies, because the input may be unaligned.
template <class T>
std::optional<T> read_at(std::span<const std::byte> bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return {};
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::optional<std::span<const std::byte>> slice(std::span<const std::byte> bytes, uint64_t offset,
                                                uint64_t length) {
  if (offset > bytes.size() || bytes.size() - offset < length) return {};
  return bytes.subspan(offset, length);
}

bool begins_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

TargetFeature feature_v4(uint32_t flags, uint32_t shift) {
  switch (flags >> shift & 3) {
    case 2:
      return TargetFeature::off;
    case 3:
      return TargetFeature::on;
    default:  // 0 unsupported by the processor, 1 any
      return TargetFeature::any;
  }
}

// LLVM AMDGPU User Guide, table "AMDGPU Processors", column "Target Features".
bool has_xnack(std::string_view processor) noexcept {
  return processor == "gfx801" || processor == "gfx810" || processor.starts_with("gfx101") ||
         processor.starts_with("gfx9");
}

bool has_sramecc(std::string_view processor) noexcept {
  return processor == "gfx906" || processor == "gfx908" || processor == "gfx90a" ||
         processor.starts_with("gfx94") || processor == "gfx950";
}

TargetFeature feature_v3(uint32_t flags, uint32_t bit, bool exists) noexcept {
  if (!exists) return TargetFeature::any;
  return (flags & bit) != 0 ? TargetFeature::on : TargetFeature::off;
}

std::vector<CodeObjectCandidate> bundle_entries(std::span<const std::byte> bundle) {
  uint64_t offset = kBundleMagic.size();
  const auto count = read_at<uint64_t>(bundle, offset);
  offset += sizeof(uint64_t);
  // An entry's header takes at least 24 bytes, so the input size bounds the count.
  if (!count || *count > bundle.size() / 24)
    refuse(fmt::format("an offload bundle of {} bytes, cut off in its table", bundle.size()));
  std::vector<CodeObjectCandidate> entries;
  for (uint64_t i = 0; i < *count; ++i) {
    const auto data_offset = read_at<uint64_t>(bundle, offset);
    const auto data_size = read_at<uint64_t>(bundle, offset + 8);
    const auto id_size = read_at<uint64_t>(bundle, offset + 16);
    const auto id = id_size ? slice(bundle, offset + 24, *id_size) : std::nullopt;
    if (!data_offset || !data_size || !id) {
      refuse(fmt::format("an offload bundle of {} bytes, cut off in entry {} of {}", bundle.size(),
                         i, *count));
    }
    offset += 24 + *id_size;
    std::string name(reinterpret_cast<const char*>(id->data()), id->size());
    const auto data = slice(bundle, *data_offset, *data_size);
    if (!data) {
      refuse(fmt::format("an offload bundle of {} bytes whose entry '{}' claims bytes {} to {}",
                         bundle.size(), name, *data_offset, *data_offset + *data_size));
    }
    if (!name.starts_with("host-")) entries.push_back({std::move(name), *data});
  }
  if (entries.empty()) refuse("an offload bundle without an entry for a GPU");
  return entries;
}

}  // namespace

std::vector<CodeObjectCandidate> candidates_in(std::span<const std::byte> input) {
  if (begins_with(input, kBundleMagic)) return bundle_entries(input);
  if (begins_with(input, ELFMAG)) return {{"ELF file", input}};
  if (input.empty()) refuse("an empty input");
  if (begins_with(input, "CCOB")) refuse("a compressed offload bundle", "bundle without -compress");
  if (begins_with(input, "BC\xC0\xDE")) refuse("LLVM bitcode", "link it to a code object first");
  refuse(fmt::format("{} bytes that are neither", input.size()));
}

CodeObject read_code_object(std::span<const std::byte> elf) {
  const auto header = read_at<Elf64_Ehdr>(elf, 0);
  if (!begins_with(elf, ELFMAG)) refuse("bytes that are not an ELF file");
  if (!header) refuse(fmt::format("an ELF file of {} bytes, cut off in its header", elf.size()));
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
    refuse("an ELF file that is not 64-bit little-endian");
  if (header->e_machine != kMachineAmdgpu)
    refuse(fmt::format("an ELF file for machine {}, not AMDGPU (224)", header->e_machine));
  if (header->e_ident[EI_OSABI] != kOsAbiHsa)
    refuse(fmt::format("an AMDGPU file for OS ABI {}, not HSA (64)", header->e_ident[EI_OSABI]));
  if (header->e_type != ET_DYN)
    refuse("an AMDGPU object file that has not been linked",
           "link it with lld (clang does unless given -c)");

  CodeObject object{.bytes = elf, .target = {}, .version = 0};
  switch (header->e_ident[EI_ABIVERSION]) {
    case 1:
    case 2:
    case 3:
      object.version = header->e_ident[EI_ABIVERSION] + 2;
      break;
    default:
      refuse(fmt::format("a code object of ABI version {}", header->e_ident[EI_ABIVERSION]),
             "build with -mcode-object-version=3, 4 or 5");
  }
  const uint32_t flags = header->e_flags;
  for (const Processor& processor : kProcessors) {
    if (processor.machine == (flags & 0xff)) object.target.processor = processor.name;
  }
  if (object.target.processor.empty())
    refuse(fmt::format("a code object for processor number 0x{:x}, which is unknown here",
                       flags & 0xff));
  if (object.version == 3) {
    // Version 3 has one bit per feature. Clear means off if the processor has the feature.
    object.target.xnack = feature_v3(flags, 0x100, has_xnack(object.target.processor));
    object.target.sramecc = feature_v3(flags, 0x200, has_sramecc(object.target.processor));
  } else {
    object.target.xnack = feature_v4(flags, 8);
    object.target.sramecc = feature_v4(flags, 10);
  }
  // ROCr reads both tables without a bounds check (amd_elf_image.cpp), so check them here.
  if (!slice(elf, header->e_phoff, uint64_t{header->e_phnum} * sizeof(Elf64_Phdr)) ||
      !slice(elf, header->e_shoff, uint64_t{header->e_shnum} * sizeof(Elf64_Shdr))) {
    refuse(fmt::format("an ELF file of {} bytes, cut off before its tables end", elf.size()));
  }
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(elf, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!slice(elf, segment->p_offset, segment->p_filesz))
      refuse(fmt::format("an ELF file of {} bytes whose segment {} lies outside", elf.size(), i));
  }
  return object;
}

CodeObject select_code_object(std::span<const std::byte> input, const TargetId& agent) {
  std::string rejected;
  for (const CodeObjectCandidate& candidate : candidates_in(input)) {
    std::string reason;
    try {
      CodeObject object = read_code_object(candidate.bytes);
      reason = why_incompatible(object.target, agent);
      if (reason.empty()) return object;
    } catch (const Error& error) {
      reason = fmt::format("is {}", error.found());
    }
    rejected += fmt::format("{}'{}' {}", rejected.empty() ? "" : ", ", candidate.name, reason);
  }
  throw Error(
      {.status = HSA_STATUS_ERROR_INVALID_ISA,
       .call = "Program",
       .asked = fmt::format("a code object for {}", to_string(agent)),
       .found = fmt::format("none that fits: {}", rejected),
       .remedy = fmt::format("build the kernels with GPU_TARGETS containing {}", agent.processor)});
}

std::span<const std::byte> metadata_note(const CodeObject& object) {
  const std::span<const std::byte> elf = object.bytes;
  const auto header = read_at<Elf64_Ehdr>(elf, 0);
  if (!header) refuse("an ELF file without a header");
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(elf, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) refuse("an ELF file cut off in its program headers");
    if (segment->p_type != PT_NOTE) continue;
    const auto notes = slice(elf, segment->p_offset, segment->p_filesz);
    if (!notes) refuse("an ELF file cut off in its notes");
    for (uint64_t at = 0; at < notes->size();) {
      const auto note = read_at<Elf64_Nhdr>(*notes, at);
      if (!note) break;
      const uint64_t name_size = (uint64_t{note->n_namesz} + 3) / 4 * 4;
      const uint64_t data_size = (uint64_t{note->n_descsz} + 3) / 4 * 4;
      const auto name = slice(*notes, at + sizeof(Elf64_Nhdr), note->n_namesz);
      const auto data = slice(*notes, at + sizeof(Elf64_Nhdr) + name_size, note->n_descsz);
      if (!name || !data) refuse("an ELF file with a note that is cut off");
      if (note->n_type == kNoteMetadata && begins_with(*name, "AMDGPU")) return *data;
      at += sizeof(Elf64_Nhdr) + name_size + data_size;
    }
  }
  refuse("a code object without NT_AMDGPU_METADATA",
         "build with -mcode-object-version=3 or newer and do not strip the notes");
}

}  // namespace uptempo
