// --help, --version and mistakes, of every program that users run.
#include <algorithm>
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
