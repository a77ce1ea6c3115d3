#include "tools/fence_scope/verdict/checker_advice.hpp"

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/fence_scope/report/report_packets.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using aql::Barrier;
using aql::FenceScope;

namespace {

// Three steps: packets 4 and 5 of queue 0, which the device numbers 7, and packet 4 of queue 1,
// which it numbers 9.
Placement placement() {
  constexpr auto dispatch = Bench::Packet::Role::dispatch;
  Placement where;
  where.queues = {7, 9};
  where.packets = {{.role = dispatch, .queue = 0, .step = 0, .index = 4},
                   {.role = dispatch, .queue = 1, .step = 1, .index = 4},
                   {.role = dispatch, .queue = 0, .step = 2, .index = 5}};
  return where;
}
const Headers kHeaders(3, {Barrier::on, FenceScope::system, FenceScope::agent});

std::optional<Headers> after(const std::vector<std::string>& lines) {
  return narrowed(kHeaders, lines, placement());
}

}  // namespace

TEST_CASE(
    "advice of the fence checker narrows the packets that it names by queue and index, and no "
    "others") {
  CHECK(after({}) == kHeaders);
  const auto headers =
      after({R"({"class":"stale","conflict":"read-after-write"})",
             R"({"advice":"barrier","queue":9,"to":"clear","packets":[4,8],"count":2})",
             R"({"advice":"acquire","queue":7,"to":"none","packets":[3,5],"count":2})",
             R"({"advice":"acquire","queue":1,"to":"none","packets":[4],"count":1})"});
  REQUIRE(headers);
  CHECK((*headers)[0] == kHeaders[0]);
  CHECK((*headers)[1] == aql::HeaderFlags{Barrier::off, FenceScope::system, FenceScope::agent});
  CHECK((*headers)[2] == aql::HeaderFlags{Barrier::on, FenceScope::none, FenceScope::agent});
}

TEST_CASE("incomplete advice counts as none") {
  CHECK_FALSE(after({R"({"advice":"none","reason":"too long"})"}));
  CHECK_FALSE(after({R"({"advice":"incomplete","reason":"too long"})"}));
  // A truncated list may refer to packets with the same header, and to no others.
  const auto cut = [](const std::string& acquire) {
    return after({R"({"advice":"release","queue":7,"header":{"barrier":true,"acquire":")" +
                  acquire + R"(","release":"agent"},"to":"none","packets":[1],"count":2})"});
  };
  CHECK_FALSE(cut("system"));
  CHECK(cut("agent") == kHeaders);
  CHECK_THROWS(after({"uptempo"}));
  CHECK_THROWS(after({R"({"advice":"release","queue":7,"to":"wide","packets":[4],"count":1})"}));
}

TEST_CASE(
    "a fence that the checker's run did not need is reported, and silence does not count as "
    "agreement") {
  std::vector<PlannedPacket> packets(2);
  CHECK(checker_advice(packets).empty());
  for (uint32_t i = 0; i < 2; ++i) {
    packets[i].packet = i;
    packets[i].flags = kHeaders[0];
    packets[i].checker = packets[i].flags;
  }
  CHECK(checker_advice(packets) == "the fence checker agrees with all 2 headers");
  CHECK(about_checker_advice(packets).empty());
  CHECK(reasons_of(packets[1]).size() == 3);
  packets[1].checker = {Barrier::off, FenceScope::agent, FenceScope::agent};
  CHECK(checker_advice(packets) ==
        "in the fence checker's one run, 1 of 2 headers had a fence too many");
  CHECK(test::contains(about_checker_advice(packets), "Another run may touch other bytes"));
  REQUIRE(reasons_of(packets[1]).size() == 4);
  CHECK(reasons_of(packets[1])[3].why == "sufficient in its run: no barrier bit, acquire agent");
}

TEST_CASE("the fence checker does not disagree where nothing precedes its run") {
  // The first packet of each of two queues waits for earlier work and acquires what the host wrote.
  std::vector<PlannedPacket> packets(4);
  for (uint32_t i = 0; i < 4; ++i) {
    packets[i] = {.step = i, .queue = i / 2, .packet = i % 2, .flags = kHeaders[0]};
    packets[i].checker = packets[i].flags;
  }
  packets[0].checker->barrier = Barrier::off;
  packets[2].checker = {Barrier::off, FenceScope::none, FenceScope::agent};
  CHECK(checker_advice(packets) == "the fence checker agrees with all 4 headers");
  CHECK(about_checker_advice(packets) ==
        "It cannot judge whether a queue's first packet must wait for earlier work or acquire what "
        "the host wrote: nothing precedes its run.");
  REQUIRE(reasons_of(packets[2]).size() == 4);
  CHECK(reasons_of(packets[0])[3].why == "cannot judge barrier bit: nothing precedes its run");
  CHECK(reasons_of(packets[2])[3].why ==
        "cannot judge barrier bit, acquire system: nothing precedes its run");
  CHECK(reasons_of(packets[1]).size() == 3);
  // Its release is for later steps, which the run has.
  packets[2].checker->release = FenceScope::none;
  CHECK(checker_advice(packets) ==
        "in the fence checker's one run, 1 of 4 headers had a fence too many");
  CHECK(reasons_of(packets[2])[3].why == "sufficient in its run: release none");
}
