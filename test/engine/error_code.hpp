// The ErrorCode of a call that must fail, in words.
#pragma once

#include <string>
#include <utility>

#include <uptempo/runtime/error.hpp>

namespace uptempo::test {

// Returns the name of the code of the Error that `f` throws, or "no error". An exception of another
// type passes through, so the test case fails.
template <class F>
std::string code_of_error(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const Error& error) {
    return to_string(error.code());
  }
  return "no error";
}

}  // namespace uptempo::test
