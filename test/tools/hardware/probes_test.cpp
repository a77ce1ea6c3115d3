#include <set>

#include "test/support/catch.hpp"
#include "tools/hardware/probe.hpp"

using namespace uptempo::hardware;

TEST_CASE("probes have names of their own that fit the report's column") {
  std::set<std::string_view> names;
  for (const Probe& probe : probes()) {
    CAPTURE(probe.name);
    CHECK(names.insert(probe.name).second);
    CHECK(probe.name.size() < 17);
    CHECK_FALSE(probe.rule.empty());
    CHECK(find_probe(probe.name) == &probe);
  }
  CHECK(find_probe("no-such-probe") == nullptr);
}

TEST_CASE("a verdict is found by its name only") {
  for (const Verdict verdict : {Verdict::as_assumed, Verdict::differs, Verdict::not_asked})
    CHECK(verdict_of(name_of(verdict)) == verdict);
  CHECK_THROWS_AS(verdict_of("as assumed"), std::invalid_argument);
}
