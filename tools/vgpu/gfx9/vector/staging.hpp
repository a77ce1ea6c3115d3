// Parts of staging other than loops over lanes: DPP's lane patterns and the host's float unit.
#pragma once

#include "gfx9/vector/entry.hpp"

namespace uptempo::vgpu::gfx9::vector {

struct Pair {
  Vgpr half[2];
};

// The source lane of each lane under DPP.
struct DppPattern {
  uint32_t from[kLanes];  // the lane itself where there is no source
  uint64_t valid = 0;     // lanes that have a source
};
// Returns nullptr for control values that gfx9 does not define. The patterns are made once, in
// about 20 us.
const DppPattern* dpp_pattern(uint32_t control) noexcept;

// Sets the host's float unit as MODE specifies for an instruction on these types, for the lifetime
// of the object.
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
