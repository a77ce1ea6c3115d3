#include "engine/runtime/say.hpp"

#include <cstdio>
#include <new>

#include "aql/printable.hpp"

namespace uptempo::detail {

void say(const std::string& sentence) noexcept {
  try {
    std::fprintf(stderr, "uptempo: %s\n", aql::printable(sentence, aql::Lines::kept).c_str());
  } catch (const std::bad_alloc&) {
    std::fputs("uptempo: a message is lost, because memory is exhausted\n", stderr);
  }
}

}  // namespace uptempo::detail
