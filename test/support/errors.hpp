// The message of a call that must fail, and calls that succeed in the end.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "test/support/eventually.hpp"
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

// Repeats a call whose own patience is too short for a busy machine. Returns false if it still
// throws an Expected after kHang.
template <class Expected, class F>
bool eventually_succeeds(F&& f) {
  return eventually([&] { return error_of<Expected>(f) == "no error"; });
}

}  // namespace uptempo::test
