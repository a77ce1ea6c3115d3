// Sequences from JSON files.
#include "tools/fence_scope/sequence/program_file.hpp"

#include <cstring>
#include <fstream>
#include <sstream>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/command.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using test::error_of;

namespace {

template <class T>
std::vector<T> as(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

constexpr const char* kProgram = R"({
  "name": "two links and a copy",
  "description": "x to y, and y to the host",
  "buffers": [
    {"name": "x", "bytes": 1024, "initial": {"u32": [1, 2, 3, 4]}},
    {"name": "y", "bytes": 1024, "initial": {"f32": 0.5}},
    {"name": "out", "bytes": 512, "kind": "fine"}
  ],
  "steps": [
    {"name": "first", "kernel": "combine", "grid": 128, "workgroup": 64,
     "arguments": [{"buffer": "y"}, {"buffer": "x", "offset": 512}, {"buffer": "x"}, {"u32": 7}],
     "reads": ["x", {"buffer": "y", "bytes": 512}], "writes": [{"buffer": "y", "offset": 0, "bytes": 512}]},
    {"kernel": "probe", "grid": [8, 4], "workgroup": [4], "queue": 1, "after": ["first"],
     "arguments": [{"i32": -2}, {"f32": 1.5}, {"u64": 18446744073709551615}, {"bytes": [1, 2, 255]}, {"local": 256}],
     "reads": [], "writes": []},
    {"name": "down", "copy": {"from": {"buffer": "y", "offset": 256, "bytes": 256}, "to": {"buffer": "out", "offset": 128}},
     "after": ["first", "probe 1"]}
  ]
})";

// The program with one line replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kProgram;
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}
std::string refusal(const std::string& text) {
  return error_of<support::UsageError>([&] { static_cast<void>(parse_program(text, ".")); });
}
std::string refusal(const std::string& from, const std::string& to) {
  return refusal(changed(from, to));
}

}  // namespace

TEST_CASE("a program file becomes a sequence") {
  const Sequence sequence = parse_program(kProgram, ".");
  CHECK(sequence.name == "two links and a copy");
  CHECK(sequence.description == "x to y, and y to the host");
  CHECK(sequence.code_object.empty());
  REQUIRE(sequence.buffers.size() == 3);
  CHECK(sequence.buffers[0].kind == BufferKind::device_local);
  CHECK(as<uint32_t>(sequence.buffers[0].initial) == std::vector<uint32_t>{1, 2, 3, 4});
  CHECK(as<float>(sequence.buffers[1].initial) == std::vector<float>{0.5f});
  CHECK(sequence.buffers[2].kind == BufferKind::fine_grained);

  REQUIRE(sequence.steps.size() == 3);
  const Step& first = sequence.steps[0];
  CHECK(first.kernel == "combine");
  CHECK(first.grid == Grid{128}.by(64));
  REQUIRE(first.arguments.size() == 4);
  CHECK(first.arguments[1].kind == Argument::Kind::address);
  CHECK(first.arguments[1].buffer == 0);
  CHECK(first.arguments[1].begin == 512);
  CHECK(as<uint32_t>(first.arguments[3].value) == std::vector<uint32_t>{7});
  REQUIRE(first.accesses.size() == 3);
  CHECK(first.accesses[0].bytes == 1024);
  CHECK_FALSE(first.accesses[1].writes);
  CHECK(first.accesses[2].writes);
  CHECK(first.accesses[2].bytes == 512);

  const Step& probe = sequence.steps[1];
  CHECK(probe.name == "probe 1");
  CHECK(probe.queue == 1);
  CHECK(probe.grid == Grid{8, 4}.by(4));
  CHECK(probe.after == std::vector<size_t>{0});
  CHECK(as<int32_t>(probe.arguments[0].value) == std::vector<int32_t>{-2});
  CHECK(as<float>(probe.arguments[1].value) == std::vector<float>{1.5f});
  CHECK(as<uint64_t>(probe.arguments[2].value) == std::vector<uint64_t>{UINT64_MAX});
  CHECK(as<uint8_t>(probe.arguments[3].value) == std::vector<uint8_t>{1, 2, 255});
  CHECK(probe.arguments[4].kind == Argument::Kind::local);
  CHECK(probe.arguments[4].local_bytes == 256);

  const Step& down = sequence.steps[2];
  CHECK(down.kind == Step::Kind::copy);
  CHECK(down.from.begin == 256);
  CHECK(down.to.begin == 128);
  CHECK(down.to.bytes == 256);
  CHECK(down.after == std::vector<size_t>{0, 1});
}

TEST_CASE("every mistake in a program file is reported with its place") {
  CHECK(refusal("{}") == "the field 'steps' is missing");
  CHECK(refusal("[]") == "[]; take an object");
  CHECK(refusal("{\"steps\": []}") == "steps: there is no dispatch, so no header to choose");
  CHECK(refusal("{\"name\": 1}") == "name: 1; take a string");
  CHECK(refusal("{\n\"name\": }").starts_with("parse error at line 2, column 9"));
  CHECK(refusal("{\"name\": \"a\", \"name\": \"b\"}") == "an object has two fields 'name'");
  CHECK(refusal("\"buffers\"", "\"bufers\"") ==
        "there is no field 'bufers'; there are name, description, code_object, buffers, steps");

  CHECK(refusal("\"name\": \"y\"", "\"name\": \"x\"") ==
        "buffers[1].name: another buffer is called 'x'");
  CHECK(refusal("\"bytes\": 512, \"kind\"", "\"bytes\": -1, \"kind\"") ==
        "buffers[2].bytes: -1; take a whole number from 1 to 1099511627776");
  CHECK(refusal("\"fine\"", "\"finest\"") ==
        "buffers[2].kind: \"finest\"; take device, coarse or fine");
  CHECK(
      refusal("{\"f32\": 0.5}", "{\"f16\": 0.5}") ==
      "buffers[1].initial: there is no type 'f16'; there are u32, i32, f32, u64, i64, f64, bytes");
  CHECK(refusal("[1, 2, 3, 4]", "[1, 2, -3, 4]") ==
        "buffers[0].initial.u32[2]: -3; take a whole number from 0 to 4294967295");
  CHECK(refusal("\"bytes\": 1024, \"initial\": {\"u32\"", "\"bytes\": 12, \"initial\": {\"u32\"") ==
        "buffers[0].initial.u32: 16 bytes, but 'x' has 12");

  CHECK(refusal("{\"buffer\": \"x\"}, {\"u32\"", "{\"buffer\": \"z\"}, {\"u32\"") ==
        "steps[0].arguments[2].buffer: no buffer is called 'z'; there are x, y, out");
  CHECK(refusal("\"offset\": 512}", "\"offset\": 1024}") ==
        "steps[0].arguments[1].offset: byte 1024, but 'x' has 1024");
  CHECK(refusal("{\"u32\": 7}", "{\"u32\": 7.5}") ==
        "steps[0].arguments[3].u32: 7.5; take a whole number from 0 to 4294967295");
  CHECK(refusal("{\"u32\": 7}", "7") == "steps[0].arguments[3]: 7; take an object");
  CHECK(refusal("{\"f32\": 1.5}", "{\"f32\": 1e39}") ==
        "steps[1].arguments[1].f32: 1e+39; take a number that the type can hold");
  CHECK(refusal("{\"f32\": 1.5}", "{\"offset\": 4}") ==
        "steps[1].arguments[1]: an offset without a buffer; name the buffer, too");
  CHECK(refusal("[1, 2, 255]", "[1, 2, 256]") ==
        "steps[1].arguments[3].bytes[2]: 256; take a whole number from 0 to 255");
  CHECK(refusal("\"kernel\": \"probe\", ", "") == "steps[1]: the field 'kernel' is missing");
  CHECK(refusal("\"reads\": [], \"writes\": []", "\"reads\": []") ==
        "steps[1]: the field 'writes' is missing");
  CHECK(refusal("[8, 4]", "[8, 0]") ==
        "steps[1].grid[1]: 0; take a whole number from 1 to 4294967295");
  CHECK(refusal("[8, 4]", "[8, 4, 2, 1]") == "steps[1].grid: [8,4,2,1]; take one to three sizes");
  CHECK(refusal("\"workgroup\": 64", "\"workgroup\": [64, 1]") ==
        "steps[0].workgroup: 2 sizes for a grid of 1");
  CHECK(refusal("\"queue\": 1", "\"queue\": 2") ==
        "steps[1].queue: 2; take a whole number from 0 to 1");
  CHECK(refusal("\"after\": [\"first\"]", "\"after\": [\"down\"]") ==
        "steps[1].after[0]: no earlier step is called 'down'");
  CHECK(refusal("\"queue\": 1", "\"queue\": 0") ==
        "steps[1].after[0]: step 0 is in the same queue, where barrier bits define the order");
  CHECK(refusal("\"name\": \"down\"", "\"name\": \"first\"") ==
        "steps[2].name: another step is called 'first'");
  CHECK(refusal("\"name\": \"down\"", "\"grid\": 1") ==
        "steps[2]: there is no field 'grid'; there are name, copy, after");
  CHECK(refusal("\"offset\": 128}", "\"offset\": 384}") ==
        "steps[2].copy.to: 256 bytes from byte 384, but 'out' has 512");
  CHECK(refusal("\"bytes\": 256}", "\"bytes\": 1000}") ==
        "steps[2].copy.from.bytes: 1000 bytes from byte 256, but 'y' has 1024");
  CHECK(refusal("{\"buffer\": \"out\", \"offset\": 128}", "\"x\"") ==
        "steps[2].to: both 'y' and 'x' are in device memory; copies are between device and host");
}

TEST_CASE("a program file with too many steps or buffers is refused with the limit") {
  const auto list_of = [](size_t count, const std::string& element) {
    std::string list;
    for (size_t i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + element;
    return "[" + list + "]";
  };
  CHECK(refusal(R"({"buffers": [], "steps": )" + list_of(50'000, "{}") + "}") ==
        "steps: 50000 elements; there can be at most 32768");
  CHECK(refusal(R"({"steps": [], "buffers": )" + list_of(1'025, "{}") + "}") ==
        "buffers: 1025 elements; there can be at most 1024");
}

TEST_CASE("paths in a program file are relative to it, and its default name is the file's") {
  const test::TemporaryDirectory directory;
  std::ofstream(directory.file("code.co"), std::ios::binary) << "code";
  std::ofstream(directory.file("empty.co"));
  const auto write = [&](const std::string& code) {
    std::ofstream(directory.file("sums.json"))
        << R"({"code_object": ")" << code
        << R"(", "steps": [{"kernel": "k", "grid": 64, "reads": [], "writes": []}]})";
    return directory.file("sums.json");
  };
  const Sequence sequence = read_program_file(write("code.co"));
  CHECK(sequence.name == "sums");
  CHECK(sequence.code_object.size() == 4);
  CHECK(error_of<support::UsageError>([&] {
          static_cast<void>(read_program_file(write("none.co")));
        }) == directory.file("sums.json") + ": code_object: cannot read '" +
                  directory.file("none.co") + "': No such file or directory");
  CHECK(error_of<support::UsageError>([&] {
          static_cast<void>(read_program_file(write("empty.co")));
        }) == directory.file("sums.json") + ": code_object: '" + directory.file("empty.co") +
                  "' is empty");
  CHECK(test::contains(error_of<support::UsageError>([&] {
                         static_cast<void>(read_program_file(directory.file("none.json")));
                       }),
                       "none.json"));
}

TEST_CASE("the program file in PROGRAM_FILES.md is valid") {
  std::stringstream text;
  text << std::ifstream(FENCE_SCOPE_PROGRAM_FILES).rdbuf();
  const std::string page = text.str();
  const size_t begin = page.find("```json\n"), end = page.find("\n```", begin);
  REQUIRE(end != std::string::npos);
  const Sequence sequence = parse_program(page.substr(begin + 8, end - begin - 8), ".");
  CHECK(sequence.steps.size() == 4);
  CHECK(plan(sequence).headers.front().acquire == aql::FenceScope::system);
}
