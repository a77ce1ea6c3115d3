#include "engine/runtime/say.hpp"

#include <cstdio>

namespace uptempo::detail {

void say(const std::string& sentence) noexcept {
  std::fprintf(stderr, "uptempo: %s\n", sentence.c_str());
}

}  // namespace uptempo::detail
