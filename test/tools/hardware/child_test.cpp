// Rows of processes that answer, fail, crash or hang.
#include <csignal>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/hardware/child.hpp"
#include "tools/support/program.hpp"

using namespace uptempo;
using namespace uptempo::hardware;
using test::CommandResult;
using test::contains;

TEST_CASE("an answer survives the way from the child to the report") {
  for (const Verdict verdict : {Verdict::as_assumed, Verdict::differs, Verdict::not_asked}) {
    const Answer answer{verdict, "two\nlines, \"quoted\"", {{"ns", 12.5}, {"of", 3}}};
    const std::string line = line_of(answer);
    CHECK(line.find('\n') == line.size() - 1);
    const Answer found = answer_of({.exit_code = 0, .out = line, .err = {}}, 1);
    CHECK(found.verdict == answer.verdict);
    CHECK(found.text == answer.text);
    CHECK(found.measured == answer.measured);
  }
}

TEST_CASE("a process that does not end is a row that hangs") {
  const Answer answer = answer_of(
      test::run_command({"/bin/sh", "-c", "echo half >&2; exec sleep 100"}, {.seconds = 0.3}), 0.3);
  CHECK(answer.verdict == Verdict::differs);
  CHECK(answer.text == "it hangs: no answer after 0.3 s: half");
}

TEST_CASE("a process that a signal ends is a row that names the signal") {
  const Answer answer =
      answer_of(test::run_command({"/bin/sh", "-c", "echo why >&2; kill -SEGV $$"}), 1);
  CHECK(answer.verdict == Verdict::differs);
  CHECK(answer.text == "its process ended by SIGSEGV: why");
}

TEST_CASE("an error is a row with its last line, without the program's name") {
  const Answer answer = answer_of(
      {.exit_code = 1, .out = {}, .err = "a library's warning\nhardware_check: no memory\n"}, 1);
  CHECK(answer.verdict == Verdict::differs);
  CHECK(answer.text == "no memory");
  const Answer silent = answer_of({.exit_code = 3, .out = {}, .err = {}}, 1);
  CHECK(silent.verdict == Verdict::differs);
  CHECK(silent.text == "its process ended with 3");
}

TEST_CASE("a device that is missing was not asked") {
  const Answer answer = answer_of(
      {.exit_code = support::exit_unavailable, .out = {}, .err = "hardware_check: no GPU agent\n"},
      1);
  CHECK(answer.verdict == Verdict::not_asked);
  CHECK(answer.text == "no GPU agent");
}

TEST_CASE("a program that cannot be started was not asked") {
  const Answer answer =
      answer_of(test::run_command({"/bin/sh", "-c", "echo no libamdhip64.so >&2; exit 127"}), 1);
  CHECK(answer.verdict == Verdict::not_asked);
  CHECK(answer.text == "its program cannot be started: no libamdhip64.so");
}

TEST_CASE("output that is no answer differs, and is never taken for one") {
  for (const char* const out : {"", "\n", "[]", "a library's line\n"}) {
    CAPTURE(out);
    const Answer answer = answer_of({.exit_code = 0, .out = out, .err = {}}, 1);
    CHECK(answer.verdict == Verdict::differs);
    CHECK(answer.text == "it printed no answer");
  }
  for (const char* const out : {"{}", "{\"verdict\":\"fine\",\"text\":\"\",\"measured\":null}",
                                "{\"verdict\":\"differs\",\"text\":1,\"measured\":null}",
                                "{\"verdict\":\"differs\"}", "{"}) {
    CAPTURE(out);
    const Answer answer = answer_of({.exit_code = 0, .out = out, .err = {}}, 1);
    CHECK(answer.verdict == Verdict::differs);
    CHECK(contains(answer.text, "not a probe's answer"));
  }
}

TEST_CASE("an answer is kept if the process then hangs or crashes, or a library also prints") {
  const std::string line = line_of({Verdict::as_assumed, "found", {{"ns", 1}}});
  const Answer printed = answer_of({.exit_code = 0, .out = "a library\n" + line, .err = {}}, 1);
  CHECK(printed.verdict == Verdict::as_assumed);
  CommandResult result{.exit_code = 128 + SIGKILL, .timed_out = true, .out = line, .err = {}};
  const Answer hung = answer_of(result, 1);
  CHECK(hung.verdict == Verdict::differs);
  CHECK(hung.text == "found. Its process did not end");
  CHECK(hung.measured == nlohmann::ordered_json{{"ns", 1}});
  result.timed_out = false;
  result.exit_code = 128 + SIGSEGV;
  CHECK(answer_of(result, 1).text == "found. Its process then ended with 139");
}
