#include <sstream>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/hardware/report.hpp"

using namespace uptempo::hardware;
using uptempo::test::contains;

namespace {

Row row(Verdict verdict, std::string text) {
  return {"read-index", "a rule", {verdict, std::move(text), {{"most", 1}}}, 0.25, "why"};
}

}  // namespace

TEST_CASE("a row is at most 80 columns wide, and its text begins in one column") {
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word ";
  std::istringstream lines(text_of(row(Verdict::differs, words)));
  std::string line;
  REQUIRE(std::getline(lines, line));
  CHECK(line.starts_with("read-index       differs: word"));
  size_t more = 0;
  for (; std::getline(lines, line); ++more) {
    CHECK(line.size() <= 80);
    CHECK(line.starts_with(std::string(17, ' ') + "word"));
  }
  CHECK(more == 5);
}

TEST_CASE("the summary counts each verdict") {
  const std::string summary =
      summary_of({row(Verdict::as_assumed, ""), row(Verdict::as_assumed, ""),
                  row(Verdict::differs, ""), row(Verdict::not_asked, "")});
  CHECK(contains(summary, "2 of 4 probes found what the engine assumes, 1 something else; 1 were"));
}

TEST_CASE("the JSON has the machine's fields and every row") {
  const nlohmann::ordered_json machine{{"device", "D (gfx90a)"}, {"line", "Device: D\n"}};
  const auto json =
      json_of(machine, {row(Verdict::differs, "found"), row(Verdict::not_asked, "")}, false);
  CHECK(json["format"] == "uptempo-hardware-check-1");
  CHECK(json["device"] == "D (gfx90a)");
  CHECK_FALSE(json.contains("line"));
  REQUIRE(json["probes"].size() == 2);
  CHECK(json["probes"][0] == nlohmann::ordered_json{{"probe", "read-index"},
                                                    {"rule", "a rule"},
                                                    {"verdict", "differs"},
                                                    {"text", "found"},
                                                    {"seconds", 0.25},
                                                    {"measured", {{"most", 1}}},
                                                    {"stderr", "why"}});
  CHECK(json["probes"][1]["verdict"] == "not asked");
}
