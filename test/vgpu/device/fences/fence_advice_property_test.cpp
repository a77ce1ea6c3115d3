// Advice on random programs: a recording gives the findings of the run, and a program that follows
// all advice has the same findings.
#include <algorithm>

#include "device/fences/advice.hpp"
#include "fence_random_program.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::test;
using namespace uptempo::vgpu;

namespace {

// Headers that replace those of a program's packets, by queue and index.
using Headers = std::map<std::pair<ActorId, uint64_t>, Checker::Packet>;

// The parameters of a random program.
struct Which {
  uint64_t seed;
  int steps;
  bool synchronising, alike;
  size_t pages;
  std::string text() const {
    return "seed " + std::to_string(seed) + ", " + std::to_string(steps) + " steps" +
           (synchronising ? ", synchronising" : "") + (alike ? ", alike, " : ", ") +
           std::to_string(pages) + " pages";
  }
};

// A random program that has run, with replaced headers for some packets.
struct Play {
  explicit Play(const Which& which, const Headers& headers = {}, Journal* journal = nullptr)
      : program(which.seed, {which.synchronising, which.alike, which.pages, journal,
                             [this, &headers](ActorId queue, Checker::Packet& packet) {
                               const auto other = headers.find({queue, packet.index});
                               if (other != headers.end()) {
                                 packet.barrier = other->second.barrier;
                                 packet.acquire = other->second.acquire;
                                 packet.release = other->second.release;
                               }
                               sent[{queue, packet.index}] = packet;
                             }}) {
    program.run(which.steps);
  }
  Headers sent;  // of all packets
  RandomProgram program;
};

std::string name(const uptempo::vgpu::fences::Task& task, bool in_full) {
  using Kind = uptempo::vgpu::fences::Task::Kind;
  if (task.kind == Kind::host && !in_full) return "host";
  return std::to_string(task.id.actor) + '.' + std::to_string(task.id.index);
}
// Text of a finding without its reason, which may change with the headers. If not `in_full`, also
// without everything that differs between pages.
std::string line(const Finding& finding, bool in_full) {
  constexpr const char* kConflicts[] = {"RAW", "WAR", "WAW"};
  return std::string(class_name(finding.what)) + ' ' +
         kConflicts[static_cast<int>(finding.conflict)] + ' ' + name(*finding.writer, in_full) +
         "->" + name(*finding.reader, in_full) +
         (finding.possible_on_target ? " possible" : " harmless") +
         (in_full ? ' ' + std::to_string(finding.address) + '+' + std::to_string(finding.bytes)
                  : "");
}
std::multiset<std::string> verdicts(const RandomProgram& program) {
  std::multiset<std::string> lines;
  for (const Finding& finding : program.findings()) lines.insert(line(finding, true));
  return lines;
}

// Returns the headers, narrowed as `advices` say.
Headers narrowed(Headers headers, const std::vector<Advice>& advices) {
  for (const Advice& advice : advices)
    for (const uint64_t index : advice.packets) {
      Checker::Packet& packet = headers.at({advice.queue, index});
      if (advice.part == Advice::Part::barrier) packet.barrier = false;
      if (advice.part == Advice::Part::acquire) packet.acquire = advice.to;
      if (advice.part == Advice::Part::release) packet.release = advice.to;
    }
  return headers;
}

const DeviceDescription& device() { return *find_device_description("gfx90a"); }

template <typename Visit>
void for_programs(uint64_t seeds, std::initializer_list<int> all_steps, Visit visit) {
  for (const int steps : all_steps)
    for (uint64_t seed = 0; seed < seeds; ++seed)
      for (const bool synchronising : {false, true})
        for (const bool alike : {false, true})
          for (const size_t pages : {1, 3}) {
            const Which which{seed * 64 + static_cast<uint64_t>(steps), steps, synchronising, alike,
                              pages};
            INFO(which.text());
            visit(which);
          }
}

}  // namespace

TEST_CASE("the recording of a random program gives the same findings as the program") {
  uint64_t left_out = 0;  // pages that the recordings omit
  for_programs(200, {12, 25, 50}, [&](const Which& which) {
    Journal journal;
    const Play live(which, {}, &journal);
    const Recording run = journal.recording();
    std::set<std::string> found, again;
    const bool all_kept = which.pages == 1;
    for (const Finding& finding : live.program.findings()) found.insert(line(finding, all_kept));
    Judge judge({"gfx90a", true},
                [&](const Finding& finding) { again.insert(line(finding, all_kept)); });
    for (const Event& event : run.events) judge.process(event);
    INFO(live.program.text());
    REQUIRE(again == found);
    if (all_kept) REQUIRE(judge.presumed() == live.program.presumed());
    REQUIRE((judge.presumed() == Judge::Presumed{}) ==
            (live.program.presumed() == Judge::Presumed{}));
    for (const auto& [page, count] : run.page_count) left_out += count - 1;
  });
  CHECK(left_out > 1000);
}

TEST_CASE("a random program that follows all its advice has the same findings") {
  std::map<std::string, uint64_t> seen;
  for_programs(50, {12, 25, 50}, [&](const Which& which) {
    Journal journal;
    const Play original(which, {}, &journal);
    const Advices advices = advise(journal.recording(), device());
    const Play play(which, narrowed(original.sent, advices.list));
    INFO(play.program.text());
    REQUIRE(play.program.presumed() == original.program.presumed());
    REQUIRE(verdicts(play.program) == verdicts(original.program));
    REQUIRE(play.program.expected() == original.program.expected());
    for (const Advice& advice : advices.list) {
      ++seen[advice.part == Advice::Part::barrier ? "barrier"
             : advice.to == FenceScope::none      ? "to none"
                                                  : "to agent"];
      if (advice.packets.size() > 1) ++seen["several packets"];
      if (advice.packets.size() < advice.of) ++seen["not all packets"];
    }
    if (!original.program.findings().empty()) ++seen["findings"];
  });
  // The programs cover all kinds of advice.
  for (const char* kind :
       {"barrier", "to none", "to agent", "several packets", "not all packets", "findings"}) {
    CAPTURE(kind, seen[kind]);
    CHECK(seen[kind] > 50);
  }
}
