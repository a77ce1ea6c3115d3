// Scripts by which a shell completes the options of a command that runs a program:
// `uptempo-vgpu --completion bash`. They are made from the options that the command declares.
// Includes nothing of the tree, because tools/vgpu, a project of its own, uses it too.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace uptempo::support {

// An option as a command declares it. Entries of one name are ways to use one option.
struct OptionText {
  std::string name;   // "--device"
  std::string value;  // its word in the help text, "TARGET"; empty for a flag
  std::string help;
  std::vector<std::string> choices{};  // the values, if the option has only these
};

inline constexpr std::string_view kShells = "bash|zsh";

// The script for a shell of kShells, or "" for another one. It completes options, the values of
// choices, file names for a value FILE, and after "--" the program and its arguments.
std::string completion_script(std::string_view shell, std::string_view command,
                              const std::vector<OptionText>& options);

}  // namespace uptempo::support
