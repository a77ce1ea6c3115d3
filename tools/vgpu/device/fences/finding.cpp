#include "device/fences/finding.hpp"

#include <array>

namespace uptempo::vgpu::fences {

std::string_view class_name(Finding::Class what) noexcept {
  constexpr std::array<std::string_view, 3> names{"unordered", "stale", "unreleased"};
  return names[static_cast<size_t>(what)];
}

}  // namespace uptempo::vgpu::fences
