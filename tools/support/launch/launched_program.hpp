// Commands that start another program in their own place, with a library of Uptempo in it:
// `uptempo-graphs [options] -- program`.
//
// Errors: UsageError for the program, Unavailable for the library, std::runtime_error of execute().
// Thread safety: execute() replaces the process; the rest from any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace uptempo::support {

// The arguments of main() before "--", with the command's name, and those behind it.
struct LaunchArguments {
  LaunchArguments(int argc, char** argv);

  int own_count;
  std::vector<std::string> program;
};

// The file of a library that the command brings, in the first of these folders that has it. They
// are relative to the folder of the command. Refuses a file that others may write (distrust()), and
// a path with one of the letters `separators`, which the variable that will hold it cannot express.
std::string find_library(const std::string& name, const std::vector<std::filesystem::path>& folders,
                         std::string_view variable, std::string_view separators);

// Searches PATH as a shell does. Refuses a program into which the dynamic linker preloads nothing.
std::string find_program(const std::vector<std::string>& program, std::string_view command);

// Throws std::runtime_error if the system cannot run it.
[[noreturn]] void execute(const std::string& path, const std::vector<std::string>& arguments);

}  // namespace uptempo::support
