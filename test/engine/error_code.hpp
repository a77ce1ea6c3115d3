// The ErrorCode of a call or try_ form that must fail, in words.
#pragma once

#include <string>
#include <utility>

#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/tried.hpp>

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

// The name of the code of a refusal, or "no error".
template <class T>
std::string code_of(const Tried<T>& tried) {
  return tried ? "no error" : to_string(tried.code());
}

// Throws the Error of a refusal, for tests of what it says.
template <class T>
void throw_refusal(const Tried<T>& tried) {
  if (!tried) throw tried.error();
}

}  // namespace uptempo::test
