// CallSite: the line of the program that made a call, as a defaulted last parameter.
//
//   Completion submit(CallSite site = CallSite::here());
//
// The compiler fills it in, so it costs two constants. std::source_location would do the same; the
// release of clang-tidy that checks this library does not know it.
//
// Thread safety: a value.
// Lifetime: `file` is a string literal of the caller's program or library, which must stay loaded.
#pragma once

#include <cstdint>

namespace uptempo {

struct CallSite {
  const char* file = nullptr;  // null: not known
  uint32_t line = 0;

  static constexpr CallSite here(const char* file = __builtin_FILE(),
                                 uint32_t line = __builtin_LINE()) noexcept {
    return {file, line};
  }
  friend bool operator==(const CallSite&, const CallSite&) = default;
};

}  // namespace uptempo
