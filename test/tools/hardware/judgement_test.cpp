// Verdicts on what probes have counted.
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/hardware/memory_probe.hpp"
#include "tools/hardware/ring_probe.hpp"

using namespace uptempo;
using namespace uptempo::hardware;
using test::contains;

TEST_CASE("a ring that ran each packet once is as the engine assumes") {
  const Answer answer = answer_of_ring(std::vector<uint32_t>{3, 2, 2}, 7, 12.5);
  CHECK(answer.verdict == Verdict::as_assumed);
  CHECK(answer.text == "7 packets, 12 ns each");
}

TEST_CASE("a packet that was lost, or run in the place of another, differs") {
  CHECK(answer_of_ring(std::vector<uint32_t>{3, 1, 2}, 7, 1).text ==
        "1 packets with kernarg block 1 ran, but 2 were published");
  CHECK(answer_of_ring(std::vector<uint32_t>{2, 3, 2}, 7, 1).verdict == Verdict::differs);
}

namespace {

constexpr MemoryModel kAgentSuffices{
    .name = "a row", .proved = true, .host_memory_bypasses_l2 = true, .source = ""};
constexpr MemoryModel kUnproved{
    .name = "another", .proved = false, .host_memory_bypasses_l2 = true, .source = ""};

StaleReads stale(uint64_t none, uint64_t agent, uint64_t system) {
  StaleReads found;
  const uint64_t counts[] = {none, agent, system};
  for (size_t i = 0; i < 3; ++i) {
    found.data[i] = {counts[i], 1000};
    found.kernargs[i] = {0, 10};
  }
  return found;
}

}  // namespace

TEST_CASE("reads that are stale without an acquire only are as the engine assumes") {
  const Answer answer = answer_of_stale_reads(stale(5, 0, 0), kAgentSuffices, false);
  CHECK(answer.verdict == Verdict::as_assumed);
  CHECK(contains(answer.text, "stale reads of 1010: 5 without an acquire, 0 with agent scope"));
  CHECK(contains(answer.text, "The row 'a row' asks for agent scope"));
}

TEST_CASE("a device whose caches held nothing says so") {
  CHECK(contains(answer_of_stale_reads(stale(0, 0, 0), kAgentSuffices, false).text,
                 "0 without an acquire (no cache held old words)"));
}

TEST_CASE(
    "stale reads with agent scope differ where the row says that it suffices, also an unproved "
    "row") {
  for (const MemoryModel& model : {kAgentSuffices, kUnproved})
    CHECK(answer_of_stale_reads(stale(9, 1, 0), model, false).verdict == Verdict::differs);
  // The row's device memory needs system scope.
  CHECK(answer_of_stale_reads(stale(9, 1, 0), kAgentSuffices, true).verdict == Verdict::as_assumed);
  CHECK(contains(answer_of_stale_reads(stale(9, 0, 0), kUnproved, false).text,
                 "The row 'another' (unproved, not used) asks for agent scope"));
}

TEST_CASE("stale reads with system scope differ, of data and of kernargs") {
  CHECK(answer_of_stale_reads(stale(9, 9, 1), {}, false).verdict == Verdict::differs);
  StaleReads found = stale(9, 9, 0);
  found.kernargs[2].stale = 1;
  CHECK(answer_of_stale_reads(found, {}, true).verdict == Verdict::differs);
}
