#!/usr/bin/env python3
"""Tests Doxygen's input filter. Takes the folder of comments.py as its first argument."""

import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import comments  # noqa: E402


def filtered(*lines, name="uptempo/a.hpp"):
    return comments.documented("\n".join(lines), name).split("\n")


class Comments(unittest.TestCase):
    def test_a_comment_of_a_declaration_is_documentation(self):
        self.assertEqual(filtered("#pragma once", "// Returns it.", "int f();")[1], "/// Returns it.")

    def test_a_comment_behind_a_member_is_the_member_s(self):
        self.assertEqual(filtered("#pragma once", "struct A {", "  int size = 0;  // bytes", "};")[2], "  int size = 0;  ///< bytes")

    def test_comments_in_functions_private_parts_and_detail_stay(self):
        lines = ["#pragma once", "inline int f() {", "  // why", "  return 1;  // one", "}", "namespace detail {", "// Inner.", "int g();", "}",
                 "class A {", "  // Private.", " private:", "  // Also.", "  int a_;  // a", "};"]
        found = filtered(*lines)
        for number in (2, 3, 6, 12, 13):
            self.assertEqual(found[number], lines[number])

    def test_the_first_comment_is_the_contract_of_the_class_that_it_names(self):
        found = filtered("// B: does it.", "#pragma once", "namespace n {", "class A {};", "class B {};", "}")
        self.assertEqual(found[:2], ["/// B: does it.", "/// @class n::B"])
        self.assertIn("/** @class n::A", found)

    def test_the_first_comment_of_a_file_of_functions_is_the_file_s(self):
        self.assertEqual(filtered("// Functions.", "#pragma once", "int f();")[1], "/// @file")

    def test_a_header_for_c_is_documentation_within_extern_c(self):
        lines = ["// Parts.", "#ifndef A_H", "#define A_H", "#ifdef __cplusplus", 'extern "C" {', "#endif", "// Waits.", "int wait_for(int a);",
                 "typedef struct a {", "  int size;  // bytes", "} a;", "#endif"]
        found = filtered(*lines, name="uptempo/a.h")
        self.assertEqual(found[:2], ["/// Parts.", "/// @file"])
        self.assertIn("/// Waits.", found)
        self.assertIn("  int size;  ///< bytes", found)

    def test_lines_keep_their_numbers(self):
        lines = ["// A: is.", "//", "//   A a;", "//   a.b();", "//", "// Cost: none.", "#pragma once", "class A {", "  int b;  // one", "};"]
        found = filtered(*lines)
        self.assertEqual(found[7], lines[7])
        self.assertEqual(found[8], "  int b;  // one")  # private

    def test_indented_lines_are_code_and_stay_as_they_are(self):
        found = filtered("// F.", "//", "//   if (a < b) *p = c->d;  // <x>", "//", "// Text.", "#pragma once")
        self.assertEqual(found[2], "///@code{.cpp} if (a < b) *p = c->d;  // <x> @endcode")

    def test_an_indented_table_is_no_code(self):
        self.assertIn("@code{.unparsed}", filtered("// F.", "//", "//   order   first", "//   other   second", "#pragma once")[2])

    def test_text_is_no_command(self):
        line = filtered("#pragma once", r"// Each <byte> is \xNN, #1, @x, 5 % and --check.", "int f();")[1]
        self.assertEqual(line, r"/// Each \<byte\> is \\xNN, \#1, \@x, 5 \% and \--check.")

    def test_code_in_text_stays(self):
        self.assertEqual(filtered("#pragma once", "// Calls `a<b>(*c)`.", "int f();")[1], "/// Calls `a<b>(*c)`.")

    def test_a_list_keeps_its_items(self):
        found = filtered("#pragma once", "// * one", "//   and more", "// * two", "int f();")
        self.assertEqual(found[1:4], ["/// * one", "///  and more", "/// * two"])

    def test_a_label_opens_a_paragraph(self):
        found = filtered("// Text.", "// Thread safety: any.", "#pragma once")
        self.assertEqual(found[1], "/// <p>**Thread safety:** any.")

    def test_friends_are_hidden(self):
        self.assertIn("/** @cond */  friend bool f(A a) { return true; }/** @endcond */",
                      filtered("#pragma once", "class A {", " public:", "  friend bool f(A a) { return true; }", "};"))


if __name__ == "__main__":
    unittest.main()
