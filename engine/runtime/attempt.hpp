// attempt(): the try_ form of a function that throws Error. Private: headers that users compile
// without exceptions contain no try block.
#pragma once

#include <utility>

#include <uptempo/runtime/tried.hpp>

namespace uptempo::detail {

// Returns what `f` returns, a Tried, or the Error that it throws as a refusal. Misuse is thrown.
template <class F>
auto attempt(F&& f) -> decltype(std::forward<F>(f)()) {
  try {
    return std::forward<F>(f)();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::misuse) throw;
    return Refusal(error);
  }
}

}  // namespace uptempo::detail
