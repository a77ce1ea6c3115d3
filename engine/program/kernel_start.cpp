#include "engine/program/kernel_start.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "engine/program/bytes.hpp"
#include "engine/program/code_object.hpp"
#include "engine/program/kernel_descriptor.hpp"
#include "engine/program/metadata.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {
namespace {

constexpr uint16_t kAmdgpu = 224;
constexpr std::string_view kBundleMagics[] = {"__CLANG_OFFLOAD_BUNDLE__", "CCOB"};

KernelStart start_of(const CodeObject& object, const KernelMetadata& metadata) {
  const KernelDescriptor descriptor = read_kernel_descriptor(object, metadata.symbol);
  KernelStart kernel{.target = to_string(object.target),
                     .code_object_version = object.version,
                     .name = metadata.name,
                     .packet = descriptor.dispatch_ptr,
                     .queue = descriptor.queue_ptr,
                     .kernarg_segment = descriptor.kernarg_segment_ptr,
                     .dispatch_id = descriptor.dispatch_id,
                     .kernarg_bytes = metadata.kernarg_size,
                     .preload_words = descriptor.preload_words,
                     .private_segment_bytes = descriptor.private_segment_size,
                     .scratch = descriptor.scratch,
                     .dynamic_stack = metadata.uses_dynamic_stack};
  for (const ArgumentMetadata& argument : metadata.arguments) {
    if (!is_hidden(argument.kind)) {
      kernel.explicit_kernarg_bytes =
          std::max(kernel.explicit_kernarg_bytes, argument.offset + argument.size);
    } else if (argument.kind != ArgumentKind::hidden_none && kernel.kernarg_segment) {
      kernel.hidden_arguments.push_back(argument.kind_name.substr(sizeof "hidden_" - 1));
    }
  }
  return kernel;
}

void add_kernels(std::vector<KernelStart>& kernels,
                 const std::vector<CodeObjectCandidate>& candidates, const std::string& place) {
  for (const CodeObjectCandidate& candidate : candidates) {
    const CodeObject object = read_code_object(candidate.bytes);
    for (const KernelMetadata& metadata : read_metadata(metadata_note(object)).kernels) {
      kernels.push_back(start_of(object, metadata));
      kernels.back().origin = candidate.name + place;
    }
  }
}

bool is_host_program(std::span<const std::byte> file) {
  const auto header = detail::read_at<Elf64_Ehdr>(file, 0);
  return header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
         header->e_machine != kAmdgpu && (header->e_type == ET_EXEC || header->e_type == ET_DYN);
}

// Offset of the next bundle's magic number from `from` on.
size_t next_bundle(std::string_view file, size_t from) {
  size_t next = std::string_view::npos;
  for (const std::string_view magic : kBundleMagics) next = std::min(next, file.find(magic, from));
  return next;
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
  throw Error({.status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
               .call = "kernel_starts",
               .asked = "the GPU kernels of a program",
               .found = first_error
                            ? fmt::format("no offload bundle but data that begins like one: {}",
                                          first_error->found())
                            : "no offload bundle",
               .remedy = "pass a program with device code, a bundle or a code object"});
}

}  // namespace

std::vector<KernelStart> kernel_starts(std::span<const std::byte> file) {
  if (is_host_program(file)) return kernels_in_program(file);
  std::vector<KernelStart> kernels;
  add_kernels(kernels, candidates_in(file), {});
  return kernels;
}

}  // namespace uptempo
