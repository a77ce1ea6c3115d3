// The pairs of steps that lack order or a fence, on sequences whose verdict is known from the
// specification.
#include "tools/fence_scope/sequence/sequence_rules.hpp"

#include <stdexcept>

#include "test/support/catch.hpp"
#include "tools/fence_scope/sequence/workloads.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using aql::Barrier;
using aql::FenceScope;
using aql::HeaderFlags;

namespace {

constexpr auto kOn = Barrier::on, kOff = Barrier::off;
constexpr auto kNone = FenceScope::none, kAgent = FenceScope::agent, kSystem = FenceScope::system;
constexpr size_t kHost = Judgement::kNoStep;

Step dispatch(std::vector<Access> accesses, uint32_t queue = 0, std::vector<size_t> after = {}) {
  Step step;
  step.name = "step";
  step.queue = queue;
  step.after = std::move(after);
  step.accesses = std::move(accesses);
  return step;
}
Step copy(Access from, Access to, std::vector<size_t> after = {}) {
  Step step;
  step.kind = Step::Kind::copy;
  step.name = "copy";
  step.after = std::move(after);
  step.from = from;
  step.to = to;
  return step;
}
Access reads(size_t buffer, uint64_t begin = 0, uint64_t bytes = 64) {
  return {buffer, begin, bytes, false};
}
Access writes(size_t buffer, uint64_t begin = 0, uint64_t bytes = 64) {
  return {buffer, begin, bytes, true};
}

// Each kernel reads and writes the same device memory, like the passes of a sort.
Sequence chain_of(size_t kernels) {
  Sequence sequence;
  sequence.name = "chain";
  sequence.buffers = {{.name = "keys", .bytes = 64, .kind = BufferKind::device_local}};
  for (size_t i = 0; i < kernels; ++i) sequence.steps.push_back(dispatch({reads(0), writes(0)}));
  return sequence;
}
// FencePlan's headers for such a chain_of: system scopes at its ends only.
Headers fewest(size_t kernels) {
  Headers headers(kernels, {kOn, kAgent, kAgent});
  headers.front().acquire = kSystem;
  headers.back().release = kSystem;
  return headers;
}

}  // namespace

TEST_CASE("a chain_of with system scopes at its ends and agent scopes inside lacks nothing",
          "[rules]") {
  CHECK(hazards_of(chain_of(4), fewest(4)).empty());
  CHECK(hazards_of(chain_of(1), fewest(1)).empty());
  CHECK(hazards_of(chain_of(4), Headers(4, {kOn, kSystem, kSystem})).empty());
}

TEST_CASE("a missing barrier bit leaves the two dispatches unordered", "[rules]") {
  Headers headers = fewest(4);
  headers[2].barrier = kOff;
  const std::vector<Hazard> hazards = hazards_of(chain_of(4), headers);
  const Hazard* worst = worst_of(hazards);
  REQUIRE(worst != nullptr);
  CHECK_FALSE(worst->ordered);
  CHECK(worst->earlier == 1);
  CHECK(worst->later == 2);
  CHECK(in_words(*worst, chain_of(4), headers).find("nothing orders the two") != std::string::npos);
}

TEST_CASE("a missing acquire is named, and is possible on the target if L1 holds an older copy",
          "[rules]") {
  Headers headers = fewest(5);
  headers[2].acquire = kNone;
  std::vector<Hazard> hazards = hazards_of(chain_of(5), headers);
  const Hazard* worst = worst_of(hazards);
  REQUIRE(worst != nullptr);
  CHECK(worst->ordered);
  CHECK(worst->earlier == 1);
  CHECK(worst->later == 2);
  CHECK_FALSE(worst->possible_on_target);  // step 1 has invalidated what step 0 had read
  CHECK(in_words(*worst, chain_of(5), headers) ==
        "'step' (2) reads what 'step' (1) wrote to keys, and nothing acquires at agent scope in "
        "between");

  headers[3].acquire = kNone;
  hazards = hazards_of(chain_of(5), headers);
  worst = worst_of(hazards);
  REQUIRE(worst != nullptr);
  CHECK(worst->earlier == 2);
  CHECK(worst->later == 3);
  CHECK(worst->possible_on_target);  // step 1 has read it
}

TEST_CASE("a missing release of agent scope is named, and harmless on the target", "[rules]") {
  Headers headers = fewest(4);
  headers[1].release = kNone;
  const std::vector<Hazard> hazards = hazards_of(chain_of(4), headers);
  const Hazard* worst = worst_of(hazards);
  REQUIRE(worst != nullptr);
  CHECK(worst->ordered);
  CHECK_FALSE(worst->possible_on_target);
  CHECK(in_words(*worst, chain_of(4), headers).find("nothing releases at agent scope") !=
        std::string::npos);
}

TEST_CASE("the host's writes need an acquire at system scope, its reads a release at system scope",
          "[rules]") {
  Headers headers = fewest(3);
  headers.front().acquire = kAgent;
  const std::vector<Hazard> ahead = hazards_of(chain_of(3), headers);
  REQUIRE(worst_of(ahead) != nullptr);
  CHECK(worst_of(ahead)->earlier == kHost);
  CHECK(worst_of(ahead)->later == 0);
  CHECK(worst_of(ahead)->possible_on_target);

  headers = fewest(3);
  headers.back().release = kAgent;
  const std::vector<Hazard> behind = hazards_of(chain_of(3), headers);
  REQUIRE(worst_of(behind) != nullptr);
  CHECK(worst_of(behind)->earlier == 2);
  CHECK(worst_of(behind)->later == kHost);
  CHECK(in_words(*worst_of(behind), chain_of(3), headers) ==
        "the host reads what 'step' (2) wrote to keys, and nothing releases it to the system in "
        "between");
}

TEST_CASE("dispatches that touch different bytes of a buffer need no order", "[rules]") {
  Sequence sequence;
  sequence.buffers = {{.name = "slots", .bytes = 256, .kind = BufferKind::device_local}};
  for (uint64_t i = 0; i < 4; ++i) sequence.steps.push_back(dispatch({writes(0, 64 * i)}));
  CHECK(hazards_of(sequence, Headers(4, {kOff, kNone, kSystem})).empty());
  // One common byte is enough.
  sequence.steps[2].accesses = {writes(0, 127, 64)};
  const std::vector<Hazard> hazards = hazards_of(sequence, Headers(4, {kOff, kNone, kSystem}));
  REQUIRE(hazards.size() == 1);
  CHECK(hazards[0].earlier == 1);
  CHECK(hazards[0].later == 2);
  CHECK_FALSE(hazards[0].ordered);
  CHECK_FALSE(hazards[0].later_reads);
}

TEST_CASE("steps of two queues are ordered by their dependencies only", "[rules]") {
  Sequence sequence;
  sequence.buffers = {{.name = "message", .bytes = 64, .kind = BufferKind::device_local},
                      {.name = "answer", .bytes = 64, .kind = BufferKind::device_local}};
  sequence.steps = {dispatch({writes(0)}, 0), dispatch({reads(0), writes(1)}, 1, {0})};
  const Headers headers{{kOn, kNone, kSystem}, {kOff, kAgent, kSystem}};
  CHECK(hazards_of(sequence, headers).empty());
  sequence.steps[1].after.clear();
  const std::vector<Hazard> hazards = hazards_of(sequence, headers);
  REQUIRE(worst_of(hazards) != nullptr);
  CHECK_FALSE(worst_of(hazards)->ordered);
}

TEST_CASE("a copy needs a release to the system of what it reads, and an acquire of what it wrote",
          "[rules]") {
  Sequence sequence;
  sequence.buffers = {{.name = "in", .bytes = 64, .kind = BufferKind::fine_grained},
                      {.name = "data", .bytes = 64, .kind = BufferKind::device_local},
                      {.name = "out", .bytes = 64, .kind = BufferKind::fine_grained}};
  sequence.steps = {copy(reads(0), writes(1)), dispatch({reads(1), writes(1)}, 0, {0}),
                    copy(reads(1), writes(2), {1})};
  Headers headers(3, {kOn, kSystem, kSystem});
  CHECK(hazards_of(sequence, headers).empty());
  headers[1].acquire = kAgent;
  std::vector<Hazard> hazards = hazards_of(sequence, headers);
  REQUIRE(worst_of(hazards) != nullptr);
  CHECK(worst_of(hazards)->earlier == 0);
  CHECK(worst_of(hazards)->later == 1);
  CHECK(worst_of(hazards)->ordered);
  headers[1] = {kOn, kSystem, kAgent};
  hazards = hazards_of(sequence, headers);
  REQUIRE(worst_of(hazards) != nullptr);
  CHECK(worst_of(hazards)->earlier == 1);
  CHECK(worst_of(hazards)->later == 2);
}

TEST_CASE("a dispatch without accesses still orders and releases as its header says", "[rules]") {
  Sequence sequence = chain_of(2);
  sequence.steps.insert(sequence.steps.begin() + 1, dispatch({}));
  // The second dispatch begins after the first has ended; the third begins after the second has
  // begun.
  Headers headers{{kOn, kSystem, kAgent}, {kOn, kNone, kNone}, {kOff, kAgent, kSystem}};
  CHECK(hazards_of(sequence, headers).empty());
  // The second dispatch's release covers nothing of the first if it does not wait for the first.
  headers = {{kOn, kSystem, kNone}, {kOff, kNone, kAgent}, {kOn, kAgent, kSystem}};
  CHECK_FALSE(hazards_of(sequence, headers).empty());
  headers[1].barrier = kOn;
  CHECK(hazards_of(sequence, headers).empty());
}

TEST_CASE(
    "every workload lacks nothing with system scopes everywhere, and nothing with the engine's "
    "plan",
    "[rules]") {
  for (const Workload& workload : workloads()) {
    CAPTURE(workload.name);
    const Sequence sequence = make_workload(workload.name);
    CHECK(hazards_of(sequence, everywhere(sequence)).empty());
    CHECK(hazards_of(sequence, plan(sequence).headers).empty());
  }
}

TEST_CASE("a sequence without accesses lacks nothing", "[rules]") {
  Sequence sequence;
  sequence.steps = {dispatch({}), dispatch({})};
  CHECK(hazards_of(sequence, Headers(2, {kOff, kNone, kNone})).empty());
}

TEST_CASE("missing headers, and steps that depend on themselves, are refused", "[rules]") {
  CHECK_THROWS_AS(hazards_of(chain_of(3), fewest(2)), std::invalid_argument);
  Sequence sequence = chain_of(2);
  sequence.steps[0].after = {1};
  CHECK_THROWS_AS(hazards_of(sequence, fewest(2)), std::invalid_argument);
}
