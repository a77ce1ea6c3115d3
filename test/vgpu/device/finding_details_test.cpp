// The program in findings: text, JSON, remedies, and files of suppressions.
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "device/fences/report/finding_text.hpp"
#include "device/fences/report/remedy.hpp"
#include "device/fences/report/suppressions.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/text.hpp"
#include "tools/support/temporary_directory.hpp"

using namespace uptempo::vgpu::fences;
using nlohmann::json;
using uptempo::test::contains;
using uptempo::test::error_of;
using uptempo::vgpu::FenceScope;

namespace {

struct Made {
  Task::Kind kind = Task::Kind::dispatch;
  uint32_t queue = 1;
  uint64_t position = 0;
  const char* name = "";
  bool barrier = false;
  FenceScope acquire = FenceScope::none, release = FenceScope::none;
  uint32_t agent = 0;
};
TaskPtr task(const Made& made) {
  auto result = std::make_shared<Task>();
  result->kind = made.kind;
  result->id.actor = made.kind == Task::Kind::host ? kHost : made.queue;
  result->queue = made.queue;
  result->position = made.position;
  result->name = made.name;
  result->barrier = made.barrier;
  result->acquire = made.acquire;
  result->release = made.release;
  result->agent = made.agent;
  return result;
}

const TaskPtr kFill = task({.name = "_Z4fillPi.kd"}), kSum = task({.queue = 2, .name = "sum.kd"});
const TaskPtr kHostTask = task({.kind = Task::Kind::host, .name = "host"});
const TaskPtr kCopy = task({.kind = Task::Kind::copy, .queue = 3, .name = "copy_linear"});

Finding finding(Finding::Class what, TaskPtr writer, TaskPtr reader,
                Finding::Conflict conflict = Finding::Conflict::read_after_write) {
  return {what, conflict, std::move(writer), std::move(reader), 0x1010, 4, "reason", "rule", true};
}
Finding unordered(TaskPtr writer, TaskPtr reader) {
  return finding(Finding::Class::unordered, std::move(writer), std::move(reader));
}

const FindingDetails kDetails{
    .writer = {.lines = {"fill.cl:3"},
               .published_by = {{.function = "", .source = "", .module = "libhsa.so", .offset = 9},
                                {.function = "Solver::start(int (*)(int)) const",
                                 .source = "solver.cpp:7",
                                 .module = "a.out",
                                 .offset = 16}}},
    .reader = {.lines = {"sum.cl:1", "sum.cl:2", "sum.cl:5"}, .published_by = {}},
    .memory =
        MemoryDetails{
            .kind = "device memory",
            .begin = 0x1000,
            .bytes = 64,
            .allocated_by = {{.function = "main", .source = "", .module = "a.out", .offset = 32}}},
    .remedy = "order them"};

}  // namespace

TEST_CASE("mangled kernel names are readable, others stay") {
  CHECK(readable_kernel("_Z4fillPi.kd") == "fill(int*)");
  CHECK(readable_kernel("_Z4fillPi") == "fill(int*)");
  CHECK(readable_kernel("fill.kd") == "fill.kd");
  CHECK(readable_kernel("_Z.kd") == "_Z.kd");
  CHECK(readable_kernel("0x7f00") == "0x7f00");
}

TEST_CASE("details follow the sentence, the later access first, on indented lines") {
  CHECK(to_sentence(unordered(kFill, kSum), kDetails) ==
        "unordered: sum.kd (queue 2, packet 0: acquire none, release none) reads 4 bytes from "
        "address 0x1010 on, which fill(int*) (queue 1, packet 0: acquire none, release none) "
        "wrote: reason [rule]\n"
        "    sum.kd reads at sum.cl:1, sum.cl:2 or sum.cl:5\n"
        "    fill(int*) wrote at fill.cl:3, published by\n"
        "        Solver::start at solver.cpp:7\n"
        "    the address is 16 bytes into 64 bytes of device memory, allocated by\n"
        "        main in a.out\n"
        "    remedy: order them");
  const std::string overtaking = to_sentence(
      finding(Finding::Class::unordered, kFill, kSum, Finding::Conflict::write_after_read),
      kDetails);
  CHECK(overtaking.find("fill(int*) writes at fill.cl:3") < overtaking.find("sum.kd reads at"));
  // Templates have their result in the name.
  const auto shown = [](const std::string& function) {
    const FindingDetails details{
        .writer = {.lines = {}, .published_by = {{.function = function, .module = "a.out"}}},
        .reader = {},
        .memory = {},
        .remedy = {}};
    const std::string text = to_sentence(unordered(kFill, kSum), details);
    return text.substr(text.rfind("\n        ") + 9);
  };
  CHECK(shown("void Solver::run<int (*)(int)>(int)") == "Solver::run<int (*)(int)> in a.out");
  CHECK(shown("(anonymous namespace)::run(int)") == "(anonymous namespace)::run in a.out");
  CHECK(shown("Solver::operator bool() const") == "Solver::operator bool in a.out");
  // Nothing better is known than an offset in the runtime.
  const FindingDetails only_runtime{
      .writer = {.lines = {}, .published_by = {kDetails.writer.published_by.front()}},
      .reader = {},
      .memory = {},
      .remedy = {}};
  CHECK(to_sentence(unordered(kFill, kSum), only_runtime)
            .ends_with("\n    fill(int*) was published by\n        code in libhsa.so+0x9"));
}

TEST_CASE("the place of the host's access is in the sentence, its functions follow") {
  const auto host = [](std::vector<HostFrame> site) {
    return FindingDetails{.writer = {},
                          .reader = {.lines = {}, .published_by = {}, .site = std::move(site)}};
  };
  const Finding found = unordered(kFill, kHostTask);
  CHECK(contains(to_sentence(found), "unordered: the host reads 4 bytes"));
  CHECK(contains(to_sentence(found, host({{.offset = 0x7f00}})), ": the host (at 0x7f00) reads "));
  CHECK(contains(to_sentence(found, host({{.module = "a.out", .offset = 0x12}})),
                 ": the host (at a.out+0x12) reads "));
  const FindingDetails inlined =
      host({{.function = "look(int)", .source = "a.cpp:7", .module = "a.out", .offset = 16},
            {.function = "main", .source = "a.cpp:9", .module = "a.out", .offset = 16}});
  CHECK(contains(to_sentence(found, inlined), ": the host (at a.cpp:7) reads "));
  CHECK(contains(to_sentence(found, inlined),
                 "\n    the host reads in\n        look at a.cpp:7\n        main at a.cpp:9"));
  const json reader = json::parse(to_json(found, "gfx90a", inlined))["reader"];
  CHECK(reader["engine"] == "host");
  CHECK(reader["site"][1] ==
        json{{"function", "main"}, {"source", "a.cpp:9"}, {"module", "a.out"}, {"offset", 16}});
  CHECK_FALSE(json::parse(to_json(found, "gfx90a"))["reader"].contains("site"));
  // Python's have no module.
  const FindingDetails python = host({{.function = "f.<locals>.<lambda>", .source = "a.py:7"}});
  CHECK(contains(to_sentence(found, python),
                 "\n    the host reads in\n        f.<locals>.<lambda> at a.py:7"));
  CHECK(json::parse(to_json(found, "gfx90a", python))["reader"]["site"][0] ==
        json{{"function", "f.<locals>.<lambda>"}, {"source", "a.py:7"}});
}

TEST_CASE("the program's name of the stream or queue is before the number of traces") {
  using uptempo::vgpu::HipStream;
  const auto details = [](const QueueName& writer, const QueueName& reader) {
    return FindingDetails{.writer = {.lines = {}, .published_by = {}, .queue_name = writer},
                          .reader = {.lines = {}, .published_by = {}, .queue_name = reader}};
  };
  const auto text = [&](const FindingDetails& names) {
    return to_sentence(unordered(kFill, kSum), names);
  };
  const auto object = [&](const Finding& found, const FindingDetails& names) {
    return json::parse(to_json(found, "gfx90a", names));
  };
  const FindingDetails hip = details({.stream = HipStream{0x55d0c0}}, {.stream = HipStream::null});
  CHECK(contains(text(hip), "sum.kd (the null stream, queue 2, packet 0: "));
  CHECK(contains(text(hip), "fill(int*) (stream 0x55d0c0, queue 1, packet 0: "));
  json found = object(unordered(kFill, kSum), hip);
  CHECK(found["writer"]["stream"] == "0x55d0c0");
  CHECK(found["reader"]["stream"] == "null");
  CHECK(found["writer"]["queue"] == 1);

  const FindingDetails other =
      details({.hsa_queue = 0x7f00, .hsa_queue_id = 3}, {.stream = HipStream::per_thread});
  CHECK(contains(text(other), "sum.kd (the thread's default stream, queue 2, packet 0: "));
  CHECK(contains(text(other), "fill(int*) (hsa_queue_t 0x7f00 of id 3, queue 1, packet 0: "));
  found = object(unordered(kFill, kCopy), other);
  CHECK(found["writer"]["hsa_queue"] == "0x7f00");
  CHECK(found["writer"]["hsa_queue_id"] == 3);
  CHECK_FALSE(found["writer"].contains("stream"));
  CHECK(found["reader"]["engine"] == "copy_linear");
  CHECK(found["reader"]["stream"] == "per-thread");

  found = object(unordered(kFill, kSum), details({.hsa_queue = 0x7f00}, {}));
  CHECK(found["writer"]["hsa_queue"] == "0x7f00");
  CHECK_FALSE(found["writer"].contains("hsa_queue_id"));
  for (const char* const field : {"stream", "hsa_queue"})
    CHECK_FALSE(found["reader"].contains(field));
  Finding of_gpus = unordered(kFill, kSum);
  of_gpus.several_gpus = true;
  CHECK(contains(to_sentence(of_gpus, hip), "fill(int*) (GPU 0, stream 0x55d0c0, queue 1, "));
}

TEST_CASE("JSON has the details with the names that the linker has") {
  const std::string line = to_json(unordered(kFill, kSum), "gfx90a", kDetails);
  CHECK(line.find('\n') == std::string::npos);
  const json all = json::parse(line);
  CHECK(all["writer"]["kernel"] == "_Z4fillPi.kd");
  CHECK(all["writer"]["source_name"] == "fill(int*)");
  CHECK(all["writer"]["lines"] == json{"fill.cl:3"});
  CHECK(all["writer"]["published_by"] == json{{{"module", "libhsa.so"}, {"offset", 9}},
                                              {{"function", "Solver::start(int (*)(int)) const"},
                                               {"source", "solver.cpp:7"},
                                               {"module", "a.out"},
                                               {"offset", 16}}});
  CHECK(all["reader"]["kernel"] == "sum.kd");
  CHECK_FALSE(all["reader"].contains("source_name"));
  CHECK_FALSE(all["reader"].contains("published_by"));
  CHECK(all["memory"] ==
        json{{"kind", "device memory"},
             {"address", 0x1000},
             {"bytes", 64},
             {"offset", 16},
             {"allocated_by", {{{"function", "main"}, {"module", "a.out"}, {"offset", 32}}}}});
  CHECK(all["remedy"] == "order them");
}

TEST_CASE("remedies for missing order are in the terms of HSA") {
  const auto hsa = [](const Finding& found) { return remedy(found, {Library::hsa, Library::hsa}); };
  const TaskPtr same_queue = task({.position = 1, .name = "late.kd"});
  CHECK(hsa(unordered(kFill, same_queue)) ==
        "set the barrier bit of the packet of late.kd, or put a barrier-AND packet that depends on "
        "the completion signal of fill(int*) before late.kd");
  CHECK(hsa(unordered(kFill, kSum)) ==
        "put a barrier-AND packet that depends on the completion signal of fill(int*) before "
        "sum.kd");
  CHECK(contains(hsa(unordered(kFill, kHostTask)), "hsa_signal_wait_scacquire"));
  CHECK(contains(hsa(unordered(kFill, kCopy)), "dependency of the copy"));
  CHECK(contains(hsa(unordered(kCopy, kSum)), "completion signal of the copy before sum.kd"));
  CHECK(contains(hsa(unordered(kHostTask, kSum)), "before it publishes sum.kd"));
  // The same where the later packet has overtaken the earlier one.
  CHECK(hsa(finding(Finding::Class::unordered, kFill, same_queue,
                    Finding::Conflict::write_after_read)) == hsa(unordered(kFill, same_queue)));
  // The write comes second.
  CHECK(hsa(finding(Finding::Class::unordered, kFill, kSum, Finding::Conflict::write_after_read)) ==
        "put a barrier-AND packet that depends on the completion signal of sum.kd before "
        "fill(int*)");
}

TEST_CASE("remedies for missing fences name the fence that is too narrow, and its scope") {
  const auto hsa = [](TaskPtr writer, TaskPtr reader) {
    return remedy(finding(Finding::Class::stale, std::move(writer), std::move(reader)),
                  {Library::hsa, Library::hsa});
  };
  const TaskPtr releasing = task({.name = "a.kd", .release = FenceScope::agent});
  const TaskPtr acquiring = task({.name = "b.kd", .acquire = FenceScope::agent});
  const std::string acquire =
      "give the packet of sum.kd, or a packet before it that it waits for, the acquire fence "
      "scope agent or system";
  CHECK(hsa(releasing, kSum) == acquire);
  CHECK(hsa(kFill, acquiring) ==
        "give the packet of fill(int*), or a packet after it that waits for it, the release fence "
        "scope agent or system");
  CHECK(contains(hsa(kFill, kSum), "the release fence scope agent or system; give the packet"));
  CHECK(contains(hsa(releasing, kHostTask), "the release fence scope system"));
  CHECK(contains(hsa(kHostTask, acquiring), "the acquire fence scope system"));
  const TaskPtr peer = task({.name = "b.kd", .acquire = FenceScope::agent, .agent = 1});
  CHECK(contains(hsa(releasing, peer), "the release fence scope system; "));
  CHECK(contains(hsa(releasing, peer), "the acquire fence scope system"));
  // Neither fence is too narrow, so they are at the wrong places.
  CHECK(hsa(releasing, acquiring) ==
        "release at agent or system scope after a.kd and acquire at agent or system scope before "
        "b.kd");
}

TEST_CASE("remedies for HIP name HIP's functions") {
  const auto hip = [](const Finding& found) { return remedy(found, {Library::hip, Library::hip}); };
  for (const char* function : {"hipEventRecord", "hipStreamWaitEvent", "hipDeviceSynchronize"})
    CHECK(contains(hip(unordered(kFill, kSum)), function));
  CHECK(contains(hip(unordered(kFill, kHostTask)), "hipStreamSynchronize"));
  CHECK(contains(hip(unordered(kHostTask, kSum)), "before it launches sum.kd"));
  CHECK(contains(hip(finding(Finding::Class::unreleased, kFill, kHostTask)),
                 "hipEventReleaseToSystem"));
  CHECK(contains(hip(finding(Finding::Class::stale, kFill, kSum)), "hipStreamWaitEvent"));
  for (const Finding& found : {unordered(kFill, kSum), unordered(kCopy, kSum)})
    CHECK_FALSE(contains(hip(found), "hsa_"));
}

TEST_CASE("the host writes for a kernel before it launches it, and reads its results afterwards") {
  constexpr auto kUnordered = Finding::Class::unordered;
  struct Terms {
    Library library;
    const char *wait, *before;
  };
  for (const auto& [library, wait, before] :
       {Terms{
            Library::hsa,
            "let the host wait for sum.kd with hsa_signal_wait_scacquire on its completion signal",
            "before it publishes sum.kd"},
        Terms{Library::hip,
              "let the host wait for sum.kd with hipStreamSynchronize, hipEventSynchronize or "
              "hipDeviceSynchronize",
              "before it launches sum.kd"},
        Terms{Library::uptempo,
              "let the host wait for sum.kd with wait() of its submission's Completion, or "
              "synchronize() of its Stream,",
              "before it submits sum.kd"}}) {
    const auto text = [&, of = library](TaskPtr writer, TaskPtr reader,
                                        Finding::Conflict conflict) {
      return remedy(finding(kUnordered, std::move(writer), std::move(reader), conflict), {of, of});
    };
    const std::string waits = wait, early = before;
    const std::string writes_early = "let the host write the memory " + early;
    using enum Finding::Conflict;
    CHECK(text(kHostTask, kSum, read_after_write) == writes_early);
    CHECK(text(kHostTask, kSum, write_after_write) == writes_early);
    CHECK(text(kHostTask, kSum, write_after_read) ==
          writes_early + ", or, if sum.kd must not see the new bytes, " + waits +
              " before it writes them");
    CHECK(text(kSum, kHostTask, read_after_write) == waits + " before it reads the memory");
    CHECK(text(kSum, kHostTask, write_after_write) == waits + " before it writes the memory");
    CHECK(text(kSum, kHostTask, write_after_read) ==
          waits +
              " before it reads the memory, or, for the bytes from before sum.kd, let it read "
              "them " +
              early);
  }
}

TEST_CASE("a kernel that overtakes earlier work of its stream was launched in any order") {
  using uptempo::vgpu::HipStream;
  constexpr Libraries kHip{Library::hip, Library::hip};
  const auto in_stream = [](uint64_t stream, const Made& made) {
    auto result = std::make_shared<Task>(*task(made));
    result->origin.published.stream = HipStream{stream};
    return result;
  };
  const TaskPtr first = in_stream(0x55d0c0, {.name = "first.kd", .barrier = true});
  constexpr Made kSecond{.position = 1, .name = "second.kd"};
  const std::string without = "launch second.kd without hipExtAnyOrderLaunch";
  const TaskPtr second = in_stream(0x55d0c0, kSecond);
  CHECK(remedy(unordered(first, second), kHip).starts_with(without));
  // The stream of one is not known, or it had written when the first one read.
  CHECK(remedy(unordered(first, task(kSecond)), kHip).starts_with(without));
  CHECK(
      remedy(finding(Finding::Class::unordered, first, second, Finding::Conflict::write_after_read),
             kHip)
          .starts_with(without));
  // The barrier bit, another queue, another stream.
  for (const TaskPtr& other :
       {TaskPtr(in_stream(0x55d0c0, {.position = 1, .name = "second.kd", .barrier = true})),
        TaskPtr(in_stream(0x55d0c0, {.queue = 2, .name = "second.kd"})),
        TaskPtr(in_stream(0x55d0d0, kSecond))})
    CHECK_FALSE(contains(remedy(unordered(first, other), kHip), "hipExtAnyOrderLaunch"));
}

TEST_CASE("remedies for Uptempo name its functions, and no packet") {
  constexpr Libraries kUptempo{Library::uptempo, Library::uptempo};
  const TaskPtr late = task({.position = 1, .name = "late.kd"});
  const std::string same_queue = remedy(unordered(kFill, late), kUptempo);
  for (const char* const part : {".reads()", ".writes()", ".after()", "fill(int*) and late.kd"})
    CHECK(contains(same_queue, part));
  const std::string streams = remedy(unordered(kFill, kSum), kUptempo);
  CHECK(contains(streams, "call record() on the Stream of fill(int*) after it and after()"));
  CHECK(contains(streams, "complete_with"));
  CHECK(contains(remedy(unordered(kFill, kCopy), kUptempo), "Stream::copy()"));
  const Finding stale = finding(Finding::Class::stale, kFill, late);
  CHECK(remedy(stale, kUptempo) ==
        "leave out .fences() and declare what the dispatches read and write (.reads(), .writes()), "
        "or pass FenceScope::agent or wider to .fences() as the release of fill(int*) and as the "
        "acquire of late.kd");
  CHECK(contains(remedy(finding(Finding::Class::stale, kHostTask, late), kUptempo),
                 "FenceScope::system to .fences() as the acquire of late.kd"));
  CHECK(contains(remedy(finding(Finding::Class::unreleased, kFill, kHostTask), kUptempo),
                 ".observed_by(Observer::system)"));
  for (const Finding& found :
       {unordered(kFill, late), unordered(kFill, kSum), unordered(kFill, kCopy), stale})
    for (const char* const other : {"hsa_", "hip", "barrier-AND"})
      CHECK_FALSE(contains(remedy(found, kUptempo), other));
}

TEST_CASE("work of two libraries is ordered by what joins the two") {
  const auto text = [](Library of_fill, Library of_sum) {
    return remedy(unordered(kFill, kSum), {of_fill, of_sum});
  };
  CHECK(text(Library::hip, Library::uptempo) ==
        "call hip::after(queue, stream), with the Queue or Stream of sum.kd and HIP's stream of "
        "fill(int*), before sum.kd is submitted");
  CHECK(text(Library::uptempo, Library::hip) ==
        "call hip::after(stream, queue), with HIP's stream of sum.kd and the Queue or Stream of "
        "fill(int*), before sum.kd is launched: HIP does not wait for Uptempo's queues");
  CHECK(text(Library::hip, Library::hsa) ==
        "let the host wait for fill(int*) with hipStreamSynchronize, hipEventSynchronize or "
        "hipDeviceSynchronize before it publishes sum.kd");
  CHECK(contains(text(Library::hsa, Library::hip), "hsa_signal_wait_scacquire"));
  CHECK(contains(text(Library::hsa, Library::hip), "before it launches sum.kd"));
  CHECK(contains(text(Library::hsa, Library::uptempo), "BatchSubmitter::after"));
  CHECK(contains(text(Library::uptempo, Library::hsa), "complete_with"));
  // The write of sum.kd comes second.
  const Finding overtakes =
      finding(Finding::Class::unordered, kSum, kFill, Finding::Conflict::write_after_read);
  CHECK(remedy(overtakes, {Library::uptempo, Library::hip}) ==
        text(Library::hip, Library::uptempo));
}

TEST_CASE("a remedy tells two tasks of the same name apart") {
  const TaskPtr other = task({.queue = 2, .position = 7, .name = "_Z4fillPi.kd"});
  for (const Library library : {Library::hip, Library::hsa, Library::uptempo}) {
    const Libraries libraries{library, library};
    const std::string order = remedy(unordered(kFill, other), libraries);
    CAPTURE(order);
    CHECK(contains(order, "fill(int*) (queue 1, packet 0)"));
    CHECK(contains(order, "fill(int*) (queue 2, packet 7)"));
    CHECK_FALSE(contains(remedy(unordered(kFill, kSum), libraries), "queue 1"));
  }
  const TaskPtr copy =
      task({.kind = Task::Kind::copy, .queue = 4, .position = 64, .name = "copy_linear"});
  CHECK(contains(remedy(unordered(kCopy, copy), {Library::hip, Library::hip}),
                 "the copy (queue 4, offset 64)"));
}

TEST_CASE("a suppression names a class, two globs and perhaps a queue") {
  const auto suppresses = [](const std::string& rule, const Finding& found) {
    return Suppressions::parse(rule, "f").suppress(found);
  };
  const Finding found = unordered(kFill, kSum);
  for (const char* rule :
       {"unordered fill* sum*", "* * *", "unordered _Z4fillPi.kd sum.kd", "unordered _Z4fillPi sum",
        "unordered \"fill(int*)\" s?m", "  *\tfill(int\\*) sum", "* *(* *m queue=1",
        "* fill* sum queue=2 # why"}) {
    CAPTURE(rule);
    // A backslash has no meaning.
    CHECK(suppresses(rule, found) == (std::string(rule).find('\\') == std::string::npos));
  }
  for (const char* rule :
       {"stale fill* sum*", "unordered sum* fill*", "unordered fill sum", "unordered fill* su",
        "unordered fill* sum queue=3", "unordered host sum", "# unordered fill* sum*", ""}) {
    CAPTURE(rule);
    CHECK_FALSE(suppresses(rule, found));
  }
  CHECK(suppresses("unordered host copy_*", unordered(kHostTask, kCopy)));
  CHECK_FALSE(suppresses("unordered host copy_* queue=1", unordered(kHostTask, kCopy)));
  const Finding overwrite =
      finding(Finding::Class::unordered, kFill, kSum, Finding::Conflict::write_after_write);
  CHECK(suppresses("unordered sum fill*", overwrite));
  CHECK(suppresses("unordered fill* sum", overwrite));
}

TEST_CASE("suppressions that match nothing are listed by file and line") {
  Suppressions rules = Suppressions::parse("# first\nunordered a b\n\n* * sum\nstale * *\n", "f");
  CHECK(rules.unused() == std::vector<std::string>{"f:2", "f:4", "f:5"});
  CHECK(rules.suppress(unordered(kFill, kSum)));
  CHECK_FALSE(rules.suppress(unordered(kFill, kCopy)));
  CHECK(rules.unused() == std::vector<std::string>{"f:2", "f:5"});
}

TEST_CASE("an invalid suppression is an error with file, line and reason") {
  for (const auto& [text, message] :
       {std::pair("unordered a", "f:1: a rule is CLASS WRITER READER [queue=N]"),
        std::pair("\n\nracy a b",
                  "f:3: 'racy' is not one of unordered, stale, unreleased, out-of-bounds"),
        std::pair("# x\nstale a b queue=x", "f:2: 'queue=x' is not queue=N"),
        std::pair("stale a b queue=", "f:1: 'queue=' is not queue=N"),
        std::pair("stale a b c", "f:1: 'c' is not queue=N"),
        std::pair("stale a b queue=1 d", "f:1: a rule is"),
        std::pair("stale \"a b", "f:1: a quote does not end"),
        std::pair("unordered \"fill*\"*", "f:1: a space must follow the end of a quote"),
        std::pair("stale \"a\"\"b\" c", "f:1: a space must follow the end of a quote"),
        std::pair("stale a\"b c\" d", "f:1: a quote must begin a word")}) {
    CAPTURE(text);
    const std::string error =
        error_of<std::invalid_argument>([&, rules = text] { Suppressions::parse(rules, "f"); });
    CAPTURE(error);
    CHECK(error.starts_with(message));
  }
  CHECK(error_of<std::invalid_argument>([] {
          Suppressions::read("/nonexistent/s");
        }).starts_with("cannot read '/nonexistent/s': No such file"));
  for (const char* file : {"/tmp", "/dev/zero"})
    CHECK(error_of<std::invalid_argument>([&] { Suppressions::read(file); }) ==
          "cannot read '" + std::string(file) + "': it is not a regular file");
  const uptempo::support::TemporaryDirectory directory;
  std::ofstream(directory.file("large")) << std::string((1 << 20) + 1, '#');
  CHECK(error_of<std::invalid_argument>([&] {
          Suppressions::read(directory.file("large"));
        }).ends_with("it is larger than 1 MiB"));
}
