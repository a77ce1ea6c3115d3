#include "cp/report/code_place.hpp"

#include <cstring>

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

// The registers that hold the address of an access.
struct AddressRegisters {
  unsigned scalar = 0, scalars = 0, vector = 0, vectors = 0;
};

std::optional<AddressRegisters> address_registers(const gfx9::Instruction& access) noexcept {
  using gfx9::FlatSegment, gfx9::Format;
  if (access.format == Format::smem && gfx9::mnemonic(access.opcode).starts_with("s_load") &&
      !access.offset_is_sgpr)
    return AddressRegisters{.scalar = access.saddr, .scalars = 2};
  if (access.format != Format::flat || access.segment == FlatSegment::scratch) return std::nullopt;
  if (access.saddr == kNoScalarAddress)
    return AddressRegisters{.vector = access.addr, .vectors = 2};
  return AddressRegisters{
      .scalar = access.saddr, .scalars = 2, .vector = access.addr, .vectors = 1};
}

constexpr bool overlap(unsigned a, unsigned count_a, unsigned b, unsigned count_b) noexcept {
  return a < b + count_b && b < a + count_a;
}

// Whether a vector instruction has a second, scalar result.
bool has_scalar_result(std::string_view name) noexcept {
  return name.find("_co_") != std::string_view::npos || name.starts_with("v_div_scale") ||
         name.starts_with("v_mad_u64") || name.starts_with("v_mad_i64");
}

// Whether the instruction may write one of the registers. True where this is not known.
bool may_write(const gfx9::Instruction& instruction, const AddressRegisters& registers) noexcept {
  using gfx9::Format;
  constexpr unsigned kMostLoaded = 16, kPair = 2;
  const std::string_view name = gfx9::mnemonic(instruction.opcode);
  for (const char* const unknown : {"mfma", "smfmac", "swap", "movrel", "gpr_idx", "s_call",
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
      return scalar(instruction.dst, kMostLoaded);
    case Format::ds:
    case Format::flat:
    case Format::mubuf:
    case Format::mtbuf:
      return vector(instruction.dst, kMostLoaded);
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
  std::optional<gfx9::Instruction> access;
  for (GpuAddress at = place.loop_begin; at <= place.loop_end;) {
    const gfx9::Instruction instruction = code.at(at);
    const std::string_view name = gfx9::mnemonic(instruction.opcode);
    ++place.loop_instructions;
    place.loop_sleeps |= instruction.opcode == gfx9::Opcode::s_sleep;
    if (place.access.empty() && loads(name)) {
      place.access = name;
      place.access_at = at;
      access = instruction;
    }
    at += instruction.size_bytes;
  }
  const auto registers = access ? address_registers(*access) : std::nullopt;
  if (!registers) return place;
  for (GpuAddress at = place.loop_begin; at <= place.loop_end;) {
    const gfx9::Instruction instruction = code.at(at);
    if (may_write(instruction, *registers)) return place;
    at += instruction.size_bytes;
  }
  place.addressed = access;
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
