#include "engine/program/host_calls.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "engine/program/bytes.hpp"
#include "engine/program/elf_file.hpp"

namespace uptempo {
namespace {

using detail::read_at;

// The words of instructions, without operands, by generation. LLVM, SOPInstructions.td.
struct Words {
  uint32_t send_interrupt;  // s_sendmsg MSG_INTERRUPT: SOPP, immediate 1
  uint32_t set_pc;          // s_setpc_b64 and the next opcode, s_swappc_b64: SOP1
  uint32_t call;            // s_call_b64: SOPK
};
Words words_of(std::string_view processor) {
  if (!processor.starts_with("gfx1")) return {0xbf900001, 0xbe801d00, 0xba800000};
  if (processor.starts_with("gfx10")) return {0xbf900001, 0xbe802000, 0xbb000000};
  return {0xbfb60001, 0xbe804800, 0xba000000};
}

// Instructions without their operands.
constexpr uint32_t kSop1Opcode = 0xff80ff00, kSopkOpcode = 0xff800000;

struct Search {
  bool found = false;
  uint64_t searched_bytes = 0;
};

// Searches the code at addresses [begin, end) that the file has for a word for which `is_such`
// holds.
template <class F>
Search search(const CodeObject& object, uint64_t begin, uint64_t end, F&& is_such) {
  Search result;
  for (const Elf64_Phdr& segment : object.elf->segments) {
    if ((segment.p_flags & PF_X) == 0) continue;
    const uint64_t first = std::max(begin, segment.p_vaddr);
    const uint64_t last = std::min(end, segment.p_vaddr + segment.p_filesz);
    if (first >= last) continue;
    result.searched_bytes += last - first;
    // Instructions are aligned to 4 bytes in memory.
    for (uint64_t at = (first + 3) / 4 * 4; at + 4 <= last && !result.found; at += 4)
      result.found =
          is_such(*read_at<uint32_t>(object.bytes, segment.p_offset + (at - segment.p_vaddr)));
  }
  return result;
}

}  // namespace

bool can_call_host(const CodeObject& object) {
  const uint32_t interrupt = words_of(object.target.processor).send_interrupt;
  return search(object, 0, UINT64_MAX, [=](uint32_t word) { return word == interrupt; }).found;
}

bool can_call_host(const CodeObject& object, std::string_view kernel) {
  const Elf64_Sym* const symbol = object.elf->find(kernel);
  if (symbol == nullptr || symbol->st_size == 0 || symbol->st_size > UINT64_MAX - symbol->st_value)
    return true;  // its code is unknown
  const Words words = words_of(object.target.processor);
  const Search result =
      search(object, symbol->st_value, symbol->st_value + symbol->st_size, [&](uint32_t word) {
        const uint32_t sop1 = word & kSop1Opcode;
        return word == words.send_interrupt || sop1 == words.set_pc ||
               sop1 == words.set_pc + 0x100 || (word & kSopkOpcode) == words.call;
      });
  return result.found || result.searched_bytes != symbol->st_size;
}

}  // namespace uptempo
