// The parts that a bench sets up for its runs, each alone on a device.
#include <hsa/hsa.h>

#include <uptempo/kernels/hip_sources.hpp>

#include <algorithm>
#include <optional>
#include <vector>

#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/runtime.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/text.hpp"
#include "tools/fence_scope/run/bench_buffers.hpp"
#include "tools/fence_scope/run/cache_spoiler.hpp"
#include "tools/fence_scope/run/run_packets.hpp"
#include "tools/fence_scope/run/run_signals.hpp"
#include "tools/fence_scope/sequence/program_file.hpp"
#include "tools/fence_scope/sequence/step_kernels.hpp"
#include "tools/fence_scope/sequence/workloads.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;

namespace {

// A buffer of each kind.
Sequence three_buffers() {
  Sequence sequence;
  sequence.buffers = {{.name = "device", .bytes = 256, .kind = BufferKind::device_local},
                      {.name = "coarse", .bytes = 64, .kind = BufferKind::coarse_grained},
                      {.name = "fine", .bytes = 128, .kind = BufferKind::fine_grained}};
  return sequence;
}

// Steps 0 and 1 in queue 0, a copy that waits for step 0, step 3 in queue 1 that waits for the copy
// and for step 1.
Sequence four_steps() {
  Sequence sequence;
  sequence.steps = {{.name = "first"},
                    {.name = "second"},
                    {.kind = Step::Kind::copy, .name = "copy", .after = {0}},
                    {.name = "last", .queue = 1, .after = {1, 2}}};
  return sequence;
}

}  // namespace

TEST_CASE("an address is found in its buffer, and no other address is", "[bench_buffers]") {
  const Runtime runtime;
  const Sequence sequence = three_buffers();
  Copier copier(runtime.gpu());
  const BenchBuffers buffers(runtime.gpu(), sequence, copier);
  const auto address = [&](size_t buffer, uint64_t byte) {
    return reinterpret_cast<uint64_t>(buffers.at(buffer, byte));
  };
  for (size_t i = 0; i < 3; ++i) {
    const uint64_t last = sequence.buffers[i].bytes - 1;
    const auto first_place = buffers.place_of(address(i, 0));
    const auto last_place = buffers.place_of(address(i, last));
    REQUIRE(first_place.has_value());
    REQUIRE(last_place.has_value());
    CHECK(first_place->buffer == i);
    CHECK(first_place->byte == 0);
    CHECK(last_place->buffer == i);
    CHECK(last_place->byte == last);
    const auto after = buffers.place_of(address(i, last + 1));
    CHECK((!after.has_value() || after->buffer != i));
  }
  CHECK_FALSE(buffers.place_of(8).has_value());
}

TEST_CASE("the device time of a run is from the first timed begin to the last end",
          "[run_signals]") {
  const Runtime runtime;
  const Sequence sequence = four_steps();
  const RunSignals signals(sequence, TimingMode::batch);
  const std::vector<std::optional<Bench::Span>> spans{
      Bench::Span{2000, 9000}, Bench::Span{3000, 4000}, std::nullopt, Bench::Span{1000, 5000}};
  CHECK(signals.device_us(spans) == 8.0);
}

TEST_CASE("kernarg blocks do not overlap, begin at a cache line, and span more than one page",
          "[kernarg_blocks]") {
  const Runtime runtime;
  const Sequence sequence = make_workload("chain", {.kernels = 1, .bytes_per_kernel = 1024});
  const StepKernels kernels(runtime.gpu(), sequence);
  const KernelInfo& kernel = kernels.of(0);
  const size_t bytes = kernel.arguments.size_bytes();
  REQUIRE(bytes > 0);
  auto queues = queues_for(runtime.gpu(), sequence, TimingMode::none);
  KernargBlocks blocks(runtime.gpu());
  std::vector<uint64_t> starts;
  for (size_t taken = 0; taken < 3 * 65536; taken += bytes)
    starts.push_back(
        reinterpret_cast<uint64_t>(blocks.make(kernel, sequence.steps[0].grid, queues[0].facts())));
  std::ranges::sort(starts);
  size_t wrong = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    wrong += starts[i] % 64 != 0 ? 1 : 0;
    wrong += i > 0 && starts[i] - starts[i - 1] < bytes ? 1 : 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("the packets before a run write every byte of the buffers, and complete the signal",
          "[cache_spoiler]") {
  const Runtime runtime;
  const Sequence sequence = three_buffers();
  Copier copier(runtime.gpu());
  auto queues = queues_for(runtime.gpu(), sequence, TimingMode::none);
  BenchBuffers buffers(runtime.gpu(), sequence, copier);
  KernargBlocks blocks(runtime.gpu());
  const Signal done;
  const CacheSpoiler spoiler(runtime.gpu(), sequence, buffers, blocks, queues[0].facts(),
                             done.handle());
  CHECK(spoiler.packets().size() == 2 * sequence.buffers.size() + 1);
  buffers.reset();
  queues[0].publish(spoiler.packets());
  queues[0].wait(done.handle(), "the kernels before a run");
  for (size_t i = 0; i < buffers.size(); ++i) {
    CAPTURE(i);
    size_t kept = 0;
    for (const std::byte byte : buffers.contents(i)) kept += byte == std::byte{0xa5} ? 0 : 1;
    CHECK(kept == 0);
  }
  queues.clear();
}

TEST_CASE("a queue holds all packets of a run in it", "[run_packets]") {
  const Runtime runtime;
  Sequence sequence;
  for (int i = 0; i < 70; ++i) sequence.steps.push_back({.name = "step"});
  sequence.steps.push_back({.name = "other", .queue = 1});
  const auto queues = queues_for(runtime.gpu(), sequence, TimingMode::none);
  CHECK(queues[0].ring_size() >= most_packets(sequence, 0));
  CHECK(queues[1].ring_size() >= most_packets(sequence, 1));
  CHECK(queues[1].ring_size() < queues[0].ring_size());
}

TEST_CASE("a step's kernel has a name that Program::kernel takes", "[step_kernels]") {
  const Runtime runtime;
  const Agent gpu = runtime.gpu();
  const std::span<const std::byte> code = kernels::hip_sources();
  Sequence sequence = parse_program(R"json({"buffers": [{"name": "x", "bytes": 256}], "steps": [
    {"kernel": "scale(unsigned int*, unsigned int)", "grid": 64,
     "arguments": [{"buffer": "x"}, {"u32": 3}], "reads": ["x"], "writes": ["x"]}]})json",
                                    ".");
  sequence.code_object.assign(code.begin(), code.end());
  const StepKernels step_kernels(gpu, sequence);
  CHECK(step_kernels.of(0).name == "_Z5scalePjj");

  const auto refusal = [&](const char* kernel) {
    sequence.steps[0].kernel = kernel;
    return test::error_of<SequenceError>([&] { StepKernels(gpu, sequence); });
  };
  CHECK(test::contains(refusal("scale"), "several have this name: _Z5scalePff"));
  // The refusal of an unknown name lists both names of each kernel.
  const std::string listed = refusal("scales");
  for (const std::string& symbol : Program(gpu, code).kernel_names())
    CHECK(test::contains(listed, symbol));
  CHECK(test::contains(listed, "(physics::step(float*, float const*, float, unsigned int))"));
  CHECK(listed.starts_with("steps[0].kernel: "));
}
