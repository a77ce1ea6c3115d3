#include "cp/report/loop_condition.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cp/report/register_set.hpp"
#include "cp/report/report_text.hpp"
#include "gfx9/decode/decoder.hpp"
#include "gfx9/decode/operands.hpp"

namespace uptempo::vgpu {
namespace {

using gfx9::Format;
using gfx9::Instruction;
using gfx9::Opcode;
using gfx9::OperandCode;

using gfx9::kScc;

constexpr Relation kNegated[] = {Relation::ne, Relation::eq, Relation::ge,
                                 Relation::lt, Relation::le, Relation::gt};
constexpr Relation kSwapped[] = {Relation::eq, Relation::ne, Relation::gt,
                                 Relation::le, Relation::lt, Relation::ge};

Relation negated(Relation relation) { return kNegated[static_cast<size_t>(relation)]; }
Relation swapped(Relation relation) { return kSwapped[static_cast<size_t>(relation)]; }

// A comparison of integers: its relation and type.
struct Comparison {
  Relation relation;
  bool wide, is_signed;
};

std::optional<Comparison> comparison(const Instruction& instruction) {
  std::string_view name = gfx9::mnemonic(instruction.opcode);
  for (const std::string_view prefix : {"s_cmpk_", "s_cmp_", "v_cmp_"}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    constexpr std::pair<std::string_view, Relation> kRelations[] = {
        {"eq", Relation::eq}, {"ne", Relation::ne}, {"lg", Relation::ne}, {"lt", Relation::lt},
        {"le", Relation::le}, {"gt", Relation::gt}, {"ge", Relation::ge}};
    for (const auto& [text, relation] : kRelations) {
      if (!name.starts_with(text) || name.size() < text.size() + 4) continue;
      const std::string_view type = name.substr(text.size() + 1);
      if (type == "u32" || type == "i32" || type == "u64" || type == "i64")
        return Comparison{relation, type.ends_with("64"), type.starts_with("i")};
    }
  }
  return std::nullopt;
}

RegisterSet registers_of(OperandCode code, bool wide) {
  const unsigned count = wide ? 2 : 1;
  if (gfx9::is_vgpr(code)) return {.vector = unsigned{code} - gfx9::kFirstVgpr, .vectors = count};
  if (code < gfx9::kFirstConstant) return {.scalar = code, .scalars = count};
  return {};
}

// The first register that the load writes, as an operand code.
std::optional<OperandCode> loaded_register(const Instruction& load) {
  const std::string_view name = gfx9::mnemonic(load.opcode);
  constexpr unsigned kAccumulates = 1u << 3;
  if (load.format == Format::smem) return static_cast<OperandCode>(load.dst);
  if (load.format != Format::flat || load.lds || (load.acc & kAccumulates) != 0 ||
      name.find("d16") != std::string_view::npos ||
      (name.find("_atomic") != std::string_view::npos && !load.glc))
    return std::nullopt;
  return static_cast<OperandCode>(gfx9::kFirstVgpr + load.dst);
}

// A constant of 32 bits.
std::optional<uint32_t> constant_of(const Instruction& instruction, OperandCode code) {
  if (code == gfx9::kLiteral) return instruction.literal;
  if (gfx9::is_integer_constant(code)) return gfx9::constant32(code);
  return std::nullopt;
}

// Follows the value through moves and masks. Returns false if the instruction overwrites it or is
// not understood.
bool follow(const Instruction& instruction, OperandCode& value, uint32_t& mask, bool wide) {
  const bool plain = instruction.modifier == gfx9::OperandModifier::none;
  switch (instruction.opcode) {
    case Opcode::v_readfirstlane_b32:
    case Opcode::s_mov_b32:
      if (instruction.src[0] != value) break;
      value = static_cast<OperandCode>(instruction.dst);
      return true;
    case Opcode::v_mov_b32:
      if (instruction.src[0] != value || !plain) break;
      value = static_cast<OperandCode>(gfx9::kFirstVgpr + instruction.dst);
      return true;
    case Opcode::v_and_b32:
    case Opcode::s_and_b32:
      for (unsigned first : {0u, 1u}) {
        const auto constant = constant_of(instruction, instruction.src[1 - first]);
        if (instruction.src[first] != value || !constant || !plain) continue;
        mask &= *constant;
        value = static_cast<OperandCode>(instruction.opcode == Opcode::v_and_b32
                                             ? gfx9::kFirstVgpr + instruction.dst
                                             : instruction.dst);
        return true;
      }
      break;
    default:
      break;
  }
  return !may_write(instruction, registers_of(value, wide));
}

// Whether a branch leaves the loop when it is taken, or goes back to its begin; nullopt: neither.
std::optional<bool> leaves(std::span<const LoopInstruction> loop, const LoopInstruction& branch) {
  const GpuAddress target =
      branch.at + 4 +
      static_cast<uint64_t>(int64_t{static_cast<int32_t>(branch.instruction.literal)} * 4);
  if (target == loop.front().at) return false;
  if (target < loop.front().at || target > loop.back().at) return true;
  return std::nullopt;
}

// Whether the loop ends if the comparison at `index` holds (true) or if it does not (false).
std::optional<bool> ends_if(std::span<const LoopInstruction> loop, size_t index) {
  const Instruction& compare = loop[index].instruction;
  const bool scalar = compare.format == Format::sopc || compare.format == Format::sopk;
  unsigned result = scalar ? kScc : compare.dst;
  bool holds = true;          // the comparison, if the result is set
  unsigned collected = kScc;  // registers with the lanes that leave
  for (const LoopInstruction& next : loop.subspan(index + 1)) {
    const Instruction& instruction = next.instruction;
    const auto* const src = instruction.src;
    const auto branches = [&](bool if_set) -> std::optional<bool> {
      const auto leaving = leaves(loop, next);
      if (!leaving) return std::nullopt;
      return (*leaving == if_set) == holds;
    };
    switch (instruction.opcode) {
      case Opcode::s_waitcnt:
      case Opcode::s_nop:
      case Opcode::s_sleep:
        continue;
      case Opcode::s_and_b64:
      case Opcode::s_andn2_b64:
        // vcc = exec & [~] result, or another pair
        if (instruction.dst != gfx9::kExecLo && src[0] == gfx9::kExecLo && src[1] == result) {
          holds = holds != (instruction.opcode == Opcode::s_andn2_b64);
          result = instruction.dst;
          continue;
        }
        // exec = exec & ~collected
        if (instruction.opcode == Opcode::s_andn2_b64 && instruction.dst == gfx9::kExecLo &&
            src[0] == gfx9::kExecLo && src[1] == collected)
          return holds;
        return std::nullopt;
      case Opcode::s_or_b64:
        if (src[0] != result || src[1] != instruction.dst) return std::nullopt;
        collected = instruction.dst;
        continue;
      case Opcode::s_cbranch_vccnz:
      case Opcode::s_cbranch_vccz:
        if (result != gfx9::kVccLo) return std::nullopt;
        return branches(instruction.opcode == Opcode::s_cbranch_vccnz);
      case Opcode::s_cbranch_scc1:
      case Opcode::s_cbranch_scc0:
        if (result != kScc) return std::nullopt;
        return branches(instruction.opcode == Opcode::s_cbranch_scc1);
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

bool loads_64_bits(const Instruction& load) noexcept {
  return gfx9::mnemonic(load.opcode).ends_with("x2");
}

std::optional<LoopCondition> loop_condition(std::span<const LoopInstruction> loop, size_t access) {
  const auto loaded = loaded_register(loop[access].instruction);
  if (!loaded) return std::nullopt;
  const bool wide = loads_64_bits(loop[access].instruction);
  OperandCode value = *loaded;
  LoopCondition condition;
  // The comparison may be before the load, if the loop was entered in its middle.
  for (size_t step = 1; step < loop.size(); ++step) {
    const size_t index = (access + step) % loop.size();
    const Instruction& instruction = loop[index].instruction;
    const auto compares = comparison(instruction);
    const bool is_first = instruction.src[0] == value;
    const bool immediate = instruction.format == Format::sopk;
    if (!compares || !(is_first || (!immediate && instruction.src[1] == value))) {
      if (!follow(instruction, value, condition.mask, wide)) return std::nullopt;
      continue;
    }
    if (instruction.modifier != gfx9::OperandModifier::none) return std::nullopt;
    condition.relation = is_first ? compares->relation : swapped(compares->relation);
    condition.wide = compares->wide;
    condition.is_signed = compares->is_signed;
    condition.operand = immediate ? gfx9::kLiteral : instruction.src[is_first ? 1 : 0];
    condition.literal = instruction.literal;
    const RegisterSet operand = registers_of(condition.operand, condition.wide);
    if (std::ranges::any_of(loop, [&](const LoopInstruction& each) {
          return may_write(each.instruction, operand);
        }))
      return std::nullopt;
    if (const auto ends = ends_if(loop, index)) {
      condition.ends_loop = true;
      if (!*ends) condition.relation = negated(condition.relation);
    }
    return condition;
  }
  return std::nullopt;
}

std::string awaited_text(const LoopCondition& condition, const WaveRegisters& registers) {
  const OperandCode code = condition.operand;
  uint64_t value = 0;
  const auto read = [&](const auto& file, size_t first) {
    if (first + (condition.wide ? 1 : 0) >= file.size()) return false;
    value = file[first] | (condition.wide ? uint64_t{file[first + 1]} << 32 : 0);
    return true;
  };
  if (gfx9::is_vgpr(code)) {
    if (!read(registers.vector, code - gfx9::kFirstVgpr)) return {};
  } else if (code < gfx9::kFirstConstant) {
    if (!read(registers.scalar, code)) return {};
  } else if (code == gfx9::kLiteral) {
    value = condition.is_signed && condition.wide
                ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(condition.literal)})
                : condition.literal;
  } else if (gfx9::is_integer_constant(code)) {
    value = condition.wide ? gfx9::constant64(code) : gfx9::constant32(code);
  } else {
    return {};
  }
  const std::string number = !condition.is_signed ? hex_text(value)
                             : condition.wide     ? std::to_string(static_cast<int64_t>(value))
                                                  : std::to_string(static_cast<int32_t>(value));
  if (!condition.ends_loop) return ", and the loop compares it with " + number;
  constexpr const char* kRelations[] = {"", "not ", "< ", ">= ", "> ", "<= "};
  std::string text = ", and waits until it ";
  if (condition.mask != ~0u) text.append("& ").append(hex_text(condition.mask)).append(" ");
  return text.append("is ")
      .append(kRelations[static_cast<size_t>(condition.relation)])
      .append(number);
}

}  // namespace uptempo::vgpu
