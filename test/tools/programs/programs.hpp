// The programs that users run, as the build lists them, and what their help texts declare.
#pragma once

#include <string>
#include <vector>

#include "tools/support/command.hpp"

namespace uptempo::test {

struct Program {
  std::string file;  // path
  std::string name;  // without its folder
};
std::vector<Program> programs();

// A program, or one of its commands: the words that come before its options.
struct Invocation {
  Program program;
  std::vector<std::string> command;  // empty or one name

  std::vector<std::string> with(const std::vector<std::string>& arguments) const;
  std::string name() const;
};
// Every program, and after it each of its commands.
std::vector<Invocation> invocations();

// An option of a help text: "--json", and the placeholder of its value, "FILE|-" or "".
struct DeclaredOption {
  std::string name, value;
};
std::vector<DeclaredOption> options_in(const std::string& help);

// Runs the words in a shell, with a redirection such as ">/dev/full".
CommandResult run_redirected(const std::vector<std::string>& words, const std::string& redirection);

// The longest line, in bytes, among those of tables: a table is a block without empty lines that
// has a rule of '-'.
std::string widest_table_line(const std::string& text);

}  // namespace uptempo::test
