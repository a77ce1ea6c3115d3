#include "cp/report/register_set.hpp"

#include <string_view>
#include <utility>

#include "gfx9/decode/decoder.hpp"

namespace uptempo::vgpu {
namespace {

constexpr bool overlap(unsigned a, unsigned count_a, unsigned b, unsigned count_b) noexcept {
  return a < b + count_b && b < a + count_a;
}

// Whether a vector instruction has a second, scalar result.
bool has_scalar_result(std::string_view name) noexcept {
  return name.find("_co_") != std::string_view::npos || name.starts_with("v_div_scale") ||
         name.starts_with("v_mad_u64") || name.starts_with("v_mad_i64");
}

// Registers that a load or a returning atomic writes, at most.
unsigned loaded_registers(const gfx9::Instruction& instruction, std::string_view name) noexcept {
  constexpr unsigned kMost = 16;
  if (instruction.format == gfx9::Format::mubuf || instruction.format == gfx9::Format::mtbuf)
    return kMost;
  for (const auto& [suffix, count] : {std::pair<std::string_view, unsigned>{"x16", 16},
                                      {"x8", 8},
                                      {"x4", 4},
                                      {"x3", 3},
                                      {"x2", 2},
                                      {"b128", 4},
                                      {"b96", 3},
                                      {"time", 2}})
    if (name.ends_with(suffix)) return count;
  return (name.ends_with("64") ? 2 : 1) * (name.find("read2") != std::string_view::npos ? 2 : 1);
}

}  // namespace

bool may_write(const gfx9::Instruction& instruction, const RegisterSet& registers) noexcept {
  using gfx9::Format;
  constexpr unsigned kPair = 2;
  const std::string_view name = gfx9::mnemonic(instruction.opcode);
  for (const char* const unknown : {"mfma", "smfmac", "v_swap", "movrel", "gpr_idx", "s_call",
                                    "s_setpc", "s_cbranch_g_fork", "s_cbranch_i_fork"})
    if (name.find(unknown) != std::string_view::npos) return true;
  const auto scalar = [&](unsigned first, unsigned count) {
    return overlap(first, count, registers.scalar, registers.scalars);
  };
  const auto vector = [&](unsigned first, unsigned count) {
    return overlap(first, count, registers.vector, registers.vectors);
  };
  switch (instruction.format) {
    case Format::sopp:
    case Format::sopc:
      return false;
    case Format::sop1:
    case Format::sop2:
    case Format::sopk:
      return scalar(instruction.dst, kPair);
    case Format::smem:
      return scalar(instruction.dst, loaded_registers(instruction, name));
    case Format::ds:
    case Format::flat:
    case Format::mubuf:
    case Format::mtbuf:
      return name.find("_store") == std::string_view::npos &&
             vector(instruction.dst, loaded_registers(instruction, name));
    case Format::vop1:
    case Format::vop2:
    case Format::vopc:
    case Format::vop3:
    case Format::vop3p:
      if (name.starts_with("v_cmp") || name.starts_with("v_read"))
        return scalar(instruction.dst, kPair);
      return vector(instruction.dst, kPair) ||
             (has_scalar_result(name) && scalar(instruction.sdst, kPair));
    case Format::other:
      break;
  }
  return true;
}

}  // namespace uptempo::vgpu
