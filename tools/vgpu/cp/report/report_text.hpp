// Lines of a report: at most 96 columns, broken at spaces, continued four columns further in.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace uptempo::vgpu {

inline std::string hex_text(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

class ReportText {
 public:
  static constexpr size_t kColumns = 96;

  void line(size_t indent, std::string_view text) {
    while (text.size() + indent > kColumns) {
      const size_t space = text.rfind(' ', kColumns - indent);
      if (space == std::string_view::npos || space == 0) break;  // a word longer than a line
      append(indent, text.substr(0, space));
      text.remove_prefix(space + 1);
      if (!continued_) indent += 4;
      continued_ = true;
    }
    append(indent, text);
    continued_ = false;
  }

  const std::string& text() const noexcept { return text_; }

 private:
  void append(size_t indent, std::string_view text) {
    text_.append(indent, ' ');
    text_ += text;
    text_ += '\n';
  }

  std::string text_;
  bool continued_ = false;
};

}  // namespace uptempo::vgpu
