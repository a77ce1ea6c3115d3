#include "test/tools/programs/programs.hpp"

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace uptempo::test {
namespace {

// The names below a heading "Subcommands:" of CLI11.
std::vector<std::string> commands_in(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help);
  bool below = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) below = false;
    std::smatch name;
    if (below && std::regex_search(line, name, std::regex("^  ([a-z][a-z_-]*) ")))
      names.push_back(name[1]);
    if (line == "Subcommands:") below = true;
  }
  return names;
}

}  // namespace

std::vector<Program> programs() {
  std::vector<Program> all;
  std::ifstream in(PROGRAMS_FILE);
  for (std::string file; std::getline(in, file);)
    if (!file.empty()) all.push_back({file, std::filesystem::path(file).filename().string()});
  if (all.empty()) throw std::runtime_error("no programs in " PROGRAMS_FILE);
  return all;
}

std::vector<std::string> Invocation::with(const std::vector<std::string>& arguments) const {
  std::vector<std::string> words{program.file};
  words.insert(words.end(), command.begin(), command.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::string Invocation::name() const {
  return program.name + (command.empty() ? "" : ' ' + command.front());
}

std::vector<Invocation> invocations() {
  std::vector<Invocation> all;
  for (const Program& program : programs()) {
    all.push_back({program, {}});
    for (const std::string& name : commands_in(run_command({program.file, "--help"}).out))
      all.push_back({program, {name}});
  }
  return all;
}

std::vector<DeclaredOption> options_in(const std::string& help) {
  std::vector<DeclaredOption> options;
  std::istringstream lines(help);
  const std::regex option("^  (?:-[a-z],)?(--[a-z-]+)(?: ([^ ]+))?.*");
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, option)) options.push_back({parts[1], parts[2]});
  }
  return options;
}

CommandResult run_redirected(const std::vector<std::string>& words,
                             const std::string& redirection) {
  std::vector<std::string> shell{"sh", "-c", "\"$@\" " + redirection, "sh"};
  shell.insert(shell.end(), words.begin(), words.end());
  return run_command(shell);
}

std::string widest_table_line(const std::string& text) {
  std::string widest, in_block;
  bool is_table = false;
  std::istringstream lines(text + "\n\n");
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) {
      if (is_table && in_block.size() > widest.size()) widest = in_block;
      in_block.clear();
      is_table = false;
    }
    is_table = is_table || (line.size() > 4 && line.find_first_not_of('-') == std::string::npos);
    if (line.size() > in_block.size()) in_block = line;
  }
  return widest;
}

}  // namespace uptempo::test
