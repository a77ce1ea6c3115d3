#include "cp/report/code_place.hpp"

#include <cstring>

namespace uptempo::vgpu {
namespace {

// Loops that are longer compute more than they wait.
constexpr uint32_t kMaxLoopBytes = 1024;

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
      std::memcpy(&words[count], bytes, sizeof words[0]);
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
  for (GpuAddress at = place.loop_begin; at <= place.loop_end;) {
    const gfx9::Instruction instruction = code.at(at);
    const std::string_view name = gfx9::mnemonic(instruction.opcode);
    ++place.loop_instructions;
    place.loop_sleeps |= instruction.opcode == gfx9::Opcode::s_sleep;
    if (place.access.empty() && loads(name)) {
      place.access = name;
      place.access_at = at;
    }
    at += instruction.size_bytes;
  }
  return place;
}

}  // namespace uptempo::vgpu
