// set() of an address whose node has declared ranges, when one allocation fails.
#include <memory>

#include <uptempo/recording/recording.hpp>
#include "test/engine/recording/declared_world.hpp"
#include "test/support/catch.hpp"
#include "test/support/failing_new.hpp"

using namespace uptempo;
using namespace uptempo::test;

TEST_CASE("an address that finds no memory for its ranges changes neither ranges nor plan",
          "[memory][recording]") {
  struct World {
    RecordingBench bench{{.device = {.ring_size = 256}}};
    Words a, b, c;
    std::unique_ptr<Recording> recording = bench.recording();
    // Its ranges start at two equal addresses, so each becomes two.
    StepNode node = record_step(*recording, 0, a.data(), a.data());
    StepNode last = record_step(*recording, 1, c.data(), b.data());
    std::vector<aql::HeaderFlags> before = replay(bench, *recording);
  };
  uint32_t failures = 0;
  fail_each_allocation<World>(
      [](World& world) { world.recording->set<2>(world.node, world.b.data()); },
      [&](World& world, bool threw) {
        const auto& [bench, a, b, c, recording, node, last, before] = world;
        if (threw) {
          ++failures;
          CHECK(replay(world.bench, *recording) == before);
          recording->set<2>(node, world.b.data());
        }
        CHECK(replay(world.bench, *recording) == planned({{{&a, sizeof a, false},
                                                           {&a, sizeof a, true},
                                                           {&b, sizeof b, false},
                                                           {&b, sizeof b, true}},
                                                          step(&c, &b)}));
      });
  CHECK(failures > 0);
}
