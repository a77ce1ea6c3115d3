// say() for sentences that are made for it. Private: headers that users compile without exceptions
// contain no try block.
#pragma once

#include <concepts>
#include <exception>
#include <string>
#include <utility>

#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {

// Says the sentence that make() returns. Says nothing if make() throws, as it does when memory is
// short.
template <std::invocable Make>
void say(Make&& make) noexcept {
  try {
    say(std::string(std::forward<Make>(make)()));
  } catch (const std::exception&) {
  }
}

}  // namespace uptempo::detail
