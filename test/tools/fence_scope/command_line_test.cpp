#include "tools/fence_scope/command_line.hpp"

#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using Words = std::vector<std::string>;

TEST_CASE("a command is repeated with its seed and device, and without the files that it wrote") {
  CHECK(repeatable({"scopes", "--json", "r.json", "--workload", "chain", "--csv=c.csv"}, 7, true) ==
        Words{"scopes", "--workload", "chain", "--seed", "7", "--device", "virtual"});
  CHECK(repeatable({"scopes", "--seed", "3", "--device=auto", "--dry-run"}, 3, false) ==
        Words{"scopes", "--dry-run", "--seed", "3", "--device", "hardware"});
  CHECK(repeatable({"scopes", "--trace", "t.json", "--cell=acquire none"}, 3, true) ==
        Words{"scopes", "--seed", "3", "--device", "virtual"});
  CHECK(repeatable({"ladder", "--json"}, 1, true) ==
        Words{"ladder", "--seed", "1", "--device", "virtual"});
}

TEST_CASE("a repeated command writes only the outputs that are requested now") {
  CHECK(with_outputs({"scopes", "--json", "theirs.json", "--seed", "7"},
                     {.json = {}, .csv = "mine.csv", .html = {}, .trace = {}}) ==
        Words{"scopes", "--seed", "7", "--csv", "mine.csv"});
  CHECK(with_outputs({"scopes", "--csv=theirs.csv"}, {}) == Words{"scopes"});
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
