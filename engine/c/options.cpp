#include <fmt/format.h>

#include <atomic>
#include <span>
#include <vector>

#include <uptempo/c/call.hpp>
#include <uptempo/c/options.hpp>

namespace uptempo::c {
namespace {

aql::Chunking chunking_of(uint32_t lead, uint32_t chunk, const aql::Chunking& defaults) noexcept {
  return {.lead = or_default(lead, defaults.lead), .chunk = or_default(chunk, defaults.chunk)};
}

size_t limit_of(uint64_t given, size_t fallback) {
  return given == UPTEMPO_ZERO_BYTES ? 0 : or_default<size_t>(given, fallback);
}

static_assert(sizeof(std::atomic<hsa_status_t>) == sizeof(int32_t) &&
              std::atomic<hsa_status_t>::is_always_lock_free);
std::vector<BorrowedQueue> borrowed_queues_of(const uptempo_streams_options& given) {
  if (given.hsa_queue_count != 0) (void)place(given.hsa_queues, "options.hsa_queues");
  std::vector<BorrowedQueue> queues;
  for (const uptempo_streams_queue& each : std::span(given.hsa_queues, given.hsa_queue_count))
    queues.push_back({each.queue, reinterpret_cast<const std::atomic<hsa_status_t>*>(each.error)});
  return queues;
}

}  // namespace

QueueOptions queue_options_of(const uptempo_queue_options& given) {
  const QueueOptions defaults;
  return {.packets = or_default(given.packets, defaults.packets),
          .publications = or_default(given.publications, defaults.publications),
          .timing_signals = or_default(given.timing_signals, defaults.timing_signals),
          .kernarg_bytes = or_default(given.kernarg_bytes, defaults.kernarg_bytes),
          .kernarg_slab_bytes = or_default(given.kernarg_slab_bytes, defaults.kernarg_slab_bytes),
          .kernargs = enum_of(given.kernargs, KernargPlacement::automatic, "options.kernargs"),
          .drain_timeout = or_default(given.drain_timeout_ns, defaults.drain_timeout),
          .access = enum_of(given.access, RingAccessMode::hsa_calls, "options.access")};
}

BatchOptions batch_options_of(const uptempo_batch_options& given) {
  const BatchOptions defaults;
  return {.timing = enum_of(given.timing, Timing::each, "options.timing"),
          .fences = enum_of(given.fences, FencePolicy::system_everywhere, "options.fences"),
          .chunking = chunking_of(given.lead, given.chunk, defaults.chunking),
          .patience = or_default(given.patience_ns, defaults.patience)};
}

RecordingOptions recording_options_of(const uptempo_recording_options& given) {
  const RecordingOptions defaults;
  return {.fences = enum_of(given.fences, FencePolicy::system_everywhere, "options.fences"),
          .timing = enum_of(given.timing, Timing::each, "options.timing"),
          .chunking = chunking_of(given.lead, given.chunk, defaults.chunking),
          .spare_kernarg_bytes =
              or_default<size_t>(given.spare_kernarg_bytes, defaults.spare_kernarg_bytes),
          .patience = or_default(given.patience_ns, defaults.patience)};
}

StreamsOptions streams_options_of(const uptempo_streams_options& given) {
  const StreamsOptions defaults;
  const CopyLimits& copies = defaults.copies;
  return {.hardware_queues = or_default(given.hardware_queues, defaults.hardware_queues),
          .own_queues = or_default(given.own_queues, defaults.own_queues),
          .queues = borrowed_queues_of(given),
          .copies = {.host_bytes = limit_of(given.host_bytes, copies.host_bytes),
                     .kernel_bytes = limit_of(given.kernel_bytes, copies.kernel_bytes),
                     .stage_bytes = limit_of(given.stage_bytes, copies.stage_bytes),
                     .staging_bytes = limit_of(given.staging_bytes, copies.staging_bytes),
                     .piece_bytes = limit_of(given.staging_piece_bytes, copies.piece_bytes),
                     .engine_copies = or_default(given.engine_copies, copies.engine_copies)},
          .choose_engines = given.rocr_chooses_engines == 0,
          .queue = queue_options_of(options_of(given.queue, "options.queue")),
          .epoch_packets = or_default(given.epoch_packets, defaults.epoch_packets),
          .system_acquires = given.system_acquires != 0,
          .patience = or_default(given.patience_ns, defaults.patience)};
}

StreamOptions stream_options_of(const uptempo_stream_options& given) {
  StreamOptions options;
  switch (given.priority) {
    case UPTEMPO_PRIORITY_LOW:
      options.priority = StreamPriority::low;
      break;
    case UPTEMPO_PRIORITY_NORMAL:
      break;
    case UPTEMPO_PRIORITY_HIGH:
      options.priority = StreamPriority::high;
      break;
    default:
      refuse_parameter("options.priority",
                       fmt::format("it is {}", static_cast<int>(given.priority)),
                       "use a constant of uptempo_priority");
  }
  if (given.cu_mask_words != 0) {
    (void)place(given.cu_mask, "options.cu_mask");
    options.cu_mask.assign(given.cu_mask, given.cu_mask + given.cu_mask_words);
  }
  return options;
}

}  // namespace uptempo::c
