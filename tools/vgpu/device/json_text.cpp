#include "device/json_text.hpp"

#include <algorithm>

namespace uptempo::vgpu {
namespace {

// Returns the length of the UTF-8 sequence (RFC 3629) at the start of `text`; 0 if there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [text](size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead > 0xf4 || length > text.size()) return 0;
  for (size_t at = 1; at < length; ++at)
    if ((byte(at) & 0xc0) != 0x80) return 0;
  const bool too_long = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool no_character = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
  return too_long || no_character ? 0 : length;
}

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) {
      result += "\\ufffd";
    } else if (static_cast<unsigned char>(text[0]) < 0x20) {
      result += ' ';
    } else {
      if (text[0] == '"' || text[0] == '\\') result += '\\';
      result += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return result + '"';
}

}  // namespace uptempo::vgpu
