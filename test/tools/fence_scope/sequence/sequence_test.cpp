// Tests which sequences are valid, and the plans of sequences.
#include "tools/fence_scope/sequence/sequence.hpp"

#include <set>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/fence_scope/sequence/workloads.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using aql::Barrier;
using aql::FenceScope;
using aql::HeaderFlags;
using test::error_of;

namespace {

// Two buffers in device memory and one in host memory.
Sequence with_buffers() {
  Sequence sequence;
  sequence.buffers = {{"x", 256, BufferKind::device_local, {}},
                      {"y", 256, BufferKind::device_local, {}},
                      {"h", 256, BufferKind::fine_grained, {}}};
  return sequence;
}

size_t add(Sequence& sequence, uint32_t queue, std::vector<Access> accesses,
           std::vector<size_t> after = {}) {
  Step step{.name = "step " + std::to_string(sequence.steps.size()), .queue = queue};
  step.kernel = "k";
  step.accesses = std::move(accesses);
  step.after = std::move(after);
  sequence.steps.push_back(std::move(step));
  return sequence.steps.size() - 1;
}
size_t add_copy(Sequence& sequence, size_t from, size_t to, std::vector<size_t> after = {}) {
  Step step{.kind = Step::Kind::copy, .name = "copy " + std::to_string(sequence.steps.size())};
  step.from = {from, 0, 256, false};
  step.to = {to, 0, 256, true};
  step.after = std::move(after);
  sequence.steps.push_back(std::move(step));
  return sequence.steps.size() - 1;
}
Access read(size_t buffer) { return {buffer, 0, 256, false}; }
Access write(size_t buffer) { return {buffer, 0, 256, true}; }

}  // namespace

TEST_CASE("every built-in workload is valid, and its first and last packets face the host") {
  for (const Workload& workload : workloads()) {
    CAPTURE(workload.name);
    const Sequence sequence = make_workload(workload.name);
    require_valid(sequence);
    CHECK(sequence.name == workload.name);
    const Headers headers = plan(sequence).headers;
    for (const uint32_t queue : {0u, 1u}) {
      const std::vector<size_t> steps = sequence.dispatches(queue);
      if (steps.empty()) continue;
      CHECK(headers[steps.front()].acquire == FenceScope::system);
      CHECK(headers[steps.back()].release == FenceScope::system);
      CHECK(headers[steps.back()].barrier == Barrier::on);
    }
  }
}

TEST_CASE("workloads have the requested shape") {
  CHECK(make_workload("bitonic-sort", {.bytes_per_kernel = 1024}).steps.size() == 36);
  CHECK(make_workload("bitonic-sort", {.kernels = 7, .bytes_per_kernel = 1024}).steps.size() == 7);
  CHECK(resolve("bitonic-sort") == Shape{120, 131072, 131072});
  CHECK(make_workload("empty", {.kernels = 3}).steps.size() == 3);
  const Sequence chain =
      make_workload("chain", {.kernels = 5, .bytes_per_kernel = 512, .working_set_bytes = 2048});
  CHECK(chain.steps.size() == 5);
  CHECK(chain.buffers.at(0).bytes == 2048);
  std::set<uint64_t> written;
  for (const Step& step : chain.steps)
    for (const Access& access : step.accesses)
      if (access.writes) written.insert(access.begin);
  CHECK(written.size() == 4);
  CHECK(make_workload("copy-kernel-copy", {.kernels = 2}).steps.size() == 4);
  CHECK(make_workload("producer-consumer", {.kernels = 6}).dispatches(1).size() == 3);
}

TEST_CASE("an impossible shape of a workload is refused, and the error names the possible ones") {
  CHECK(error_of<support::UsageError>([] { static_cast<void>(resolve("sort")); }) ==
        "there is no workload 'sort'; there are bitonic-sort, chain, independent, "
        "producer-consumer, copy-kernel-copy, empty");
  CHECK(error_of<support::UsageError>(
            [] { static_cast<void>(resolve("bitonic-sort", {.bytes_per_kernel = 12})); }) ==
        "workload bitonic-sort: 12 bytes per kernel; take 4 bytes per key, for a power of "
        "two of keys from 2 to 2^24");
  CHECK(error_of<support::UsageError>([] {
          static_cast<void>(resolve("chain", {.bytes_per_kernel = 256, .working_set_bytes = 256}));
        }) ==
        "workload chain: a working set of 256 bytes; take a multiple of the 256 bytes per "
        "kernel, 512 or more");
  CHECK_THROWS_AS(resolve("chain", {.bytes_per_kernel = 100}), support::UsageError);
  CHECK_THROWS_AS(
      resolve("independent", {.kernels = 8, .bytes_per_kernel = 256, .working_set_bytes = 1024}),
      support::UsageError);
  CHECK_THROWS_AS(resolve("producer-consumer", {.kernels = 3}), support::UsageError);
  CHECK(error_of<support::UsageError>([] {
          static_cast<void>(make_workload("empty", {.kernels = UINT32_MAX}));
        }) == "workload empty: 4294967295 kernels; take at most 32768");
  CHECK_THROWS_AS(resolve("empty", {.bytes_per_kernel = 4}), support::UsageError);
  CHECK_THROWS_AS(resolve("bitonic-sort", {.kernels = 37, .bytes_per_kernel = 1024}),
                  support::UsageError);
}

TEST_CASE("a sequence that cannot be run is refused, and the error names the place") {
  Sequence sequence = with_buffers();
  CHECK_THROWS_AS(require_valid(sequence), support::UsageError);
  add(sequence, 0, {write(0)});
  require_valid(sequence);

  const auto refused = [&](auto&& change, const std::string& message) {
    Sequence changed = sequence;
    change(changed);
    CHECK(error_of<support::UsageError>([&] { require_valid(changed); }) == message);
  };
  refused([](Sequence& s) { s.steps[0].queue = 2; },
          "steps[0].queue: 2; there are two queues, 0 and 1");
  refused([](Sequence& s) { s.steps[0].after = {0}; },
          "steps[0].after[0]: step 0 is not an earlier one; a step waits for earlier steps");
  refused([](Sequence& s) { add(s, 0, {}, {0}); },
          "steps[1].after[0]: step 0 is in the same queue, where barrier bits define the order");
  refused([](Sequence& s) { add(s, 1, {}, {0, 0}); }, "steps[1].after[1]: step 0 is listed twice");
  refused(
      [](Sequence& s) {
        s.steps[0].accesses = {{1, 8, 249, true}};
      },
      "steps[0].accesses[0]: 249 bytes from byte 8, but 'y' has 256");
  refused(
      [](Sequence& s) {
        s.steps[0].accesses = {{3, 0, 1, true}};
      },
      "steps[0].accesses[0]: there is no buffer 3, only 3");
  refused(
      [](Sequence& s) { s.steps[0].arguments = {{.kind = Argument::Kind::address, .buffer = 9}}; },
      "steps[0].arguments[0]: there is no buffer 9, only 3");
  refused([](Sequence& s) { add_copy(s, 0, 1); },
          "steps[1].to: both 'x' and 'y' are in device memory; copies are between device and host");
  refused([](Sequence& s) { s.steps[add_copy(s, 0, 2)].to.bytes = 8; },
          "steps[1].to: 8 bytes, but 'from' has 256");
}

TEST_CASE("in a single queue the plan is the engine's") {
  Sequence sequence = with_buffers();
  add(sequence, 0, {write(0)});
  add(sequence, 0, {read(0), write(1)});
  add(sequence, 0, {read(1), write(2)});
  const PlannedHeaders planned = plan(sequence);
  CHECK(planned.headers == Headers{{Barrier::on, FenceScope::system, FenceScope::agent},
                                   {Barrier::on, FenceScope::agent, FenceScope::agent},
                                   {Barrier::on, FenceScope::agent, FenceScope::system}});
  CHECK(planned.reasons[1].acquire == "it reads what the packet before it wrote");
}

TEST_CASE(
    "a dispatch that the other queue reads from releases to the agent, and the reader acquires") {
  Sequence sequence = with_buffers();
  const size_t unrelated = add(sequence, 1, {write(2)});
  const size_t producer = add(sequence, 0, {write(0)});
  const size_t consumer = add(sequence, 1, {read(0), write(1)}, {producer});
  add(sequence, 0, {write(2)}, {consumer});
  add(sequence, 1, {});
  const PlannedHeaders planned = plan(sequence);
  CHECK(planned.headers[unrelated].release != FenceScope::system);
  CHECK(planned.headers[producer].release == FenceScope::agent);
  CHECK(planned.headers[consumer].acquire == FenceScope::agent);
  CHECK(planned.reasons[producer].release == "'step 2' of queue 1 waits for it");
  CHECK(planned.reasons[consumer].acquire == "it waits for 'step 1' of queue 0");
}

TEST_CASE(
    "a step after a copy acquires at system scope, and a step before a copy releases at system "
    "scope") {
  Sequence sequence = with_buffers();
  add(sequence, 0, {write(1)});
  const size_t in = add_copy(sequence, 2, 0);
  const size_t user = add(sequence, 0, {read(0), write(1)}, {in});
  const size_t out = add_copy(sequence, 1, 2, {user});
  const size_t last = add(sequence, 0, {write(0)});
  const PlannedHeaders planned = plan(sequence);
  CHECK(planned.headers[user].acquire == FenceScope::system);
  CHECK(planned.headers[user].release == FenceScope::system);
  CHECK(planned.reasons[user].acquire == "it waits for the copy 'copy 1'");
  CHECK(planned.reasons[user].release == "the copy 'copy 3' waits for it");
  CHECK(planned.reasons[in].barrier.empty());
  CHECK(planned.reasons[out].barrier.empty());
  CHECK(planned.headers[last].release == FenceScope::system);
}

TEST_CASE("waiting for a packet covers the earlier packets of its queue whose results are used") {
  Sequence sequence = with_buffers();
  add(sequence, 0, {write(0)});
  const size_t awaited = add(sequence, 0, {write(1)});
  const size_t user = add(sequence, 1, {read(0), read(1), write(2)}, {awaited});
  add(sequence, 0, {});
  const Headers headers = plan(sequence).headers;
  CHECK(headers[awaited].barrier == Barrier::on);
  CHECK(headers[awaited].release >= FenceScope::agent);
  CHECK(headers[user].acquire >= FenceScope::agent);
  // If the earlier packet is itself a dependency, the later one needs nothing more.
  sequence.steps[user].after = {0, awaited};
  CHECK(plan(sequence).headers[awaited].barrier == Barrier::off);
}

TEST_CASE("overwriting what another queue has read needs no release and no acquire on one L2") {
  Sequence sequence = with_buffers();
  add(sequence, 0, {});
  const size_t reader = add(sequence, 0, {read(0)});
  add(sequence, 0, {});
  add(sequence, 1, {});
  add(sequence, 1, {write(0)}, {reader});
  const Headers headers = plan(sequence).headers;
  CHECK(headers[reader].release == FenceScope::none);
  CHECK(headers[4].acquire == FenceScope::none);
}
