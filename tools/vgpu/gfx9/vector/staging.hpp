// What staging operands needs besides loops over lanes: DPP's lane patterns and the host's float unit.
#pragma once

#include "gfx9/vector/entry.hpp"

namespace uptempo::vgpu::gfx9::vector {

struct Pair {
  Vgpr half[2];
};

// Where each lane's DPP source is.
struct DppPattern {
  uint32_t from[kLanes];  // the lane itself where there is no source
  uint64_t valid = 0;     // lanes that have a source
};
// nullptr when the control value means nothing on gfx9. The patterns are made once, about 20 us.
const DppPattern* dpp_pattern(uint32_t control) noexcept;

// The host's float unit set to what MODE says about an instruction on these types, for as long as it lives.
class FloatMode {
 public:
  FloatMode(uint32_t mode, const Entry& entry) noexcept;
  ~FloatMode();
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  unsigned before_;
  unsigned set_;
};

}  // namespace uptempo::vgpu::gfx9::vector
