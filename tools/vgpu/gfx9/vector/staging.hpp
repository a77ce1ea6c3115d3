// Operand forms that are not hot: fetching a source as 64 lanes with everything applied that SDWA, DPP, op_sel, abs and neg ask for, and putting a
// result back. Plain loops that the compiler vectorises; about 3 to 10 ns for each step.
#pragma once

#include "gfx9/vector/entry.hpp"

namespace uptempo::vgpu::gfx9::vector {

struct Pair {
  Vgpr half[2];
};

// Where each lane's DPP source is: the lane, or -1 for none. False when the control value means nothing on gfx9.
bool dpp_lanes(std::uint32_t control, std::int8_t (&lanes)[kLanes]) noexcept;

// Source i of `in` as type `type`: fills `lanes.src[i]`, using `room` where the register itself will not do. Takes lanes out of `write` that DPP
// disables.
void stage_source(const Wave& wave, const Instruction& in, unsigned i, Type type, Pair& room, Lanes& lanes,
                  std::uint64_t& write) noexcept;

// The instruction's sources as registers or spread scalars, nothing applied.
void stage_raw(const Wave& wave, const Instruction& in, unsigned i, Type type, Pair& room,
               Lanes& lanes) noexcept;

// omod, clamp and denormal flushing of a float result.
void modify_result(const Wave& wave, const Instruction& in, Type type, Pair& result) noexcept;

// Writes the lanes of `write`: SDWA selects, op_sel's high half, 16-bit results.
void write_result(Wave& wave, const Instruction& in, Type type, bool keeps_high, const Pair& result,
                  std::uint64_t write) noexcept;

// The host's float unit set to what MODE says about an instruction on these types, for as long as it lives.
class FloatMode {
 public:
  FloatMode(std::uint32_t mode, const Entry& entry) noexcept;
  ~FloatMode();
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  unsigned before_;
  unsigned set_;
};

}  // namespace uptempo::vgpu::gfx9::vector
