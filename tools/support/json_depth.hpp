// A limit of nesting for JSON that a tool reads. nlohmann's parser has none, but its functions that
// copy, compare or print a value recurse: a file of nested lists would overflow the stack.
//
// Thread safety: pure functions.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace uptempo::support {

inline constexpr int kDeepestJson = 64;

// Throws std::runtime_error for deeper values. Call it before Json::parse(): a parse with a
// callback takes time that grows with the square of a list's length.
inline void require_shallow_json(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string) {
      if (c == '\\') ++i;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepestJson)
        throw std::runtime_error("values are nested deeper than " + std::to_string(kDeepestJson) +
                                 " levels");
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

// Throws std::runtime_error for deeper values, and what Json::parse() throws.
template <class Json>
Json parse_shallow_json(std::string_view text) {
  require_shallow_json(text);
  return Json::parse(text);
}

}  // namespace uptempo::support
