// The message of a call that must fail.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "test/support/text.hpp"

namespace uptempo::test {

// Returns the message of what `f` throws, or "no error". An exception of another type than Expected
// passes through, so the test case fails.
template <class Expected = std::exception, class F>
std::string error_of(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const Expected& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace uptempo::test
