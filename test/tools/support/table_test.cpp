#include "tools/support/table.hpp"

#include "test/support/catch.hpp"

using uptempo::support::Align;
using uptempo::support::Table;

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
