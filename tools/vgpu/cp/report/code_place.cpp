#include "cp/report/code_place.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "cp/report/register_set.hpp"

namespace uptempo::vgpu {
namespace {

// Loops that are longer compute more than they wait.
constexpr uint32_t kMaxLoopBytes = 1024;

// Not checked by ThreadSanitizer: the program may write there meanwhile.
[[gnu::no_sanitize_thread, gnu::noinline]] uint32_t word_at(const std::byte* bytes) noexcept {
  uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

class CodeReader {
 public:
  CodeReader(AddressSpace::Reader& memory, gfx9::Target target)
      : memory_(memory), target_(target) {}

  // Opcode::invalid if nothing is mapped there.
  gfx9::Instruction at(GpuAddress address) {
    uint32_t words[2] = {};
    size_t count = 0;
    for (; count < 2; ++count) {
      const std::byte* const bytes =
          memory_.translate(address + 4 * count, sizeof words[0], Access::execute);
      if (bytes == nullptr) break;
      words[count] = word_at(bytes);
    }
    return gfx9::decode(std::span(words).first(count), target_);
  }

 private:
  AddressSpace::Reader& memory_;
  const gfx9::Target target_;
};

bool is_branch(gfx9::Opcode opcode) noexcept {
  using enum gfx9::Opcode;
  switch (opcode) {
    case s_branch:
    case s_cbranch_scc0:
    case s_cbranch_scc1:
    case s_cbranch_vccz:
    case s_cbranch_vccnz:
    case s_cbranch_execz:
    case s_cbranch_execnz:
      return true;
    default:
      return false;
  }
}

GpuAddress branch_target(const gfx9::Instruction& branch, GpuAddress at) noexcept {
  return at + 4 + static_cast<uint64_t>(int64_t{static_cast<int32_t>(branch.literal)} * 4);
}

bool loads(std::string_view mnemonic) noexcept {
  return mnemonic.find("_load") != std::string_view::npos ||
         mnemonic.find("_atomic") != std::string_view::npos || mnemonic.starts_with("ds_read") ||
         mnemonic.starts_with("ds_cmpst");
}

constexpr unsigned kNoScalarAddress = 0x7f;

std::optional<RegisterSet> address_registers(const gfx9::Instruction& access) noexcept {
  using gfx9::FlatSegment, gfx9::Format;
  if (access.format == Format::smem && gfx9::mnemonic(access.opcode).starts_with("s_load") &&
      !access.offset_is_sgpr)
    return RegisterSet{.scalar = access.saddr, .scalars = 2};
  if (access.format != Format::flat || access.segment == FlatSegment::scratch) return std::nullopt;
  if (access.saddr == kNoScalarAddress) return RegisterSet{.vector = access.addr, .vectors = 2};
  return RegisterSet{.scalar = access.saddr, .scalars = 2, .vector = access.addr, .vectors = 1};
}

}  // namespace

CodePlace code_place(AddressSpace::Reader& memory, GpuAddress pc, gfx9::Target target) {
  CodePlace place;
  CodeReader code(memory, target);
  const gfx9::Instruction first = code.at(pc);
  if (first.opcode == gfx9::Opcode::invalid) return place;
  place.readable = true;
  place.instruction = gfx9::mnemonic(first.opcode);
  place.after_sleep = code.at(pc - 4).opcode == gfx9::Opcode::s_sleep;
  for (GpuAddress at = pc; at < pc + kMaxLoopBytes;) {
    const gfx9::Instruction instruction = code.at(at);
    if (instruction.opcode == gfx9::Opcode::invalid || instruction.opcode == gfx9::Opcode::s_endpgm)
      return place;
    if (is_branch(instruction.opcode)) {
      const GpuAddress back = branch_target(instruction, at);
      if (back <= pc && at - back < kMaxLoopBytes) {
        place.loop_begin = back;
        place.loop_end = at;
        break;
      }
    }
    at += instruction.size_bytes;
  }
  if (place.loop_begin == 0) return place;
  std::vector<LoopInstruction> loop;
  std::optional<size_t> access;
  for (GpuAddress at = place.loop_begin; at <= place.loop_end;) {
    loop.push_back({at, code.at(at)});
    const gfx9::Instruction& instruction = loop.back().instruction;
    const std::string_view name = gfx9::mnemonic(instruction.opcode);
    place.loop_sleeps |= instruction.opcode == gfx9::Opcode::s_sleep;
    if (!access && loads(name)) {
      place.access = name;
      place.access_at = at;
      access = loop.size() - 1;
    }
    at += instruction.size_bytes;
  }
  place.loop_instructions = static_cast<uint32_t>(loop.size());
  const auto registers = access ? address_registers(loop[*access].instruction) : std::nullopt;
  if (!registers || std::ranges::any_of(loop, [&](const LoopInstruction& each) {
        return may_write(each.instruction, *registers);
      }))
    return place;
  place.addressed = loop[*access].instruction;
  place.condition = loop_condition(loop, *access);
  return place;
}

std::optional<GpuAddress> accessed_address(const gfx9::Instruction& access,
                                           const WaveRegisters& held) noexcept {
  const auto registers = address_registers(access);
  if (!registers || registers->scalar + registers->scalars > held.scalar.size() ||
      registers->vector + registers->vectors > held.vector.size())
    return std::nullopt;
  const auto pair = [](const auto& file, unsigned first) {
    return file[first] | GpuAddress{file[first + 1]} << 32;
  };
  GpuAddress address = static_cast<GpuAddress>(int64_t{access.offset});
  if (registers->scalars == 2) address += pair(held.scalar, registers->scalar);
  if (registers->vectors == 2) address += pair(held.vector, registers->vector);
  if (registers->vectors == 1) address += held.vector[registers->vector];
  return address;
}

}  // namespace uptempo::vgpu
