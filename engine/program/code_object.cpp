#include <uptempo/program/code_object.hpp>

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <uptempo/program/compressed_bundle.hpp>
#include <uptempo/program/elf_file.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

using detail::begins_with;
using detail::read_at;

// LLVM AMDGPU User Guide, tables "AMDGPU ELF Header", "e_flags".
constexpr uint8_t kOsAbiHsa = 64;
// Far more than there are targets. Each entry costs a check of a code object, and entries may share
// their bytes.
constexpr uint64_t kMostEntries = 1024;

struct Processor {
  uint32_t machine;  // e_flags & 0xff
  const char* name;
};
// LLVM's EF_AMDGPU_MACH_AMDGCN_* (llvm/BinaryFormat/ELF.h).
constexpr Processor kProcessors[] = {
    {0x20, "gfx600"},          {0x21, "gfx601"},        {0x22, "gfx700"},
    {0x23, "gfx701"},          {0x24, "gfx702"},        {0x25, "gfx703"},
    {0x26, "gfx704"},          {0x28, "gfx801"},        {0x29, "gfx802"},
    {0x2a, "gfx803"},          {0x2b, "gfx810"},        {0x2c, "gfx900"},
    {0x2d, "gfx902"},          {0x2e, "gfx904"},        {0x2f, "gfx906"},
    {0x30, "gfx908"},          {0x31, "gfx909"},        {0x32, "gfx90c"},
    {0x33, "gfx1010"},         {0x34, "gfx1011"},       {0x35, "gfx1012"},
    {0x36, "gfx1030"},         {0x37, "gfx1031"},       {0x38, "gfx1032"},
    {0x39, "gfx1033"},         {0x3a, "gfx602"},        {0x3b, "gfx705"},
    {0x3c, "gfx805"},          {0x3d, "gfx1035"},       {0x3e, "gfx1034"},
    {0x3f, "gfx90a"},          {0x40, "gfx940"},        {0x41, "gfx1100"},
    {0x42, "gfx1013"},         {0x43, "gfx1150"},       {0x44, "gfx1103"},
    {0x45, "gfx1036"},         {0x46, "gfx1101"},       {0x47, "gfx1102"},
    {0x48, "gfx1200"},         {0x4a, "gfx1151"},       {0x4b, "gfx941"},
    {0x4c, "gfx942"},          {0x4e, "gfx1201"},       {0x4f, "gfx950"},
    {0x49, "gfx1250"},         {0x55, "gfx1152"},       {0x58, "gfx1153"},
    {0x5a, "gfx1251"},         {0x51, "gfx9-generic"},  {0x52, "gfx10-1-generic"},
    {0x53, "gfx10-3-generic"}, {0x54, "gfx11-generic"}, {0x59, "gfx12-generic"},
    {0x5f, "gfx9-4-generic"},
};

struct Named {
  uint32_t number;
  const char* name;
};
// e_machine, in the numbers of <elf.h>.
constexpr Named kForeignMachines[] = {
    {EM_386, "x86"},   {EM_ARM, "ARM"},      {EM_X86_64, "x86-64"}, {EM_AARCH64, "AArch64"},
    {EM_CUDA, "CUDA"}, {EM_RISCV, "RISC-V"}, {EM_BPF, "BPF"},
};
// ELFOSABI_* of AMDGPU files for other systems (LLVM AMDGPU User Guide, "AMDGPU ELF Header").
constexpr Named kForeignSystems[] = {{0, "none"}, {65, "AMD PAL"}, {66, "Mesa 3D"}};

struct Magic {
  std::string_view bytes;
  const char* found;
  const char* remedy;
};
constexpr Magic kForeignFiles[] = {
    {"BC\xC0\xDE", "LLVM bitcode", "link it to a code object first"},
    {"\x10\xFF\x10\xAD", "a package of clang-offload-packager",
     "extract its AMDGPU image with clang-offload-packager"},
    {"\x03\x02\x23\x07", "SPIR-V", "translate it to a code object first"},
    {"!<arch>\n", "an archive", "extract its members first"},
    {"# __CLANG_OFFLOAD_BUNDLE__", "an offload bundle of texts", "bundle linked code objects"},
    {"; __CLANG_OFFLOAD_BUNDLE__", "an offload bundle of texts", "bundle linked code objects"},
};

[[noreturn]] void refuse(
    std::string found,
    std::string remedy = "pass a code object built by clang for amdgcn-amd-amdhsa") {
  throw Error({.code = ErrorCode::program,
               .status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
               .call = "code object",
               .asked = "an AMDGPU ELF file or a clang offload bundle of them",
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

std::optional<std::span<const std::byte>> slice(std::span<const std::byte> bytes, uint64_t offset,
                                                uint64_t length) {
  if (offset > bytes.size() || bytes.size() - offset < length) return {};
  return bytes.subspan(offset, length);
}

template <size_t N>
std::string name_in(const Named (&table)[N], uint32_t number) {
  for (const Named& named : table)
    if (named.number == number) return fmt::format("{} ({})", named.name, number);
  return fmt::format("{}", number);
}

// "64-bit little-endian"
std::string format_of(const Elf64_Ehdr& header) {
  const auto bits = header.e_ident[EI_CLASS];
  const auto order = header.e_ident[EI_DATA];
  return fmt::format("{} {}",
                     bits == ELFCLASS64   ? "64-bit"
                     : bits == ELFCLASS32 ? "32-bit"
                                          : fmt::format("class {}", bits),
                     order == ELFDATA2LSB   ? "little-endian"
                     : order == ELFDATA2MSB ? "big-endian"
                                            : fmt::format("data encoding {}", order));
}

// Two bits: unsupported by the processor, any, off, on.
TargetFeature feature_v4(uint32_t flags, uint32_t shift) {
  constexpr TargetFeature kValues[] = {TargetFeature::any, TargetFeature::any, TargetFeature::off,
                                       TargetFeature::on};
  return kValues[flags >> shift & 3];
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
  uint64_t offset = detail::kBundleMagic.size();
  const auto count = read_at<uint64_t>(bundle, offset);
  offset += sizeof(uint64_t);
  if (!count)
    refuse(fmt::format("an offload bundle of {} bytes, cut off in its table", bundle.size()));
  if (*count > kMostEntries)
    refuse(fmt::format("an offload bundle of {} entries; the most is {}", *count, kMostEntries));
  std::vector<CodeObjectCandidate> entries;
  for (uint64_t i = 0; i < *count; ++i) {
    struct Entry {
      uint64_t data_offset, data_size, id_size;
    };
    const auto entry = read_at<Entry>(bundle, offset);
    const auto id = entry ? slice(bundle, offset + sizeof *entry, entry->id_size) : std::nullopt;
    if (!id)
      refuse(fmt::format("an offload bundle of {} bytes, cut off in entry {} of {}", bundle.size(),
                         i, *count));
    offset += sizeof *entry + entry->id_size;
    std::string name(reinterpret_cast<const char*>(id->data()), id->size());
    const auto data = slice(bundle, entry->data_offset, entry->data_size);
    if (!data)
      refuse(fmt::format("an offload bundle of {} bytes whose entry '{}' claims bytes {} to {}",
                         bundle.size(), name, entry->data_offset,
                         entry->data_offset + entry->data_size));
    if (!name.starts_with("host-")) entries.push_back({.name = std::move(name), .bytes = *data});
  }
  if (entries.empty()) refuse("an offload bundle without an entry for a GPU");
  return entries;
}

bool is_generic(const TargetId& target) noexcept { return target.processor.ends_with("-generic"); }

// Empty if the loader loads the code object; otherwise the reason.
std::string why_not_loaded(const CodeObject& object, const Loader& loader) {
  if (object.version > loader.newest_version) {
    return fmt::format(
        "is for {} in code object version {}, but the running ROCr loads versions up to {} "
        "(version 6 needs ROCr 6.2)",
        to_string(object.target), object.version, loader.newest_version);
  }
  for (const TargetId& isa : loader.isas)
    if (why_incompatible(object.target, isa).empty()) return {};
  // The reason of the ISA that comes closest.
  for (const TargetId& isa : loader.isas)
    if (isa.processor == object.target.processor) return why_incompatible(object.target, isa);
  if (!is_generic(object.target)) return why_incompatible(object.target, loader.isas.front());
  std::string listed;
  for (const TargetId& isa : loader.isas)
    listed += fmt::format("{}{}", listed.empty() ? "" : ", ", to_string(isa));
  return fmt::format("is for the generic target {}, but ROCr lists {} for the agent",
                     to_string(object.target), listed);
}

// Reads the ELF header, which tells target and version. Leaves the tables out.
CodeObject read_identity(std::span<const std::byte> elf) {
  const auto header = read_at<Elf64_Ehdr>(elf, 0);
  if (!begins_with(elf, ELFMAG)) refuse("bytes that are not an ELF file");
  if (!header) refuse(fmt::format("an ELF file of {} bytes, cut off in its header", elf.size()));
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
    refuse(fmt::format("a {} ELF file, not 64-bit little-endian", format_of(*header)));
  if (header->e_machine != EM_AMDGPU) {
    refuse(fmt::format("an ELF file for machine {}, not AMDGPU (224)",
                       name_in(kForeignMachines, header->e_machine)),
           "pass the code object alone; a host program holds its bundle in section .hip_fatbin");
  }
  if (header->e_ident[EI_OSABI] != kOsAbiHsa) {
    refuse(fmt::format("an AMDGPU file for OS ABI {}, not HSA (64)",
                       name_in(kForeignSystems, header->e_ident[EI_OSABI])));
  }
  if (header->e_type != ET_DYN) {
    refuse(
        header->e_type == ET_REL
            ? "an AMDGPU object file that has not been linked"
            : fmt::format("an AMDGPU ELF file of type {}, not a shared object (3)", header->e_type),
        "link it with lld (clang does unless given -c)");
  }

  CodeObject object{.bytes = elf, .target = {}};
  // ELFABIVERSION_AMDGPU_HSA_V2 is 0, and later versions count from there.
  object.version = header->e_ident[EI_ABIVERSION] + 2;
  if (object.version < 3 || object.version > kNewestCodeObjectVersion) {
    refuse(fmt::format("a code object of version {} (ABI version {}); versions 3 to {} are known",
                       object.version, header->e_ident[EI_ABIVERSION], kNewestCodeObjectVersion),
           "build with -mcode-object-version=4 or 5");
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
  return object;
}

}  // namespace

std::vector<CodeObjectCandidate> candidates_in(std::span<const std::byte> input) {
  if (begins_with(input, detail::kBundleMagic)) return bundle_entries(input);
  if (begins_with(input, ELFMAG)) return {{.name = "ELF file", .bytes = input}};
  if (input.empty()) refuse("an empty input");
  if (begins_with(input, detail::kCompressedMagic)) {
    const auto unpacked = std::make_shared<const std::vector<std::byte>>(unpack_bundle(input));
    std::vector<CodeObjectCandidate> entries = bundle_entries(*unpacked);
    for (CodeObjectCandidate& entry : entries) entry.unpacked = unpacked;
    return entries;
  }
  for (const Magic& magic : kForeignFiles)
    if (begins_with(input, magic.bytes)) refuse(magic.found, magic.remedy);
  refuse(fmt::format("{} bytes that are neither", input.size()));
}

CodeObject read_code_object(std::span<const std::byte> elf) {
  CodeObject object = read_identity(elf);
  object.elf = std::make_shared<const detail::ElfFile>(detail::check_elf_file(elf));
  return object;
}

CodeObject read_loaded_code_object(std::span<const std::byte> image) {
  CodeObject object = read_identity(image);
  object.elf = std::make_shared<const detail::ElfFile>(detail::read_elf_image(image));
  return object;
}

int newest_version_of(unsigned extension_major, unsigned extension_minor) noexcept {
  return std::pair(extension_major, extension_minor) >= std::pair(1u, 6u) ? 6 : 5;
}

CodeObject select_code_object(std::span<const std::byte> input, const Loader& loader) {
  const TargetId& agent = loader.isas.front();
  std::optional<CodeObject> generic;
  std::string rejected;
  for (const CodeObjectCandidate& candidate : candidates_in(input)) {
    std::string reason;
    try {
      CodeObject object = read_identity(candidate.bytes);
      reason = why_not_loaded(object, loader);
      if (reason.empty()) object = read_code_object(candidate.bytes);
      object.unpacked = candidate.unpacked;
      if (reason.empty() && !is_generic(object.target)) return object;
      if (reason.empty() && !generic) generic = std::move(object);
    } catch (const Error& error) {
      reason = fmt::format("is {}", error.found());
    }
    rejected += fmt::format("{}'{}' {}", rejected.empty() ? "" : ", ", candidate.name, reason);
  }
  if (generic) return *generic;
  throw Error(
      {.code = ErrorCode::program,
       .status = HSA_STATUS_ERROR_INVALID_ISA,
       .call = "Program",
       .asked = fmt::format("a code object for {}", to_string(agent)),
       .found = fmt::format("none that fits: {}", rejected),
       .remedy = fmt::format("build the kernels with GPU_TARGETS containing {0}, or for hipcc "
                             "--offload-arch={0}",
                             agent.processor)});
}

std::span<const std::byte> metadata_note(const CodeObject& object) {
  if (object.elf->metadata) return *object.elf->metadata;
  refuse("a code object without NT_AMDGPU_METADATA",
         "build with -mcode-object-version=3 or newer and do not strip the notes");
}

}  // namespace uptempo
