#include "device/races/shadow.hpp"

namespace uptempo::vgpu::races {

void Line::merge() {
  for (size_t i = 0; i < size(); ++i) {
    for (size_t j = size(); j-- > i + 1;) {
      if (!at(i).same_history(at(j))) continue;
      at(i).mask |= at(j).mask;
      at(j) = more_.back();
      more_.pop_back();
    }
  }
}

}  // namespace uptempo::vgpu::races
