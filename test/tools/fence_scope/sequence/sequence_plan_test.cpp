// Plans of random sequences over two queues and copies, checked against the rules.
#include <algorithm>
#include <random>

#include "test/support/catch.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"
#include "tools/fence_scope/sequence/sequence_rules.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;

namespace {

// Omits some dependencies of steps, because another dependency may cover them.
Sequence random_sequence(std::mt19937& random) {
  const auto below = [&](uint32_t n) {
    return std::uniform_int_distribution<uint32_t>(0, n - 1)(random);
  };
  Sequence sequence;
  sequence.buffers = {{"a", 512, BufferKind::device_local, {}},
                      {"b", 512, BufferKind::device_local, {}},
                      {"h", 512, BufferKind::fine_grained, {}}};
  const uint32_t steps = 2 + below(7), copies = below(3);
  for (uint32_t i = 0; i < steps; ++i) {
    Step step{.name = "step " + std::to_string(i)};
    const auto range = [&](size_t buffer, bool writes) {
      const uint64_t begin = 256 * below(2);
      return Access{buffer, begin, begin == 0 && below(3) == 0 ? 512u : 256u, writes};
    };
    if (i != 0 && below(6) < copies) {
      step.kind = Step::Kind::copy;
      step.from = range(below(2), false);
      step.to = {2, 0, step.from.bytes, true};
      if (below(2) != 0) {
        std::swap(step.from, step.to);
        step.from.writes = false;
        step.to.writes = true;
      }
    } else {
      step.kernel = "k";
      step.queue = below(2);
      for (uint32_t access = below(4); access-- > 0;)
        step.accesses.push_back(range(below(3), below(3) == 0));
    }
    for (uint32_t earlier = 0; earlier < i; ++earlier) {
      const Step& other = sequence.steps[earlier];
      if (step.kind == Step::Kind::dispatch && other.kind == Step::Kind::dispatch &&
          other.queue == step.queue)
        continue;
      if (below(3) == 0) step.after.push_back(earlier);
    }
    sequence.steps.push_back(std::move(step));
  }
  if (std::ranges::none_of(sequence.steps,
                           [](const Step& step) { return step.kind == Step::Kind::dispatch; }))
    sequence.steps[0] = {.name = "step 0", .kernel = "k"};
  return sequence;
}

}  // namespace

TEST_CASE(
    "a sequence with some correct headers is correct as planned, and needs every inner barrier bit "
    "of its plan") {
  std::mt19937 random(1);
  size_t tried = 0, barrier_bits = 0, with_copies = 0, with_two_queues = 0;
  for (uint32_t i = 0; i < 20000; ++i) {
    const Sequence sequence = random_sequence(random);
    require_valid(sequence);
    if (!hazards_of(sequence, everywhere(sequence)).empty()) continue;
    ++tried;
    with_copies += std::ranges::any_of(sequence.steps,
                                       [](const Step& s) { return s.kind == Step::Kind::copy; })
                       ? 1
                       : 0;
    with_two_queues += !sequence.dispatches(0).empty() && !sequence.dispatches(1).empty() ? 1 : 0;
    const PlannedHeaders planned = plan(sequence);
    const std::vector<Hazard> hazards = hazards_of(sequence, planned.headers);
    CAPTURE(i);
    const std::string hazard =
        hazards.empty() ? "" : in_words(hazards.front(), sequence, planned.headers);
    CAPTURE(hazard);
    REQUIRE(hazards.empty());
    for (const uint32_t queue : {0u, 1u}) {
      const std::vector<size_t> steps = sequence.dispatches(queue);
      for (size_t packet = 1; packet + 1 < steps.size(); ++packet) {
        Headers without = planned.headers;
        if (without[steps[packet]].barrier == aql::Barrier::off) continue;
        without[steps[packet]].barrier = aql::Barrier::off;
        REQUIRE_FALSE(hazards_of(sequence, without).empty());
        ++barrier_bits;
      }
    }
  }
  CHECK(barrier_bits > 300);
  CHECK(tried > 1000);
  CHECK(with_copies > 300);
  CHECK(with_two_queues > 300);
}
