#include "engine/program/kernel_descriptor.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "engine/program/bytes.hpp"
#include "engine/program/elf_file.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {
namespace {

using detail::read_at;

constexpr uint64_t kDescriptorBytes = 64;  // also their alignment
constexpr uint64_t kEntryAlignment = 256;

[[noreturn]] void refuse_symbol(std::string_view symbol, std::string found) {
  throw Error({.status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
               .call = "code object",
               .asked = fmt::format("the kernel descriptor '{}'", symbol),
               .found = std::move(found),
               .remedy = "pass a code object as the linker wrote it, with its symbols"});
}

bool has_code_at(const detail::ElfFile& elf, uint64_t address) {
  return std::ranges::any_of(elf.segments, [&](const Elf64_Phdr& segment) {
    return (segment.p_flags & PF_X) != 0 && address >= segment.p_vaddr &&
           address - segment.p_vaddr < segment.p_filesz;
  });
}

}  // namespace

KernelDescriptor read_kernel_descriptor(const CodeObject& object, std::string_view symbol) {
  const detail::ElfFile& elf = *object.elf;
  const Elf64_Sym* const found = elf.find(symbol);
  if (found == nullptr) refuse_symbol(symbol, "no symbol of that name");
  const uint64_t address = found->st_value;
  const std::span<const std::byte> bytes = elf.bytes_at(address, kDescriptorBytes);
  if (bytes.empty() || address % kDescriptorBytes != 0)
    refuse_symbol(
        symbol, fmt::format("address 0x{:x}, which has no aligned 64 bytes in the file", address));
  const uint64_t entry = address + *read_at<uint64_t>(bytes, 16);
  if (entry % kEntryAlignment != 0 || !has_code_at(elf, entry))
    refuse_symbol(symbol, fmt::format("a kernel at address 0x{:x}, which is not aligned to 256 "
                                      "bytes or has no code",
                                      entry));

  const auto word = [&](uint64_t offset) { return *read_at<uint32_t>(bytes, offset); };
  const auto properties = *read_at<uint16_t>(bytes, 56);
  const auto preload = *read_at<uint16_t>(bytes, 58);
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
