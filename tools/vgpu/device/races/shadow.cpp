#include "device/races/shadow.hpp"

#include <bit>

namespace uptempo::vgpu::races {

void Line::merge(uint64_t changed) {
  uint64_t emptied = 0;
  for (; changed != 0; changed &= changed - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(changed));
    for (size_t j = 0; j < size(); ++j) {
      if (j == i || (emptied >> j & 1) != 0 || !at(i).same_history(at(j))) continue;
      at(j).mask |= at(i).mask;
      emptied |= uint64_t{1} << i;
      break;
    }
  }
  for (size_t i = size(); emptied != 0 && i-- > 0;) {
    if ((emptied >> i & 1) == 0) continue;
    emptied &= ~(uint64_t{1} << i);
    at(i) = more_.back();
    more_.pop_back();
  }
}

}  // namespace uptempo::vgpu::races
