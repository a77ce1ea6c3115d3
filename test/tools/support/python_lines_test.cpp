// The table of locations of CPython: each form of an entry, by hand, and bytes that are no table.
// python/python_lines_test.py compares whole programs with CPython.
#include "tools/support/python_lines.hpp"

#include <random>
#include <vector>

#include "test/support/catch.hpp"

using uptempo::support::python_line;

namespace {

// The first byte of an entry.
constexpr uint8_t entry(unsigned form, unsigned units) {
  return static_cast<uint8_t>(0x80u | form << 3u | (units - 1));
}

}  // namespace

TEST_CASE("each form of an entry has its line") {
  const std::vector<uint8_t> table{
      entry(15, 1),                          // 0: no line
      entry(0, 2),  0x12,                    // 1, 2: the first line
      entry(9, 1),  0x7f,                    // 3: the same
      entry(10, 1), 1,    2,                 // 4: the same
      entry(11, 1), 1,    2,                 // 5: one more
      entry(12, 8), 1,    2,                 // 6 to 13: two more
      entry(13, 1), 0x4c, 0x01,              // 14: 38 more
      entry(14, 1), 0x05, 3,    0x41, 1, 7,  // 15: two less; it ends three lines later
      entry(15, 1),                          // 16: no line
      entry(0, 1),  0,                       // 17: the line of 15
      entry(13, 1), 0x47, 0x7f, 0x01,        // 18: (7 + 63 * 64 + 4096) / 2 less
  };
  constexpr int64_t kFirst = 5000;
  const auto line = [&](int64_t unit) { return python_line(table, kFirst, unit); };
  CHECK(line(-1) == kFirst);
  CHECK(line(0) == 0);
  for (const int64_t unit : {1, 2, 3, 4}) CHECK(line(unit) == kFirst);
  CHECK(line(5) == kFirst + 1);
  for (const int64_t unit : {6, 9, 13}) CHECK(line(unit) == kFirst + 3);
  CHECK(line(14) == kFirst + 3 + 38);
  CHECK(line(15) == kFirst + 3 + 38 - 2);
  CHECK(line(16) == 0);
  CHECK(line(17) == kFirst + 3 + 38 - 2);
  CHECK(line(18) == kFirst + 3 + 38 - 2 - (7 + 63 * 64 + 4096) / 2);
  CHECK(line(19) == 0);
}

TEST_CASE("the decoder stays in the table, whatever it holds") {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> table(random() % 24);
    for (uint8_t& byte : table) byte = static_cast<uint8_t>(random());
    if (!table.empty()) table[0] |= 0x80;
    table.shrink_to_fit();
    for (const int64_t unit : {0, 3, 50, 1000}) (void)python_line(table, 1, unit);
  }
  CHECK(python_line({}, 7, 0) == 0);
}
