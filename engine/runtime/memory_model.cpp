#include "engine/runtime/memory_model.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace uptempo {

bool has_gfx9_caches(const Agent& agent) noexcept {
  static constexpr std::array<std::string_view, 7> kKnown = {"gfx900", "gfx902", "gfx904", "gfx906",
                                                             "gfx908", "gfx909", "gfx90a"};
  return std::ranges::find(kKnown, agent.name()) != kKnown.end();
}

}  // namespace uptempo
