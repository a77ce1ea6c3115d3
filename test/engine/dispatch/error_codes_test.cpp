// The ErrorCode of each refusal of a queue, against the packet processor double.
#include <hsa/hsa_ext_amd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <uptempo/completion/notifier.hpp>
#include "test/engine/double_device.hpp"
#include "test/engine/error_code.hpp"
#include "test/support/catch.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

// Memory of a recording.
struct alignas(64) Kernargs {
  std::byte bytes[8192];
};

// A device that completes nothing, with a ring of 16 packets.
struct Paused {
  DoubleOptions options{.device = {.ring_size = 16, .paused = true},
                        .queue = {.packets = 16,
                                  .publications = 4,
                                  .timing_signals = 4,
                                  .kernarg_bytes = 8192,
                                  .kernarg_slab_bytes = 1024,
                                  .drain_timeout = 1ms},
                        .signals = 8};

  // The code with which the `submissions`-th batch of `packets` packets is refused.
  std::string refusal(uint32_t submissions, uint32_t packets, Timing timing = Timing::none) const {
    DoubleDevice device(options);
    const auto kernel = number_kernel();
    std::vector<BatchSubmitter> batches;
    for (uint32_t i = 0; i < submissions; ++i) {
      batches.push_back(device.batch({.timing = timing, .patience = 1ms}));
      const std::string code = code_of_error([&] {
        for (uint32_t packet = 0; packet < packets; ++packet)
          batches.back().dispatch(kernel, Grid{1}, packet);
        if (i + 1 < submissions)
          REQUIRE(batches.back().try_submit());
        else
          batches.back().submit(Deadline::after(1ms));
      });
      if (code != "no error") {
        CHECK(i + 1 == submissions);
        batches.clear();
        device.processor().resume();
        return code;
      }
    }
    batches.clear();
    device.processor().resume();
    return "no error";
  }
};

}  // namespace

TEST_CASE("each resource that runs out has a code of its own", "[submit]") {
  Paused paused;
  CHECK(paused.refusal(1, 1) == "no error");
  CHECK(paused.refusal(3, 6) == "ring");
  CHECK(paused.refusal(5, 1) == "timeline");
  // A batch of two packets takes one signal for the times of the first, and one for completion.
  paused.options.signals = 3;
  CHECK(paused.refusal(2, 2, Timing::each) == "signals");
  paused.options.signals = 2;
  paused.options.queue.timing_signals = 0;
  CHECK(paused.refusal(3, 1) == "signals");
  paused.options.signals = 8;
  paused.options.queue.kernarg_bytes = 1024;
  CHECK(paused.refusal(2, 1) == "kernargs");
}

TEST_CASE("a recording without spare blocks is refused with the code for kernargs", "[submit]") {
  DoubleDevice device({.device = {.paused = true}});
  Kernargs kernargs;
  const auto recording =
      device.recording(std::span(kernargs.bytes), {.spare_kernarg_bytes = 64, .patience = 1ms});
  // Blocks of 1,024 bytes, of which the spare memory has less than ten.
  const auto large = kernel_of<uint32_t>({.name = "large",
                                          .kernarg_bytes = 1024,
                                          .arguments = {argument(ArgumentKind::by_value, 0, 4)}});
  const auto node = recording->dispatch(large, Grid{1}, 1u);
  std::string code = "no error";
  // Each replay in flight holds the block of its value.
  for (uint32_t value = 2; value < 14 && code == "no error"; ++value) {
    recording->replay(device.queue(), soon());
    code = code_of_error([&] { recording->set<0>(node, value); });
  }
  CHECK(code == "kernargs");
  device.processor().resume();
  CHECK(device.queue().last_submitted().wait(soon(), kActiveWait));
}

TEST_CASE("the caller's mistakes and deadlines have codes", "[submit]") {
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}});
  const auto kernel = number_kernel();
  std::optional<BatchSubmitter> batch(device.batch());
  CHECK(code_of_error([&] { batch->dispatch(kernel, Grid{0}, 1u); }) == "argument");
  CommandRef ref = batch->dispatch(kernel, Grid{1}, 1u);
  for (uint32_t i = 0; i < 20; ++i) batch->dispatch(kernel, Grid{1}, i);
  CHECK(code_of_error([&] { ref.touches_nothing(); }) == "misuse");
  CHECK(code_of(batch->try_submit()) == "too_long");
  batch->clear();
  batch->dispatch(kernel, Grid{1}, 1u);
  const Completion done = batch->submit(Deadline::after(1s));
  CHECK(code_of_error([&] { device.queue().drain(Deadline::after(1ms)); }) == "deadline");
  CHECK(code_of_error([&] { (void)done.times(); }) == "misuse");
  CompletionNotifier notifier(1);
  notifier.watch(done, 1);
  CHECK(code_of_error([&] { notifier.watch(done, 2); }) == "limit");
  device.processor().resume();
  CHECK(done.wait(soon(), kActiveWait));
  BatchSubmitter moved = std::move(*batch);
  // NOLINTNEXTLINE(bugprone-use-after-move): the subject
  CHECK(code_of_error([&] { batch->dispatch(kernel, Grid{1}, 1u); }) == "misuse");
  device.destroy_queue();
  CHECK(code_of_error([&] { moved.dispatch(kernel, Grid{1}, 1u); }) == "misuse");
}

TEST_CASE("a failed queue and a lost device have different codes", "[submit]") {
  const auto [status, code] =
      GENERATE(table<int, const char*>({{HSA_STATUS_ERROR_INVALID_ISA, "failed"},
                                        {HSA_STATUS_ERROR_OUT_OF_RESOURCES, "failed"},
                                        {HSA_STATUS_ERROR_MEMORY_FAULT, "device_lost"},
                                        {HSA_STATUS_ERROR_FATAL, "device_lost"}}));
  CAPTURE(status);
  DoubleDevice device({.device = {.paused = true}});
  BatchSubmitter batch(device.queue(), {});
  batch.dispatch(number_kernel(), Grid{1}, 1u);
  const Completion done = batch.submit();
  device.processor().fail(static_cast<hsa_status_t>(status));
  CHECK(code_of_error([&] { done.wait(kActiveWait); }) == code);
  batch.dispatch(number_kernel(), Grid{1}, 1u);
  CHECK(code_of_error([&] { batch.submit(soon()); }) == code);
  CHECK(code_of(batch.try_submit()) == code);
}

TEST_CASE("a try_ form returns each refusal as a value, and only misuse is thrown", "[submit]") {
  DoubleDevice device({.device = {.ring_size = 16, .paused = true},
                       .queue = {.packets = 16,
                                 .publications = 2,
                                 .timing_signals = 0,
                                 .kernarg_bytes = 1024,
                                 .kernarg_slab_bytes = 1024}});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  const Prepared prepared = batch.prepare(kernel, Grid{1});
  const auto wide = kernel_of<std::array<uint32_t, 512>>(
      {.name = "wide",
       .object = 0x3000,
       .kernarg_bytes = 2048,
       .arguments = {argument(ArgumentKind::by_value, 0, 2048)}});
  SECTION("arguments") {
    const auto zero = batch.try_dispatch(kernel, Grid{0}, 1u);
    CHECK(code_of(zero) == "argument");
    CHECK(contains(zero.error().what(), "a size of zero"));
    const auto too_wide = batch.try_dispatch(wide, Grid{1}, std::array<uint32_t, 512>{});
    CHECK(code_of(too_wide) == "argument");
    CHECK(contains(too_wide.error().what(), "slabs of 1024"));
    CHECK(too_wide.error().call() == "BatchSubmitter::try_dispatch");
    CHECK(batch.size() == 0);
    device.processor().resume();
  }
  SECTION("kernargs") {
    uint32_t packets = 0;
    while (prepared.try_dispatch(packets)) ++packets;
    CHECK(packets == 16);  // a slab of 16 blocks
    CHECK(code_of(prepared.try_dispatch(0u)) == "kernargs");
    const auto refused = batch.try_dispatch(kernel, Grid{1}, 0u);
    CHECK(code_of(refused) == "kernargs");
    CHECK(refused.error().code() == ErrorCode::kernargs);
    CHECK(
        contains(refused.error().what(), "BatchSubmitter::try_dispatch: room at once (kernargs)"));
    CHECK(batch.size() == 16);
    CHECK(code_of(batch.try_submit()) == "too_long");
    CHECK(batch.size() == 16);
    batch.clear();
    device.processor().resume();
  }
  SECTION("timeline, waits and failure") {
    std::vector<Completion> done;
    for (uint32_t i = 0; i < 2; ++i) {
      REQUIRE(batch.try_dispatch(kernel, Grid{1}, i));
      const Tried<Completion> submitted = batch.try_submit();
      REQUIRE(submitted);
      done.push_back(*submitted);
    }
    REQUIRE(batch.try_dispatch(kernel, Grid{1}, 2u));
    CHECK(code_of(batch.try_submit()) == "timeline");
    CHECK(batch.size() == 1);
    const auto late = done[0].try_wait(Deadline::after(1ms));
    CHECK(code_of(late) == "deadline");
    const std::string text = late.error().what();
    CAPTURE(text);
    CHECK(contains(text, "Completion::try_wait: completion within the deadline: unfinished work"));
    CHECK(contains(text, "wait longer"));
    CHECK_FALSE(contains(text, "room"));
    const auto [status, code] = GENERATE(table<int, const char*>(
        {{HSA_STATUS_ERROR_INVALID_ISA, "failed"}, {HSA_STATUS_ERROR_FATAL, "device_lost"}}));
    device.processor().fail(static_cast<hsa_status_t>(status));
    CHECK(code_of(done[1].try_wait(soon(), kActiveWait)) == code);
    const auto refused = batch.try_submit();
    CHECK(code_of(refused) == code);
    CHECK(static_cast<int>(refused.error().status()) == status);
  }
  SECTION("misuse") {
    device.processor().resume();
    device.destroy_queue();
    CHECK(code_of_error([&] { (void)batch.try_dispatch(kernel, Grid{1}, 1u); }) == "misuse");
    CHECK(code_of_error([&] { (void)prepared.try_dispatch(1u); }) == "misuse");
    CHECK(code_of_error([&] { (void)batch.try_submit(); }) == "misuse");
  }
}

TEST_CASE("a replay without room or on a failed queue is refused as a value", "[submit]") {
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}});
  Kernargs kernargs;
  const auto recording =
      device.recording(std::span(kernargs.bytes), {.spare_kernarg_bytes = 64, .patience = 1ms});
  for (uint32_t i = 0; i < 6; ++i) (void)recording->dispatch(number_kernel(), Grid{1}, i);
  // Two replays of six packets fit in the ring.
  for (int i = 0; i < 2; ++i) REQUIRE(recording->try_replay(device.queue()));
  CHECK(code_of(recording->try_replay(device.queue())) == "ring");
  while (recording->size() < 16) (void)recording->dispatch(number_kernel(), Grid{1}, 0u);
  const auto too_long = recording->try_replay(device.queue());
  CHECK(code_of(too_long) == "too_long");
  CHECK(contains(too_long.error().what(), "Recording: 16 packets without waiting"));
  device.processor().fail(HSA_STATUS_ERROR_INVALID_ISA);
  CHECK(code_of(recording->try_replay(device.queue())) == "failed");
}
