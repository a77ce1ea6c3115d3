#include <uptempo/aql/printable.hpp>

#include <string>

#include "test/support/catch.hpp"

using uptempo::aql::Lines;
using uptempo::aql::printable;

TEST_CASE("text without control characters stays as it is") {
  for (const char* const text :
       {"", "fill(int*)", "a \"quoted\" \\ name",
        "na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80", "\xc2\xa0"})
    CHECK(printable(text) == text);
}

TEST_CASE("control characters show as their bytes: C0, DEL and C1") {
  CHECK(printable("a\x1b[31mb") == "a\\x1b[31mb");
  CHECK(printable("a\nb\tc\rd") == "a\\x0ab\\x09c\\x0dd");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(printable("\x7f") == "\\x7f");
  CHECK(printable("\xc2\x80\xc2\x9b\xc2\x9f") == "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f");
}

TEST_CASE("text that a program has laid out keeps its lines and tabs, and nothing else") {
  CHECK(printable("a\n\tb\r\x1b", Lines::kept) == "a\n\tb\\x0d\\x1b");
}

// Table 3-7 of the Unicode Standard 15, "Well-Formed UTF-8 Byte Sequences".
TEST_CASE("bytes that are not UTF-8 show one by one") {
  CHECK(printable("\xff") == "\\xff");
  CHECK(printable("\x80") == "\\x80");
  CHECK(printable("a\xc3") == "a\\xc3");                           // cut off
  CHECK(printable("\xe6\x97z") == "\\xe6\\x97z");                  // cut off by a letter
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");                    // two bytes for '/'
  CHECK(printable("\xe0\x9f\xbf") == "\\xe0\\x9f\\xbf");           // three for U+07FF
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
  CHECK(printable("\xf0\x8f\xbf\xbf") == "\\xf0\\x8f\\xbf\\xbf");  // four for U+FFFF
  CHECK(printable("\xf5\x80\x80\x80") == "\\xf5\\x80\\x80\\x80");
}

TEST_CASE("every byte, alone, becomes valid text") {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    const std::string shown = printable(text);
    CAPTURE(byte, shown);
    CHECK((shown == text) == (byte >= 0x20 && byte < 0x7f));
    for (const char c : shown) CHECK((c >= 0x20 && c < 0x7f));
  }
}
