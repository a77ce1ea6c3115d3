#include <uptempo/program/kernel_start.hpp>

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include <uptempo/program/compressed_bundle.hpp>
#include <uptempo/program/elf_file.hpp>
#include <uptempo/program/loaded_kernel.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

using detail::read_at;

constexpr uint64_t kDescriptorBytes = 64;  // also their alignment
constexpr uint64_t kEntryAlignment = 256;

void add_kernels(std::vector<KernelStart>& kernels,
                 const std::vector<CodeObjectCandidate>& candidates, const std::string& place) {
  for (const CodeObjectCandidate& candidate : candidates) {
    const CodeObject object = read_code_object(candidate.bytes);
    for (const KernelMetadata& metadata : read_metadata(metadata_note(object)).kernels) {
      kernels.push_back(kernel_start(object, metadata));
      kernels.back().origin = candidate.name + place;
    }
  }
}

bool is_host_program(std::span<const std::byte> file) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  return header && detail::begins_with(file, ELFMAG) && header->e_machine != EM_AMDGPU &&
         (header->e_type == ET_EXEC || header->e_type == ET_DYN);
}

// Offset of the next bundle's magic number from `from` on.
size_t next_bundle(std::string_view file, size_t from) {
  return std::min(file.find(detail::kBundleMagic, from), file.find(detail::kCompressedMagic, from));
}

// A program may hold bundles in any section: HIP uses .hip_fatbin, uptempo_add_kernels read-only
// data. Its code may also contain the magic numbers, so bytes that are no bundle are skipped.
std::vector<KernelStart> kernels_in_program(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  std::vector<KernelStart> kernels;
  std::optional<Error> first_error;
  bool has_bundle = false;
  for (size_t at = next_bundle(text, 0); at != std::string_view::npos;
       at = next_bundle(text, at + 1)) {
    std::vector<CodeObjectCandidate> candidates;
    try {
      candidates = candidates_in(file.subspan(at));
    } catch (const Error& error) {
      if (!first_error) first_error = error;
      continue;
    }
    has_bundle = true;
    add_kernels(kernels, candidates, fmt::format(" at offset 0x{:x}", at));
  }
  if (has_bundle) return kernels;
  throw Error({.code = ErrorCode::program,
               .status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
               .call = "kernel_starts",
               .asked = "the GPU kernels of a program",
               .found = first_error
                            ? fmt::format("no offload bundle but data that begins like one: {}",
                                          first_error->found())
                            : "no offload bundle",
               .remedy = "pass a program with device code, a bundle or a code object"});
}

}  // namespace

KernelStart kernel_start(const CodeObject& object, const KernelMetadata& metadata) {
  const detail::ElfFile& elf = *object.elf;
  const auto refuse = [&](std::string found) {
    throw Error({.code = ErrorCode::program,
                 .status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
                 .call = "code object",
                 .asked = fmt::format("the kernel descriptor '{}'", metadata.symbol),
                 .found = std::move(found),
                 .remedy = "pass a code object as the linker wrote it, with its symbols"});
  };
  const Elf64_Sym* const symbol = elf.find(metadata.symbol);
  if (symbol == nullptr) refuse("no symbol of that name");
  const uint64_t address = symbol->st_value;
  const std::span<const std::byte> descriptor = elf.bytes_at(address, kDescriptorBytes);
  if (descriptor.empty() || address % kDescriptorBytes != 0)
    refuse(fmt::format("address 0x{:x}, which has no aligned 64 bytes in the file", address));
  const uint64_t entry = address + *read_at<uint64_t>(descriptor, 16);
  const auto has_entry = [&](const Elf64_Phdr& segment) {
    return (segment.p_flags & PF_X) != 0 && entry >= segment.p_vaddr &&
           entry - segment.p_vaddr < segment.p_filesz;
  };
  if (entry % kEntryAlignment != 0 || std::ranges::none_of(elf.segments, has_entry))
    refuse(fmt::format(
        "a kernel at address 0x{:x}, which is not aligned to 256 bytes or has no code", entry));

  const auto properties = *read_at<uint16_t>(descriptor, 56);  // values that it gets in SGPRs
  const auto has = [properties](unsigned bit) { return (properties >> bit & 1) != 0; };
  KernelStart kernel{.target = to_string(object.target),
                     .code_object_version = object.version,
                     .name = metadata.name,
                     .packet = has(1),
                     .queue = has(2),
                     .kernarg_segment = has(3),
                     .dispatch_id = has(4),
                     .kernarg_bytes = metadata.kernarg_size,
                     .preload_words = *read_at<uint16_t>(descriptor, 58) & 0x7fu,
                     .private_segment_bytes = *read_at<uint32_t>(descriptor, 4),
                     // COMPUTE_PGM_RSRC2, ENABLE_PRIVATE_SEGMENT
                     .scratch = (*read_at<uint32_t>(descriptor, 52) & 1) != 0,
                     .dynamic_stack = metadata.uses_dynamic_stack};
  for (const ArgumentMetadata& argument : metadata.arguments) {
    if (!is_hidden(argument.kind)) {
      kernel.explicit_kernarg_bytes =
          std::max(kernel.explicit_kernarg_bytes, argument.offset + argument.size);
    } else if (argument.kind_name != "hidden_none" && kernel.kernarg_segment) {
      kernel.hidden_arguments.push_back(argument.kind_name.substr(sizeof "hidden_" - 1));
    }
  }
  return kernel;
}

std::vector<KernelStart> kernel_starts(std::span<const std::byte> file) {
  if (is_host_program(file)) return kernels_in_program(file);
  std::vector<KernelStart> kernels;
  add_kernels(kernels, candidates_in(file), {});
  return kernels;
}

}  // namespace uptempo
