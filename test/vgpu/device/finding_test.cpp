// Findings as JSON lines, read back with nlohmann-json.
#include "device/fences/report/finding_text.hpp"

#include <nlohmann/json.hpp>

#include "test/support/catch.hpp"

using namespace uptempo::vgpu::fences;
using nlohmann::json;
using uptempo::vgpu::FenceScope;

namespace {

TaskPtr task(Task::Kind kind, uint32_t queue, uint64_t position, std::string name) {
  auto result = std::make_shared<Task>();
  result->kind = kind;
  result->queue = queue;
  result->position = position;
  result->name = std::move(name);
  return result;
}
TaskPtr dispatch(uint32_t queue, uint64_t index, std::string name) {
  return task(Task::Kind::dispatch, queue, index, std::move(name));
}

Finding finding(TaskPtr writer, TaskPtr reader) {
  return {Finding::Class::stale,
          Finding::Conflict::read_after_write,
          std::move(writer),
          std::move(reader),
          0x7f0000001000,
          4096,
          "no acquire",
          "HSA 2.9",
          true};
}

}  // namespace

TEST_CASE("a finding is one line of JSON with every field of its pair") {
  const std::string line =
      to_json(finding(dispatch(1, 0, "fill.kd"), dispatch(2, 71, "sum.kd")), "gfx90a");
  CHECK(line.find('\n') == std::string::npos);
  CHECK(json::parse(line) == json{{"class", "stale"},
                                  {"conflict", "read-after-write"},
                                  {"writer",
                                   {{"queue", 1},
                                    {"index", 0},
                                    {"kernel", "fill.kd"},
                                    {"barrier", false},
                                    {"acquire", "none"},
                                    {"release", "none"}}},
                                  {"reader",
                                   {{"queue", 2},
                                    {"index", 71},
                                    {"kernel", "sum.kd"},
                                    {"barrier", false},
                                    {"acquire", "none"},
                                    {"release", "none"}}},
                                  {"address", 0x7f0000001000},
                                  {"bytes", 4096},
                                  {"reason", "no acquire"},
                                  {"rule", "HSA 2.9"},
                                  {"hsa", "violated"},
                                  {"target", "possible"},
                                  {"device", "gfx90a"}});
}

TEST_CASE("a copy has engine and ring offset, the host only its name") {
  const json line = json::parse(to_json(
      finding(task(Task::Kind::copy, 3, 64, "copy_linear"), task(Task::Kind::host, 0, 0, "host")),
      "gfx900"));
  CHECK(line["writer"] == json{{"queue", 3}, {"offset", 64}, {"engine", "copy_linear"}});
  CHECK(line["reader"] == json{{"engine", "host"}});
  CHECK(line["device"] == "gfx900");
}

TEST_CASE("classes, conflicts and verdicts have the names of the report") {
  Finding one = finding(dispatch(1, 0, "a"), dispatch(1, 1, "b"));
  const std::pair<Finding::Class, const char*> classes[] = {
      {Finding::Class::unordered, "unordered"},
      {Finding::Class::stale, "stale"},
      {Finding::Class::unreleased, "unreleased"}};
  for (const auto& [what, name] : classes) {
    one.what = what;
    CHECK(class_name(what) == name);
    CHECK(json::parse(to_json(one, "gfx90a"))["class"] == name);
  }
  const std::pair<Finding::Conflict, const char*> conflicts[] = {
      {Finding::Conflict::read_after_write, "read-after-write"},
      {Finding::Conflict::write_after_read, "write-after-read"},
      {Finding::Conflict::write_after_write, "write-after-write"}};
  for (const auto& [conflict, name] : conflicts) {
    one.conflict = conflict;
    CHECK(json::parse(to_json(one, "gfx90a"))["conflict"] == name);
  }
  for (const bool possible : {true, false}) {
    one.possible_on_target = possible;
    const json line = json::parse(to_json(one, "gfx90a"));
    CHECK(line["hsa"] == "violated");
    CHECK(line["target"] == (possible ? "possible" : "harmless"));
  }
}

TEST_CASE("kernel names with quotes, backslashes and UTF-8 survive the JSON") {
  for (const char* name :
       {"operator\"\"_km", "back\\slash\\\"", "", "größe.kd", "{\"kernel\":1}"}) {
    const json line =
        json::parse(to_json(finding(dispatch(1, 0, name), dispatch(1, 1, "b")), "gfx90a"));
    CHECK(line["writer"]["kernel"] == name);
  }
}

TEST_CASE("control characters in a name do not break the line") {
  const std::string line =
      to_json(finding(dispatch(1, 0, "two\nlines\t\x01"), dispatch(1, 1, "b")), "gfx90a");
  CHECK(line.find('\n') == std::string::npos);
  CHECK(json::parse(line)["writer"]["kernel"] == "two\\x0alines\\x09\\x01");
}

TEST_CASE("invalid UTF-8 in a name shows as its bytes, so that parsers accept the line") {
  const std::pair<const char*, std::string> names[] = {
      {"\xff", "\\xff"},
      {"a\xc3", "a\\xc3"},
      {"\xc3z", "\\xc3z"},
      {"\xc0\xaf", "\\xc0\\xaf"},                    // overlong encoding
      {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},           // the same
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // above U+10FFFF
      {"\xf0\x9f\x99\x82\xf4\x8f\xbf\xbf\xe2\x82\xac", "\U0001f642\U0010ffff\u20ac"},
  };
  for (const auto& [name, expected] : names) {
    const std::string line = to_json(finding(dispatch(1, 0, name), dispatch(1, 1, "b")), "gfx90a");
    CAPTURE(line);
    REQUIRE(json::accept(line));
    CHECK(json::parse(line)["writer"]["kernel"] == expected);
  }
}

TEST_CASE("64-bit numbers are written in full") {
  Finding one = finding(dispatch(~0u, ~uint64_t{0}, "a"), dispatch(1, 1, "b"));
  one.address = ~uint64_t{0};
  one.bytes = uint64_t{1} << 40;
  const json line = json::parse(to_json(one, "gfx90a"));
  CHECK(line["address"] == ~uint64_t{0});
  CHECK(line["bytes"] == uint64_t{1} << 40);
  CHECK(line["writer"]["index"] == ~uint64_t{0});
  CHECK(line["writer"]["queue"] == ~0u);
}

TEST_CASE("a sentence names both packets with their fences, the later access first") {
  auto fill = std::make_shared<Task>(*dispatch(1, 0, "fill.kd"));
  fill->release = FenceScope::agent;
  auto sum = std::make_shared<Task>(*dispatch(2, 71, "sum.kd"));
  sum->barrier = true;
  sum->acquire = FenceScope::system;
  Finding found = finding(fill, sum);
  CHECK(to_sentence(found) ==
        "stale: sum.kd (queue 2, packet 71: barrier, acquire system, release none) reads 4096 "
        "bytes from "
        "address "
        "0x7f0000001000 on, which fill.kd (queue 1, packet 0: acquire none, release agent) wrote: "
        "no "
        "acquire [HSA "
        "2.9]");
  found.what = Finding::Class::unordered;
  found.conflict = Finding::Conflict::write_after_read;
  CHECK(to_sentence(found).starts_with(
      "unordered: fill.kd (queue 1, packet 0: acquire none, release agent) writes "));
  found.conflict = Finding::Conflict::write_after_write;
  CHECK(to_sentence(found).starts_with("unordered: sum.kd "));
  found.reader = task(Task::Kind::host, 0, 0, "host");
  CHECK(to_sentence(found).starts_with("unordered: the host writes "));
  found.reader = task(Task::Kind::copy, 3, 64, "copy_linear");
  CHECK(to_sentence(found).starts_with("unordered: copy_linear (queue 3, offset 64) writes "));
}
