// The command uptempo-lint: it starts a program as a user would, with HSA_TOOLS_LIB and
// UPTEMPO_LINT.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/support/command.hpp"

namespace {

using uptempo::test::CommandResult;
using uptempo::test::contains;
using uptempo::test::run_command;

const std::string kVgpuTool =
    std::filesystem::path(UPTEMPO_VGPU_LAUNCHER).parent_path() / "libuptempo-vgpu.hsa-tool.so";

// HSA_TOOLS_LIB as the command leaves it, printed by printenv.
std::string tools_under(std::vector<std::string> command, const std::string& present) {
  command.insert(command.end(), {"--", "printenv", "HSA_TOOLS_LIB"});
  const CommandResult result = run_command(command, {.environment = {"HSA_TOOLS_LIB=" + present}});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  return result.out;
}

}  // namespace

TEST_CASE("the command runs a program under the lint with its settings, on the virtual GPU") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{UPTEMPO_VGPU_LAUNCHER, "--", COMMAND},
        std::vector<std::string>{COMMAND, "--device", "virtual"}}) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {"--settings", "format=json,top=3", "--", "rocminfo"});
    const CommandResult result = run_command(words, {.environment = {"UPTEMPO_LINT=format=text"}});
    CHECK(result.exit_code == 0);
    CHECK(contains(result.out, "gfx90a"));
    const auto run = nlohmann::json::parse(result.err.substr(0, result.err.find('\n')));
    CHECK(run.at("type") == "run");
  }
}

TEST_CASE("the exit status is the program's") {
  CHECK(run_command({COMMAND, "--device", "virtual", "--", "sh", "-c", "exit 5"}).exit_code == 5);
}

TEST_CASE("the lint comes before other tools and after the virtual GPU's own") {
  const std::vector<std::string> command{UPTEMPO_VGPU_LAUNCHER, "--", COMMAND};
  const std::string lint = std::filesystem::canonical(LINT);
  CHECK(tools_under(command, "") == lint + '\n');
  CHECK(tools_under(command, "other.so") == lint + " other.so\n");
  CHECK(tools_under(command, "other.so " + lint) == "other.so " + lint + '\n');
  // The launcher puts its tool first with --check memory.
  const std::vector<std::string> checked{UPTEMPO_VGPU_LAUNCHER, "--check", "memory", "--", COMMAND};
  CHECK(tools_under(checked, "other.so") == kVgpuTool + ' ' + lint + " other.so\n");
}

TEST_CASE("a wrong setting, or a program that cannot be run, is refused in one line") {
  const auto refusal = [](std::vector<std::string> words) {
    words.insert(words.begin(), COMMAND);
    const CommandResult result = run_command(words);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.find('\n') == result.err.size() - 1);
    return result.err;
  };
  CHECK(contains(refusal({"--settings", "format=xml", "--", "true"}),
                 "format=xml is neither text nor json"));
  CHECK(contains(refusal({"--settings", "tops=1", "--", "true"}), "'tops' is not an option"));
  CHECK(refusal({}) == "uptempo-lint: no program was given: uptempo-lint [options] -- program\n");
  CHECK(contains(refusal({"--", "/nonexistent/p"}), "the program '/nonexistent/p' does not exist"));
  CHECK(contains(refusal({"--", "no-such-program"}), "is in no folder of PATH"));
}
