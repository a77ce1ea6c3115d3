// Whether a missing fence shows: runs the broken sequences of bench_test.cpp with stale caches.
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/command.hpp"

using uptempo::test::contains;
using uptempo::test::run_command;

TEST_CASE("each missing fence gives a wrong result for some seed") {
  for (const std::string broken :
       {"without any fence or barrier bit", "without the first packet's acquire",
        "without an acquire in the middle", "without the last packet's release"}) {
    CAPTURE(broken);
    int wrong = 0, seed = 0;
    while (wrong == 0 && ++seed <= 24)
      wrong = run_command({VGPU, "--incoherent", std::to_string(seed), "--", BENCH_TEST, broken})
                  .exit_code;
    // One failed assertion, and nothing worse: Catch2 2 and 3.
    CHECK((wrong == 1 || wrong == 42));
  }
}

TEST_CASE("the checker finds each missing fence") {
  for (const std::string broken :
       {"without any fence or barrier bit", "without the first packet's acquire",
        "without an acquire in the middle", "without the last packet's release"}) {
    CAPTURE(broken);
    const auto result = run_command({VGPU, "--check", "fences", "--", BENCH_TEST, broken});
    CAPTURE(result.err);
    CHECK((contains(result.err, "uptempo-vgpu: stale: ") ||
           contains(result.err, "uptempo-vgpu: unordered: ")));
  }
}
