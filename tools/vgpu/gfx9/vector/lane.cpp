// Instructions that are not one function per lane: moves between lanes and scalars, and two
// destinations.
#include <bit>
#include <utility>

#include "gfx9/vector/entry.hpp"

namespace uptempo::vgpu::gfx9::vector {
namespace {

// The value of a lane-select or scalar-like operand. A vector register gives its lane `lane`.
uint32_t value_in_lane(const Wave& wave, const Instruction& in, unsigned i, unsigned lane) {
  if (is_vgpr(in.src[i])) return wave.vgpr[in.src[i] - kFirstVgpr].lane[lane];
  return static_cast<uint32_t>(scalar_operand(wave, in, i, Type::u32));
}

const Op* readfirstlane(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec();
  const auto lane = exec == 0 ? 0u : static_cast<unsigned>(std::countr_zero(exec));
  wave.scalar[op.in.dst] = value_in_lane(wave, op.in, 0, lane);
  return next(op);
}

// EXEC does not apply to v_readlane and v_writelane.
const Op* readlane(const Op& op, Wave& wave) {
  const unsigned lane = value_in_lane(wave, op.in, 1, 0) & 63u;
  wave.scalar[op.in.dst] = value_in_lane(wave, op.in, 0, lane);
  return next(op);
}

const Op* writelane(const Op& op, Wave& wave) {
  const unsigned lane = value_in_lane(wave, op.in, 1, 0) & 63u;
  wave.vgpr[op.in.dst].lane[lane] = value_in_lane(wave, op.in, 0, lane);
  return next(op);
}

const Op* nop(const Op& op, Wave&) { return next(op); }

// Clears the sticky exception bits.
const Op* clrexcp(const Op& op, Wave& wave) {
  wave.trapsts &= ~0x1ffu;
  return next(op);
}

const Op* swap(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec();
  Vgpr& a = wave.vgpr[op.in.dst];
  Vgpr& b = wave.vgpr[op.in.src[0] - kFirstVgpr];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (exec >> lane & 1) std::swap(a.lane[lane], b.lane[lane]);
  }
  return next(op);
}

constexpr Entry kEntries[] = {
    own(Opcode::v_readfirstlane_b32, readfirstlane, 1),
    own(Opcode::v_readlane_b32, readlane, 2),
    own(Opcode::v_writelane_b32, writelane, 2),
    own(Opcode::v_nop, nop, 0),
    own(Opcode::v_clrexcp, clrexcp, 0),
    own(Opcode::v_swap_b32, swap, 1),
};

}  // namespace

std::span<const Entry> lane_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector
