// A limit of nesting for JSON that a tool reads. nlohmann's parser has none, but its functions that
// copy, compare or print a value recurse: a file of nested lists would overflow the stack.
//
// Thread safety: pure functions.
#pragma once

#include <stdexcept>
#include <string>

namespace uptempo::support {

inline constexpr int kDeepestJson = 64;

// A callback for Json::parse(). Throws std::runtime_error for deeper values.
template <class Json>
auto no_deeper_json() {
  return [](int depth, typename Json::parse_event_t, Json&) {
    if (depth > kDeepestJson)
      throw std::runtime_error("its values are nested deeper than " + std::to_string(kDeepestJson) +
                               " levels");
    return true;
  };
}

}  // namespace uptempo::support
