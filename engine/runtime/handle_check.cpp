#include "engine/runtime/detail/handle_check.hpp"

#include <cstdio>
#include <cstdlib>

namespace uptempo::detail {

void end_with(const char* sentence) noexcept {
  std::fprintf(stderr, "uptempo: %s\n", sentence);
  std::abort();
}

}  // namespace uptempo::detail
