// What a call that must fail says.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace uptempo::test {

// The message of what `f` throws, or "no error". An exception that is no Expected passes through, so the test case fails.
template <class Expected = std::exception, class F>
std::string error_of(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const Expected& error) {
    return error.what();
  }
  return "no error";
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace uptempo::test
