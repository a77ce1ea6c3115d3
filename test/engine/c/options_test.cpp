// Each field of an option struct of the C interface reaches the C++ option of its meaning, and a
// field of 0 is that option's default.
#include <uptempo/c/options.hpp>

#include <array>
#include <chrono>
#include <cstring>

#include <uptempo/runtime/error.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using namespace uptempo::c;
using namespace std::chrono_literals;
using uptempo::test::contains;
using uptempo::test::error_of;

namespace {

template <class T>
T of_zeros() {
  T options;
  std::memset(&options, 0, sizeof options);
  options.size = sizeof options;
  return options;
}

}  // namespace

TEST_CASE("options of queues in C are those in C++", "[c]") {
  auto given = of_zeros<uptempo_queue_options>();
  const QueueOptions zeros = queue_options_of(given), defaults;
  CHECK(zeros.packets == defaults.packets);
  CHECK(zeros.publications == defaults.publications);
  CHECK(zeros.timing_signals == defaults.timing_signals);
  CHECK(zeros.kernarg_bytes == defaults.kernarg_bytes);
  CHECK(zeros.kernarg_slab_bytes == defaults.kernarg_slab_bytes);
  CHECK(zeros.kernargs == KernargPlacement::host);
  CHECK(zeros.drain_timeout == 10s);
  CHECK(zeros.access == RingAccessMode::automatic);

  given = {.size = sizeof given,
           .drain_timeout_ns = 1,
           .packets = 2,
           .publications = 3,
           .timing_signals = 4,
           .kernarg_bytes = 5,
           .kernarg_slab_bytes = 6,
           .kernargs = UPTEMPO_KERNARGS_DEVICE,
           .access = UPTEMPO_RING_HSA_CALLS,
           .reserved = 0};
  const QueueOptions options = queue_options_of(given);
  CHECK(options.drain_timeout == 1ns);
  CHECK(options.packets == 2);
  CHECK(options.publications == 3);
  CHECK(options.timing_signals == 4);
  CHECK(options.kernarg_bytes == 5);
  CHECK(options.kernarg_slab_bytes == 6);
  CHECK(options.kernargs == KernargPlacement::device);
  CHECK(options.access == RingAccessMode::hsa_calls);
  given.kernargs = UPTEMPO_KERNARGS_AUTOMATIC;
  given.access = UPTEMPO_RING_DIRECT;
  CHECK(queue_options_of(given).kernargs == KernargPlacement::automatic);
  CHECK(queue_options_of(given).access == RingAccessMode::direct);
  given.access = static_cast<uptempo_ring_access>(3);
  CHECK(contains(error_of<Error>([&] { (void)queue_options_of(given); }), "options.access"));
}

TEST_CASE("options of batches in C are those in C++", "[c]") {
  auto given = of_zeros<uptempo_batch_options>();
  const BatchOptions zeros = batch_options_of(given), defaults;
  CHECK(zeros.timing == Timing::none);
  CHECK(zeros.fences == FencePolicy::by_need);
  CHECK(zeros.chunking.lead == defaults.chunking.lead);
  CHECK(zeros.chunking.chunk == defaults.chunking.chunk);
  CHECK(zeros.patience == 30s);

  given = {.size = sizeof given,
           .patience_ns = 1,
           .timing = UPTEMPO_TIMING_BATCH,
           .fences = UPTEMPO_FENCES_SYSTEM_EVERYWHERE,
           .lead = 2,
           .chunk = 3};
  const BatchOptions options = batch_options_of(given);
  CHECK(options.patience == 1ns);
  CHECK(options.timing == Timing::batch);
  CHECK(options.fences == FencePolicy::system_everywhere);
  CHECK(options.chunking.lead == 2);
  CHECK(options.chunking.chunk == 3);
  given.timing = UPTEMPO_TIMING_EACH;
  CHECK(batch_options_of(given).timing == Timing::each);
  given.timing = static_cast<uptempo_timing>(3);
  CHECK(contains(error_of<Error>([&] { (void)batch_options_of(given); }), "options.timing"));
  given.timing = UPTEMPO_TIMING_NONE;
  given.fences = static_cast<uptempo_fence_policy>(9);
  CHECK(contains(error_of<Error>([&] { (void)batch_options_of(given); }), "options.fences"));
}

TEST_CASE("options of recordings in C are those in C++", "[c]") {
  auto given = of_zeros<uptempo_recording_options>();
  const RecordingOptions zeros = recording_options_of(given);
  CHECK(zeros.fences == FencePolicy::by_need);
  CHECK(zeros.timing == Timing::none);
  CHECK(zeros.chunking.lead == 8);
  CHECK(zeros.chunking.chunk == 1024);
  CHECK(zeros.spare_kernarg_bytes == 160 << 10);
  CHECK(zeros.patience == 30s);

  given = {.size = sizeof given,
           .patience_ns = 1,
           .spare_kernarg_bytes = 2,
           .timing = UPTEMPO_TIMING_EACH,
           .fences = UPTEMPO_FENCES_SYSTEM_EVERYWHERE,
           .lead = 3,
           .chunk = 4};
  const RecordingOptions options = recording_options_of(given);
  CHECK(options.patience == 1ns);
  CHECK(options.spare_kernarg_bytes == 2);
  CHECK(options.timing == Timing::each);
  CHECK(options.fences == FencePolicy::system_everywhere);
  CHECK(options.chunking.lead == 3);
  CHECK(options.chunking.chunk == 4);
}

TEST_CASE("options of streams in C are those in C++", "[c]") {
  auto given = of_zeros<uptempo_streams_options>();
  const StreamsOptions zeros = streams_options_of(given), defaults;
  CHECK(zeros.hardware_queues == 4);
  CHECK(zeros.own_queues == 4);
  CHECK(zeros.copies.host_bytes == defaults.copies.host_bytes);
  CHECK(zeros.copies.kernel_bytes == defaults.copies.kernel_bytes);
  CHECK(zeros.copies.stage_bytes == defaults.copies.stage_bytes);
  CHECK(zeros.copies.staging_bytes == defaults.copies.staging_bytes);
  CHECK(zeros.copies.piece_bytes == defaults.copies.piece_bytes);
  CHECK(zeros.copies.engine_copies == 32);
  CHECK(zeros.choose_engines);
  CHECK(zeros.queue.packets == defaults.queue.packets);
  CHECK(zeros.epoch_packets == 128);
  CHECK_FALSE(zeros.system_acquires);
  CHECK(zeros.patience == 30s);

  auto queue = of_zeros<uptempo_queue_options>();
  queue.packets = 512;
  given.patience_ns = 1;
  given.host_bytes = 2;
  given.kernel_bytes = 3;
  given.stage_bytes = 4;
  given.staging_bytes = 5;
  given.staging_piece_bytes = 6;
  given.queue = &queue;
  given.hardware_queues = 7;
  given.own_queues = 8;
  given.epoch_packets = 9;
  given.engine_copies = 10;
  given.rocr_chooses_engines = 1;
  given.system_acquires = 1;
  const StreamsOptions options = streams_options_of(given);
  CHECK(options.patience == 1ns);
  CHECK(options.copies.host_bytes == 2);
  CHECK(options.copies.kernel_bytes == 3);
  CHECK(options.copies.stage_bytes == 4);
  CHECK(options.copies.staging_bytes == 5);
  CHECK(options.copies.piece_bytes == 6);
  CHECK(options.queue.packets == 512);
  CHECK(options.hardware_queues == 7);
  CHECK(options.own_queues == 8);
  CHECK(options.epoch_packets == 9);
  CHECK(options.copies.engine_copies == 10);
  CHECK_FALSE(options.choose_engines);
  CHECK(options.system_acquires);
  CHECK(options.queues.empty());
  given.hsa_queue_count = 2;
  CHECK(contains(error_of<Error>([&] { (void)streams_options_of(given); }), "options.hsa_queues"));
  hsa_queue_t one{}, two{};
  const int32_t error = HSA_STATUS_ERROR_INVALID_ISA;
  const uptempo_streams_queue queues[] = {{&one, &error}, {&two, nullptr}};
  given.hsa_queues = queues;
  const StreamsOptions borrowing = streams_options_of(given);
  REQUIRE(borrowing.queues.size() == 2);
  CHECK(borrowing.queues[0].queue == &one);
  CHECK(borrowing.queues[0].error->load() == HSA_STATUS_ERROR_INVALID_ISA);
  CHECK(borrowing.queues[1].queue == &two);
  CHECK(borrowing.queues[1].error == nullptr);
  given.host_bytes = given.kernel_bytes = given.stage_bytes = UPTEMPO_ZERO_BYTES;
  CHECK(streams_options_of(given).copies.host_bytes == 0);
  CHECK(streams_options_of(given).copies.kernel_bytes == 0);
  CHECK(streams_options_of(given).copies.stage_bytes == 0);
}

TEST_CASE("options of a stream in C are those in C++", "[c]") {
  auto given = of_zeros<uptempo_stream_options>();
  CHECK(stream_options_of(given).priority == StreamPriority::normal);
  CHECK(stream_options_of(given).cu_mask.empty());
  constexpr std::array<uint32_t, 2> mask{5, 6};
  given.cu_mask = mask.data();
  given.cu_mask_words = mask.size();
  given.priority = UPTEMPO_PRIORITY_HIGH;
  CHECK(stream_options_of(given).cu_mask == std::vector<uint32_t>{5, 6});
  CHECK(stream_options_of(given).priority == StreamPriority::high);
  given.priority = UPTEMPO_PRIORITY_LOW;
  CHECK(stream_options_of(given).priority == StreamPriority::low);
  given.priority = static_cast<uptempo_priority>(2);
  CHECK(contains(error_of<Error>([&] { (void)stream_options_of(given); }), "options.priority"));
  given.priority = UPTEMPO_PRIORITY_NORMAL;
  given.cu_mask = nullptr;
  CHECK(contains(error_of<Error>([&] { (void)stream_options_of(given); }), "options.cu_mask"));
}
