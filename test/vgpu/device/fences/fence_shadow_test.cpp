// Histories of bytes: how runs split and join, and what the shadow stores about readers, writers
// and cache lines.
#include "device/fences/shadow.hpp"

#include <map>
#include <random>
#include <set>
#include <tuple>

#include "device/fences/access_set.hpp"
#include "page_bytes.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::fences;
using uptempo::test::for_page_bytes;
using uptempo::test::page_bytes;

namespace {

constexpr GpuAddress kPage = 0x7f0000001000;
constexpr auto kType = MemoryType::non_coherent;

// Creates tasks and applies their accesses to a Shadow. Each task is its own actor, ordered with
// all fences after the tasks that the test names.
class Memory {
 public:
  TaskPtr task(Task::Kind kind, std::initializer_list<TaskPtr> after = {}, bool fences = true) {
    auto result = std::make_shared<Task>();
    result->id = {next_++, 0};
    result->kind = kind;
    for (const TaskPtr& other : after) {
      Clock known = other->view.ordered;
      known.add(other->id);
      View& view = result->view;
      view.ordered.join(known);
      if (!fences) continue;
      for (Clock* clock :
           {&view.released_agent, &view.released_system, &view.visible, &view.l1_clean})
        clock->join(known);
    }
    return result;
  }
  TaskPtr dispatch(std::initializer_list<TaskPtr> after = {}) {
    return task(Task::Kind::dispatch, after);
  }
  TaskPtr copy(std::initializer_list<TaskPtr> after = {}) { return task(Task::Kind::copy, after); }

  void apply(const TaskPtr& task, AccessSet& accesses, MemoryType type = kType) {
    accesses.for_each([&](GpuAddress page, const PageAccesses& touched) {
      shadow.apply(task, page, touched, {type}, ages, report());
    });
  }
  TaskPtr reads(TaskPtr task, GpuAddress address, uint32_t bytes, Path path = Path::vector) {
    if (task->kind == Task::Kind::dispatch) {
      AccessSet accesses;
      accesses.add_read(address, bytes, path, 0);
      apply(task, accesses);
    } else {
      for_page_bytes(address, bytes, [&](GpuAddress page, const PageMask& mask) {
        shadow.read(task, page, mask, report());
      });
    }
    return task;
  }
  TaskPtr writes(TaskPtr task, GpuAddress address, uint32_t bytes, Path path = Path::vector) {
    if (task->kind == Task::Kind::dispatch) {
      AccessSet accesses;
      accesses.add_write(address, bytes, path, 0);
      apply(task, accesses);
    } else {
      for_page_bytes(address, bytes, [&](GpuAddress page, const PageMask& mask) {
        shadow.write(task, page, mask, {kType}, ages, report());
      });
    }
    return task;
  }
  // Returns the conflicts since the last call: "RAW 1>2 64+4 stale".
  std::string found() { return std::exchange(found_, {}); }
  std::string writers(GpuAddress begin, GpuAddress end) const {
    std::string text;
    shadow.for_each_write(
        begin, end,
        [&](const TaskPtr& writer, bool, MemoryType, GpuAddress address, uint32_t bytes) {
          text += (text.empty() ? "" : " ") + std::to_string(writer->id.actor) + ":" +
                  std::to_string(address - kPage) + "+" + std::to_string(bytes);
        });
    return text;
  }

  Shadow shadow;
  AgentAges ages = AgentAges(1);

 private:
  Shadow::Report report() {
    return [this](const Violation& violation, Finding::Conflict conflict, const TaskPtr& writer,
                  const TaskPtr& reader, GpuAddress address, uint32_t bytes) {
      constexpr const char* kConflicts[] = {"RAW", "WAR", "WAW"};
      found_ += (found_.empty() ? "" : "; ") + std::string(kConflicts[static_cast<int>(conflict)]) +
                ' ' + std::to_string(writer->id.actor) + '>' + std::to_string(reader->id.actor) +
                ' ' + std::to_string(address - kPage) + '+' + std::to_string(bytes);
      if (violation.what == Finding::Class::stale)
        found_ += violation.possible_on_target ? " stale" : " harmless";
    };
  }
  ActorId next_ = 1;
  std::string found_;
};

}  // namespace

TEST_CASE("untouched memory conflicts with nothing") {
  Memory memory;
  memory.reads(memory.dispatch(), kPage, 64);
  memory.writes(memory.copy(), kPage + 64, 64);
  CHECK(memory.found() == "");
}

TEST_CASE("a conflict covers exactly the bytes that both tasks touched") {
  for (const uint32_t begin : {100u, 104u, 107u, 108u, 93u, 92u}) {
    Memory memory;
    const TaskPtr writer = memory.writes(memory.dispatch(), kPage + 100, 8);
    memory.reads(memory.dispatch(), kPage + begin, 8);
    const uint32_t first = std::max(begin, 100u), end = std::min(begin + 8, 108u);
    CAPTURE(begin);
    CHECK(memory.found() ==
          (first < end ? "RAW 1>2 " + std::to_string(first) + '+' + std::to_string(end - first)
                       : ""));
  }
}

TEST_CASE("neighbouring bytes of different tasks are separate") {
  Memory memory;
  for (uint32_t byte = 0; byte < 8; ++byte) memory.writes(memory.dispatch(), kPage + byte, 1);
  CHECK(memory.found() == "");
  CHECK(memory.writers(kPage, kPage + 8) == "1:0+1 2:1+1 3:2+1 4:3+1 5:4+1 6:5+1 7:6+1 8:7+1");
  memory.reads(memory.dispatch(), kPage + 3, 2);
  CHECK(memory.found() == "RAW 4>9 3+1; RAW 5>9 4+1");
}

TEST_CASE("a write over the middle leaves both ends to the previous writer") {
  Memory memory;
  const TaskPtr first = memory.writes(memory.dispatch(), kPage, 4096);
  memory.writes(memory.dispatch({first}), kPage + 1000, 100);
  CHECK(memory.found() == "");
  CHECK(memory.writers(kPage, kPage + 4096) == "1:0+1000 2:1000+100 1:1100+2996");
  memory.writes(memory.dispatch({first}), kPage + 900, 3000);
  CHECK(memory.found() == "WAW 2>3 1000+100");
  CHECK(memory.writers(kPage + 950, kPage + 4000) == "3:950+2950 1:3900+100");
}

TEST_CASE("a write over many runs merges them") {
  Memory memory;
  for (uint32_t byte = 0; byte < 4096; byte += 3) memory.writes(memory.dispatch(), kPage + byte, 2);
  CHECK(memory.writers(kPage, kPage + 10) == "1:0+2 2:3+2 3:6+2 4:9+1");
  const TaskPtr copy = memory.copy();
  memory.writes(copy, kPage, 4096);
  CHECK(memory.writers(kPage, kPage + 4096) == std::to_string(copy->id.actor) + ":0+4096");
}

TEST_CASE("ranges include the first and the last byte of a page") {
  Memory memory;
  memory.writes(memory.dispatch(), kPage + 4095, 2);
  CHECK(memory.writers(kPage, kPage + 8192) == "1:4095+1 1:4096+1");
  memory.reads(memory.copy(), kPage + 4095, 1);
  memory.reads(memory.copy(), kPage + 4096, 4096);
  CHECK(memory.found() == "RAW 1>2 4095+1; RAW 1>3 4096+1");
}

TEST_CASE("a write is checked against every reader since the last write") {
  Memory memory;
  const TaskPtr a = memory.reads(memory.dispatch(), kPage, 64);
  const TaskPtr b = memory.reads(memory.dispatch(), kPage + 32, 64);
  const TaskPtr c = memory.reads(memory.copy(), kPage + 48, 4);
  SECTION("unordered with all") {
    memory.writes(memory.dispatch(), kPage, 96);
    CHECK(memory.found() ==
          "WAR 4>1 0+32; WAR 4>1 32+16; WAR 4>2 32+16; WAR 4>1 48+4; WAR 4>2 48+4; WAR 4>3 48+4; "
          "WAR 4>1 "
          "52+12; "
          "WAR 4>2 52+12; WAR 4>2 64+32");
  }
  SECTION("ordered after some") {
    memory.writes(memory.dispatch({a, c}), kPage + 40, 16);
    CHECK(memory.found() == "WAR 4>2 40+8; WAR 4>2 48+4; WAR 4>2 52+4");
  }
  SECTION("ordered after all") {
    memory.writes(memory.copy({a, b, c}), kPage, 96);
    CHECK(memory.found() == "");
  }
}

TEST_CASE("a later ordered reader replaces an earlier one, and a write drops all readers") {
  Memory memory;
  const TaskPtr a = memory.reads(memory.dispatch(), kPage, 4);
  const TaskPtr b = memory.reads(memory.dispatch({a}), kPage, 4);
  memory.writes(memory.dispatch(), kPage, 4);
  CHECK(memory.found() == "WAR 3>2 0+4");
  memory.writes(memory.dispatch(), kPage, 4);
  CHECK(memory.found() == "WAW 3>4 0+4");
}

TEST_CASE("a task does not conflict with itself") {
  Memory memory;
  const TaskPtr task = memory.dispatch();
  AccessSet accesses;
  accesses.add_read(kPage, 8, Path::vector, 0);
  accesses.add_write(kPage + 4, 8, Path::vector, 0);
  memory.apply(task, accesses);
  const TaskPtr copy = memory.copy({task});
  memory.reads(copy, kPage, 64);
  memory.writes(copy, kPage + 32, 64);
  memory.writes(copy, kPage, 64);
  CHECK(memory.found() == "");
}

TEST_CASE("each run of bytes has its own readers") {
  Memory memory;
  memory.reads(memory.dispatch(), kPage, 1);
  memory.writes(memory.dispatch(), kPage + 1, 63);
  CHECK(memory.found() == "");
  memory.writes(memory.dispatch(), kPage, 1);
  CHECK(memory.found() == "WAR 3>1 0+1");
}

TEST_CASE("a cache may hold an old line unless it was invalidated before the write") {
  for (const bool invalidated : {false, true}) {
    for (const Path path : {Path::vector, Path::scalar, Path::synchronising}) {
      Memory memory;
      const TaskPtr early = memory.reads(memory.dispatch(), kPage + 32, 4, path);
      if (invalidated) ++memory.ages[0].l1;
      const TaskPtr writer = memory.task(Task::Kind::dispatch, {early}, false);
      memory.writes(writer, kPage, 4);
      const TaskPtr reader = memory.task(Task::Kind::dispatch, {early, writer}, false);
      memory.reads(reader, kPage, 4, path);
      CAPTURE(invalidated, static_cast<int>(path));
      // Loads past L1 are never stale there and need no fence.
      CHECK(memory.found() == (path == Path::synchronising ? ""
                               : invalidated               ? "RAW 2>3 0+4 harmless"
                                                           : "RAW 2>3 0+4 stale"));
    }
  }
}

TEST_CASE("a copy's data may be stale in L2 if the line was there since the last invalidation") {
  for (const bool invalidated : {false, true}) {
    for (const auto& [address, same_line] :
         {std::pair{kPage, true}, {kPage + 64, true}, {kPage + 128, false}}) {
      Memory memory;
      const TaskPtr early = memory.writes(memory.dispatch(), address + 8, 4);
      if (invalidated) ++memory.ages[0].l2;
      const TaskPtr writer = memory.writes(memory.copy({early}), kPage, 4);
      const TaskPtr reader = memory.task(Task::Kind::dispatch, {early, writer}, false);
      memory.reads(reader, kPage, 4);
      CAPTURE(invalidated, address);
      CHECK(memory.found() ==
            (same_line && !invalidated ? "RAW 2>3 0+4 stale" : "RAW 2>3 0+4 harmless"));
    }
  }
}

TEST_CASE("only unordered tasks with synchronising accesses to the same byte meet") {
  struct Case {
    Path first, second;
    GpuAddress where;
    bool ordered, meets;
  };
  for (const auto& [first, second, where, ordered, meets] :
       {Case{Path::synchronising, Path::synchronising, kPage, false, true},
        Case{Path::vector, Path::synchronising, kPage, false, true},
        Case{Path::synchronising, Path::vector, kPage, false, true},
        Case{Path::vector, Path::vector, kPage, false, false},
        Case{Path::synchronising, Path::synchronising, kPage + 4, false, false},
        Case{Path::synchronising, Path::synchronising, kPage, true, false}}) {
    Memory memory;
    const TaskPtr writer = memory.writes(memory.dispatch(), kPage, 4, first);
    const TaskPtr reader = ordered ? memory.dispatch({writer}) : memory.dispatch();
    AccessSet accesses;
    accesses.add_read(where, 4, second, 0);
    std::vector<TaskPtr> met;
    accesses.for_each([&](GpuAddress page, const PageAccesses& touched) {
      memory.shadow.meet(*reader, page, touched, [&](const TaskPtr& task) { met.push_back(task); });
    });
    CAPTURE(static_cast<int>(first), static_cast<int>(second), where, ordered);
    CHECK(met == (meets ? std::vector{writer} : std::vector<TaskPtr>{}));
  }
}

TEST_CASE("forgotten pages are gone, and their neighbours stay") {
  Memory memory;
  memory.writes(memory.dispatch(), kPage, 3 * 4096);
  memory.shadow.forget(kPage + 4096, kPage + 8192);
  CHECK(memory.writers(0, ~GpuAddress{0}) == "1:0+4096 1:8192+4096");
}

TEST_CASE(
    "bytes that an unobserved writer may have changed lose their history, their neighbours keep "
    "it") {
  for (const auto& [begin, bytes, left] : {std::tuple{0u, 4096u, ""},
                                           {0u, 1u, "1:1+4095"},
                                           {4095u, 1u, "1:0+4095"},
                                           {100u, 50u, "1:0+100 1:150+3946"}}) {
    Memory memory;
    memory.writes(memory.dispatch(), kPage, 4096);
    memory.shadow.forget_bytes(kPage, page_bytes(kPage + begin, bytes));
    CHECK(memory.writers(kPage, kPage + 4096) == left);
    memory.writes(memory.dispatch(), kPage + begin, bytes);
    CHECK(memory.found() == "");
  }
}

TEST_CASE("a line that was read during another task's write may be cached with the old bytes") {
  for (const bool overlapped : {true, false}) {
    Memory memory;
    const TaskPtr beside = memory.dispatch();
    const TaskPtr writer = memory.dispatch();
    if (!overlapped) memory.reads(beside, kPage + 128, 4);
    memory.writes(writer, kPage, 128);
    if (overlapped) memory.reads(beside, kPage + 60, 2);
    memory.found();  // drops the finding on the unordered pair
    const TaskPtr reader = memory.task(Task::Kind::dispatch, {beside, writer}, false);
    memory.reads(reader, kPage, 128);
    CAPTURE(overlapped);
    CHECK(
        memory.found() ==
        (overlapped
             ? "RAW 2>3 0+60 stale; RAW 2>3 60+2 stale; RAW 2>3 62+2 stale; RAW 2>3 64+64 harmless"
             : "RAW 2>3 0+128 harmless"));
  }
}

TEST_CASE("runs of bytes give the same conflicts as a byte-by-byte model") {
  constexpr uint32_t kBytes = 256;
  constexpr GpuAddress kBase = kPage + 4096 - kBytes / 2;  // spans two pages
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    Memory memory;
    struct Byte {
      TaskPtr writer;
      std::vector<TaskPtr> readers;
    };
    std::vector<Byte> model(kBytes);
    std::vector<TaskPtr> tasks;
    for (int step = 0; step < 12; ++step) {
      const TaskPtr task = tasks.empty() || random() % 2 != 0
                               ? memory.dispatch()
                               : memory.dispatch({tasks[random() % tasks.size()]});
      std::vector<bool> read(kBytes), written(kBytes);
      AccessSet accesses;
      for (int access = 0; access < 3; ++access) {
        const auto begin = static_cast<uint32_t>(random() % kBytes);
        const auto count = static_cast<uint32_t>(1 + random() % (kBytes - begin));
        const bool write = random() % 2 != 0;
        if (write) {
          accesses.add_write(kBase + begin, count, Path::vector, 0);
        } else {
          accesses.add_read(kBase + begin, count, Path::vector, 0);
        }
        for (uint32_t byte = begin; byte < begin + count; ++byte) {
          if (write) written[byte] = true;
          if (!write && !written[byte]) read[byte] = true;
        }
      }
      const auto ordered = [&](const TaskPtr& other) {
        return task->view.ordered.contains(other->id);
      };
      std::map<std::tuple<Finding::Conflict, const Task*, const Task*>, std::set<uint32_t>>
          expected, found;
      for (uint32_t byte = 0; byte < kBytes; ++byte) {
        Byte& at = model[byte];
        const bool race = at.writer != nullptr && !ordered(at.writer);
        if (read[byte] && race)
          expected[{Finding::Conflict::read_after_write, at.writer.get(), task.get()}].insert(byte);
        if (written[byte] && !read[byte] && race)
          expected[{Finding::Conflict::write_after_write, at.writer.get(), task.get()}].insert(
              byte);
        if (written[byte]) {
          for (const TaskPtr& reader : at.readers)
            if (!ordered(reader))
              expected[{Finding::Conflict::write_after_read, task.get(), reader.get()}].insert(
                  byte);
          at = {task, {}};
        } else if (read[byte]) {
          std::erase_if(at.readers, ordered);
          at.readers.push_back(task);
        }
      }
      accesses.for_each([&](GpuAddress page, const PageAccesses& touched) {
        memory.shadow.apply(task, page, touched, {kType}, memory.ages,
                            [&](const Violation&, Finding::Conflict conflict, const TaskPtr& writer,
                                const TaskPtr& reader, GpuAddress address, uint32_t bytes) {
                              for (uint32_t byte = 0; byte < bytes; ++byte)
                                found[{conflict, writer.get(), reader.get()}].insert(
                                    static_cast<uint32_t>(address - kBase) + byte);
                            });
      });
      tasks.push_back(task);
      CAPTURE(seed, step);
      REQUIRE((found == expected));
      if (random() % 4 != 0) continue;
      // An unobserved writer, in the first page or in the second.
      const auto half = static_cast<uint32_t>(random() % 2 * (kBytes / 2));
      const auto begin = static_cast<uint32_t>(random() % (kBytes / 2));
      const auto count = static_cast<uint32_t>(1 + random() % (kBytes / 2 - begin));
      memory.shadow.forget_bytes(page_of(kBase + half + begin),
                                 page_bytes(kBase + half + begin, count));
      for (uint32_t byte = half + begin; byte < half + begin + count; ++byte) model[byte] = {};
    }
  }
}
