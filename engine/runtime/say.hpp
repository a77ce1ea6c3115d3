// Messages to the program's user from functions that cannot throw. Private to the engine.
//
// Thread safety: any thread.
#pragma once

#include <concepts>
#include <exception>
#include <string>

namespace uptempo::detail {

// Writes "uptempo: <sentence>" and a line end to stderr, with one call.
void say(const std::string& sentence) noexcept;
// The same for the sentence that make() returns. Says nothing if make() throws, as it does when
// memory is short.
template <std::invocable Make>
void say(Make&& make) noexcept {
  try {
    say(std::string(make()));
  } catch (const std::exception&) {
  }
}

}  // namespace uptempo::detail
