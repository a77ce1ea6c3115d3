// printable(): text that comes from a file or another program, made safe for a terminal, a report
// or a log. Names of kernels, files and streams may hold any bytes.
//
// Thread safety: pure function. Allocates.
// Sources: RFC 3629 (UTF-8, "Syntax of UTF-8 Byte Sequences"); ECMA-48 (control functions: C0, and
// C1 from U+0080 to U+009F, which terminals obey like ESC sequences).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace uptempo::aql {

enum class Lines : uint8_t {
  one,   // line breaks are escaped, too
  kept,  // line feeds and tabs stay: text that a program has laid out
};

namespace detail {

// Length of the UTF-8 sequence at the start of `text`; 0 if there is none.
constexpr size_t utf8_length(std::string_view text) noexcept {
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

}  // namespace detail

// Returns `text` as valid UTF-8 without control characters. Each byte of one, and each byte that is
// not UTF-8, becomes \xNN; everything else stays.
inline std::string printable(std::string_view text, Lines lines = Lines::one) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t length = detail::utf8_length(text);
    const bool is_layout = lines == Lines::kept && (first == '\n' || first == '\t');
    const bool is_c1 = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    const bool is_control = length == 1 && (first < 0x20 || first == 0x7f) && !is_layout;
    const size_t taken = length == 0 ? 1 : length;
    if (length == 0 || is_c1 || is_control) {
      for (const char c : text.substr(0, taken)) {
        const auto byte = static_cast<unsigned char>(c);
        out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      }
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(taken);
  }
  return out;
}

}  // namespace uptempo::aql
