#include "tools/fence_scope/command_line.hpp"

#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using Words = std::vector<std::string>;

TEST_CASE("a command is repeated with its seed and device, and without the files that it wrote") {
  const auto repeated = [](const Words& words, uint64_t seed, bool on_virtual_gpu) {
    support::CommandLine app("fence_scope", "");
    Files files;
    Commands commands;
    declare_scopes(app, commands, files);
    REQUIRE_FALSE(app.parse(words));
    return repeatable(*commands.front().first, seed, on_virtual_gpu);
  };
  CHECK(repeated({"scopes", "--json", "-", "--workload", "chain", "--csv=-"}, 7, true) ==
        Words{"scopes", "--workload", "chain", "--seed", "7", "--device", "virtual"});
  CHECK(repeated({"scopes", "--seed", "3", "--device=auto", "--bytes=4K", "--dry-run"}, 3, false) ==
        Words{"scopes", "--bytes", "4096", "--seed", "3", "--device", "hardware"});
  CHECK(repeated({"scopes", "--trace", "-", "--cell=acquire none", "--position", "first,last"}, 3,
                 true) ==
        Words{"scopes", "--position", "first,last", "--seed", "3", "--device", "virtual"});
}

TEST_CASE("a command without a run to trace refuses --trace and names the reason") {
  CHECK_NOTHROW(refuse_trace({}, "why"));
  CHECK_THROWS_WITH(refuse_trace({.json = {}, .csv = {}, .html = {}, .trace = "t"}, "why"),
                    "--trace: why");
}

TEST_CASE("standard output carries the text or one of the outputs, not both") {
  CHECK(prints_text({}));
  CHECK(prints_text({.json = "a", .csv = "b", .html = "c", .trace = "d"}));
  CHECK_FALSE(prints_text({.json = "-", .csv = "b", .html = {}, .trace = {}}));
  CHECK_THROWS_AS(prints_text({.json = "-", .csv = {}, .html = {}, .trace = "-"}),
                  support::UsageError);
}
