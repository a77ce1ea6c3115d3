#include "engine/program/kernel_descriptor.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <array>
#include <optional>

#include "engine/program/bytes.hpp"
#include "engine/program/elf_symbols.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {
namespace {

using detail::find_symbol;
using detail::read_at;

constexpr uint64_t kDescriptorBytes = 64;

[[noreturn]] void refuse_symbol(std::string_view symbol, std::string found) {
  throw Error({.status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
               .call = "code object",
               .asked = fmt::format("the kernel descriptor '{}'", symbol),
               .found = std::move(found),
               .remedy = "pass a code object as the linker wrote it, with its dynamic symbols"});
}

}  // namespace

KernelDescriptor read_kernel_descriptor(const CodeObject& object, std::string_view symbol) {
  const std::span<const std::byte> elf = object.bytes;
  const auto header = read_at<Elf64_Ehdr>(elf, 0);
  if (!header) refuse_symbol(symbol, "an ELF file without a header");
  const auto found = find_symbol(elf, symbol);
  if (!found) refuse_symbol(symbol, "no dynamic symbol of that name");
  const uint64_t address = found->st_value;
  std::optional<std::array<std::byte, kDescriptorBytes>> bytes;
  for (unsigned i = 0; i < header->e_phnum && !bytes; ++i) {
    const auto segment = read_at<Elf64_Phdr>(elf, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment || segment->p_type != PT_LOAD || address < segment->p_vaddr) continue;
    const uint64_t into = address - segment->p_vaddr;
    if (segment->p_filesz < kDescriptorBytes || into > segment->p_filesz - kDescriptorBytes)
      continue;
    bytes = read_at<std::array<std::byte, kDescriptorBytes>>(elf, segment->p_offset + into);
  }
  if (!bytes)
    refuse_symbol(symbol, fmt::format("its 64 bytes at 0x{:x} lie in no loaded segment", address));

  const auto word = [&](uint64_t offset) { return *read_at<uint32_t>(*bytes, offset); };
  const auto properties = *read_at<uint16_t>(*bytes, 56);
  const auto preload = *read_at<uint16_t>(*bytes, 58);
  const auto has = [properties](unsigned bit) { return (properties >> bit & 1) != 0; };
  return {.group_segment_size = word(0),
          .private_segment_size = word(4),
          .kernarg_size = word(8),
          .scratch = (word(52) & 1) != 0,
          .private_segment_buffer = has(0),
          .dispatch_ptr = has(1),
          .queue_ptr = has(2),
          .kernarg_segment_ptr = has(3),
          .dispatch_id = has(4),
          .flat_scratch_init = has(5),
          .private_segment_size_sgpr = has(6),
          .preload_words = preload & 0x7fu,
          .preload_first_word = static_cast<uint32_t>(preload >> 7)};
}

}  // namespace uptempo
