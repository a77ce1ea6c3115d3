#include "tools/support/table.hpp"

#include "test/support/catch.hpp"

using uptempo::support::Align;
using uptempo::support::Table;
using uptempo::support::wrapped;

TEST_CASE(
    "columns are as wide as their widest cell, titles sit on the rule, lines have no trailing "
    "blanks") {
  Table table({{"name", Align::left}, {"us per\niteration"}, {"note", Align::left}});
  table.add_row({"a", "1.5", "x"});
  table.add_row({"longer", "12345678.9", ""});
  CHECK(table.text() ==
        "            us per\n"
        "name     iteration  note\n"
        "------------------------\n"
        "a              1.5  x\n"
        "longer  12345678.9\n");
}

TEST_CASE("a row of the wrong length is refused") {
  Table table({{"one"}, {"two"}});
  CHECK_THROWS_AS(table.add_row({"1"}), std::invalid_argument);
}

TEST_CASE("a table that is too wide becomes several, each with the columns that name the row") {
  Table table({{"row", Align::left}, {"of"}, {"first"}, {"second"}, {"third"}}, 2);
  table.add_row({"a", "1", "11111", "222222", "33333"});
  table.add_row({"b", "2", "4", "5", "6"});
  CHECK(table.text(24) ==
        "row  of  first  second\n"
        "----------------------\n"
        "a     1  11111  222222\n"
        "b     2      4       5\n"
        "\n"
        "row  of  third\n"
        "--------------\n"
        "a     1  33333\n"
        "b     2      6\n");
  CHECK(table.text(22) == table.text(24));
  CHECK(table.text(21) != table.text(22));
  // A column that is too wide even alone is not lost.
  CHECK(table.text(1).find("222222") != std::string::npos);
}

TEST_CASE("text is broken between words, and no word is lost") {
  CHECK(wrapped("one two three", 7) == "one two\nthree\n");
  CHECK(wrapped("one two three", 8, 2, "> ") == "> one\n  two\n  three\n");
  CHECK(wrapped("longer than it", 3) == "longer\nthan\nit\n");
}

TEST_CASE("a cell with line breaks or control characters stays one line of text") {
  Table table({{"name", Align::left}, {"n"}});
  table.add_row({"a\nb\x1b[2J", "1"});
  CHECK(table.text().find("a\\x0ab\\x1b[2J") != std::string::npos);
}

TEST_CASE("a fitted table leaves out the optional columns without room, and names them") {
  Table table(
      {{"row", Align::left}, {"wide", Align::right, true}, {"needed"}, {"n", Align::right, true}});
  table.add_row({"first", "0123456789", "1", "2"});
  std::vector<std::string> left_out;
  // 5, 10, 6 and 1 characters, and two blanks between columns.
  CHECK(table.fitted(28, left_out) == table.text(28));
  CHECK(left_out.empty());
  CHECK(table.fitted(27, left_out) ==
        "row          wide  needed\n"
        "-------------------------\n"
        "first  0123456789       1\n");
  CHECK(left_out == std::vector<std::string>{"n"});
  left_out.clear();
  CHECK(table.fitted(16, left_out) ==
        "row    needed  n\n"
        "----------------\n"
        "first       1  2\n");
  CHECK(left_out == std::vector<std::string>{"wide"});
  left_out.clear();
  CHECK(table.fitted(1, left_out) ==
        "row    needed\n"
        "-------------\n"
        "first       1\n");
  CHECK(left_out == std::vector<std::string>{"wide", "n"});
}
