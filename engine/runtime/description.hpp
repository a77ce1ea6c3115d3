// Text of a describe() function: one fact a line, "what: value", for a person. Nothing parses it,
// so lines may change from release to release. Private.
//
// Thread safety: thread-compatible.
#pragma once

#include <string>
#include <string_view>

namespace uptempo::detail {

class Description {
 public:
  explicit Description(std::string_view title) : text_(std::string(title) + '\n') {}

  Description& line(std::string_view what, std::string_view value) {
    text_.append("  ").append(what).append(": ").append(value).append("\n");
    return *this;
  }
  // Adds the lines of another description, indented.
  Description& part(std::string_view text);

  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

}  // namespace uptempo::detail
