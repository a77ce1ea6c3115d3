// --help, --version and mistakes, of every program that users run.
#include <algorithm>
#include <regex>
#include <sstream>
#include <utility>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "test/tools/programs/programs.hpp"

using namespace uptempo::test;

namespace {

bool is_one_line_of(const Program& program, const std::string& error) {
  return error.starts_with(program.name + ": ") && error.find('\n') == error.size() - 1;
}

}  // namespace

TEST_CASE("every program and command prints its help") {
  for (const Invocation& each : invocations()) {
    CAPTURE(each.name());
    const CommandResult result = run_command(each.with({"--help"}));
    CHECK(result.exit_code == 0);
    CHECK(contains(result.out, "--help"));
    CHECK(result.err.empty());
    if (each.command.empty()) CHECK(contains(result.out, "--version"));
  }
}

TEST_CASE("every program prints the version of the project, in one line") {
  for (const Program& program : programs()) {
    const CommandResult result = run_command({program.file, "--version"});
    CHECK(result.exit_code == 0);
    CHECK(result.out == program.name + " (uptempo) " UPTEMPO_TEST_VERSION "\n");
    CHECK(result.err.empty());
  }
}

TEST_CASE("an unknown option is named, and nothing runs") {
  for (const Invocation& each : invocations()) {
    CAPTURE(each.name());
    const CommandResult result = run_command(each.with({"--no-such-option-anywhere"}));
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(is_one_line_of(each.program, result.err));
    CHECK(contains(result.err, "unknown option '--no-such-option-anywhere' (see --help)"));
  }
}

TEST_CASE("a mistyped option names the option that was meant") {
  size_t tried = 0;
  for (const Invocation& each : invocations()) {
    const std::vector<DeclaredOption> options = options_in(run_command(each.with({"--help"})).out);
    CHECK_FALSE(options.empty());
    for (const DeclaredOption& option : options) {
      // Two neighbours change places: no option of one program is that near to another.
      std::string mistyped = option.name;
      if (mistyped.size() < 6) continue;
      std::swap(mistyped[3], mistyped[4]);
      if (mistyped == option.name) continue;
      CAPTURE(each.name(), mistyped);
      const CommandResult result = run_command(each.with({mistyped}));
      CHECK(result.exit_code == 2);
      CHECK(is_one_line_of(each.program, result.err));
      CHECK(contains(result.err,
                     "unknown option '" + mistyped + "'; did you mean '" + option.name + "'?"));
      ++tried;
    }
  }
  CHECK(tried > 100);
}

TEST_CASE("a mistyped command names the command that was meant") {
  size_t tried = 0;
  for (const Invocation& each : invocations()) {
    if (each.command.empty()) continue;
    std::string mistyped = each.command.front();
    mistyped.erase(2, 1);
    CAPTURE(each.name(), mistyped);
    const CommandResult result = run_command({each.program.file, mistyped});
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, "unknown command '" + mistyped + "'; did you mean '" +
                                   each.command.front() + "'?"));
    ++tried;
  }
  CHECK(tried >= 10);  // of aql_dump and fence_scope
}

namespace {

using Words = std::vector<std::string>;

Words sorted(Words words) {
  std::ranges::sort(words);
  words.erase(std::ranges::unique(words).begin(), words.end());
  return words;
}

// The words that bash offers for the last one of a command line, by the program's script, with
// calls of compopt if asked for. That command works only while bash completes.
Words completions(const Program& program, const Words& words, bool with_calls = false) {
  std::vector<std::string> shell{"bash", "--norc", "-c",
                                 R"(. <("$0" --completion bash)
         function=$(complete -p "${0##*/}" | sed 's/.* -F \([^ ]*\) .*/\1/')
         compopt() { calls+=("compopt $*"); }
         COMP_WORDS=("${0##*/}" "$@") COMP_CWORD=$#
         "$function"
         printf '%s\n' "${COMPREPLY[@]}" ")" +
                                     std::string(with_calls ? "${calls[@]}" : "") + '"',
                                 program.file};
  shell.insert(shell.end(), words.begin(), words.end());
  const CommandResult result = run_command(shell);
  CHECK(result.err.empty());
  Words offered;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) offered.push_back(line);
  return sorted(std::move(offered));
}

}  // namespace

TEST_CASE("the shell completes the options of the help text, and no others") {
  const Words launchers{"uptempo-graphs", "uptempo-lint", "uptempo-vgpu"};
  for (const Program& program : programs()) {
    const std::string help = run_command({program.file, "--help"}).out;
    CAPTURE(program.name);
    const bool completes = contains(help, "--completion");
    CHECK(completes == (std::ranges::find(launchers, program.name) != launchers.end()));
    if (!completes) continue;
    Words names{"--version"};
    for (const DeclaredOption& option : options_in(help)) names.push_back(option.name);
    names = sorted(names);
    // zsh's script has a line for each.
    const std::string script = run_command({program.file, "--completion", "zsh"}).out;
    CHECK(script.starts_with("#compdef " + program.name + '\n'));
    Words in_zsh;
    const std::regex line("    '\\*(--[a-z-]+)=?\\[");
    for (std::sregex_iterator each(script.begin(), script.end(), line), end; each != end; ++each)
      in_zsh.push_back((*each)[1]);
    CHECK(sorted(in_zsh) == names);
    names.insert(names.begin(), "--");
    CHECK(completions(program, {"--"}) == names);
    // Behind "--" these are the program's own. Without bash-completion bash offers commands.
    CHECK(completions(program, {"--", "rocminf"}) == Words{"rocminfo"});
    CHECK(completions(program, {"--", "true", "--"}).empty());
    CHECK(completions(program, {"--completion", ""}) == Words{"bash", "zsh"});
  }
}

TEST_CASE("the shell completes the values of an option that has a few") {
  const auto all = programs();
  const auto launcher = std::ranges::find(all, "uptempo-vgpu", &Program::name);
  REQUIRE(launcher != all.end());
  CHECK(completions(*launcher, {"--device", "gfx90"}) ==
        Words{"gfx900", "gfx906", "gfx908", "gfx90a"});
  CHECK(completions(*launcher, {"--check", ""}) == Words{"atomics", "fences", "memory", "races"});
  CHECK(completions(*launcher, {"--bar", "s"}) == Words{"small"});
  CHECK(completions(*launcher, {"--bar", "lazy", "1", "--partitions", "o"}) == Words{"own-id"});
  CHECK(completions(*launcher, {"--seed", ""}).empty());
  // bash makes three words of --device=gfx9.
  CHECK(completions(*launcher, {"--device", "=", "gfx942"}) == Words{"gfx942"});
  CHECK(completions(*launcher, {"--partitions", "="}) == Words{"own-id", "same-id"});
  CHECK(completions(*launcher, {"--device", "=", "gfx942", "--join"}) == Words{"--join"});
  // Only the name of a file has files behind it, and the shell's own completion adds them.
  const std::string none = "compopt +o default +o bashdefault";
  const std::string files = "compopt -o default -o bashdefault";
  CHECK(completions(*launcher, {"--check", "fences,"}, true) == Words{none});
  CHECK(completions(*launcher, {"--seed", ""}, true) == Words{none});
  CHECK(completions(*launcher, {"--report", ""}, true) == sorted({none, files}));
}
