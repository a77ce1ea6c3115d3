// Streams over an HSA queue of the program's own, in which it publishes packets itself, too.
#include <hsa/hsa.h>
#include <uptempo/kernels/steps.hpp>
#include <uptempo/uptempo.hpp>

#include <atomic>
#include <cstdio>
#include <cstring>

using namespace uptempo;

//! [packet]
// Stores a barrier packet, which sets `done` to 0 after all earlier work of the queue.
void publish_barrier(hsa_queue_t* queue, hsa_signal_t done) {
  hsa_barrier_and_packet_t packet{};
  packet.completion_signal = done;
  constexpr uint32_t header = HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE |
                              1 << HSA_PACKET_HEADER_BARRIER |
                              HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                              HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
  const uint64_t index = hsa_queue_load_write_index_relaxed(queue);
  auto* slot = static_cast<char*>(queue->base_address) + index % queue->size * sizeof packet;
  std::memcpy(slot + 4, reinterpret_cast<char*>(&packet) + 4, sizeof packet - 4);
  __atomic_store_n(reinterpret_cast<uint32_t*>(slot), header, __ATOMIC_RELEASE);  // header last
  hsa_queue_store_write_index_screlease(queue, index + 1);
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
}
//! [packet]

//! [error]
std::atomic<hsa_status_t> queue_error{HSA_STATUS_SUCCESS};
void on_error(hsa_status_t status, hsa_queue_t*, void*) { queue_error = status; }
//! [error]

int main() try {
  constexpr uint32_t n = 256;
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, kernels::steps()};
  auto advance = program.kernel<uint32_t*, uint32_t>("advance");  // values = 3 values + addend
  PinnedBuffer<uint32_t> values{gpu, n};
  for (uint32_t& value : values) value = 1;

  //! [lend]
  hsa_queue_t* queue = nullptr;
  check(hsa_queue_create(gpu.handle(), 1024, HSA_QUEUE_TYPE_MULTI, on_error, nullptr, UINT32_MAX,
                         UINT32_MAX, &queue),
        "hsa_queue_create", "a queue of 1,024 packets");
  Signal done{SignalKind::interrupt, 1};
  {
    Streams streams{gpu, {.queues = {{queue, &queue_error}}}};
    Stream stream{streams};
    stream.launch(advance, Grid{n}.by(64), values.data(), 1u);
    bool is_published = false;
    while (!is_published)
      streams.publish_own(queue, [&](uint64_t room) {
        if (room == 0) return;  // the ring is full of unfinished work: again later
        publish_barrier(queue, done.handle());
        is_published = true;
      });
    hsa_signal_wait_scacquire(done.handle(), HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                              HSA_WAIT_STATE_BLOCKED);
  }
  hsa_queue_destroy(queue);  // after the last stream
  //! [lend]
  std::printf("%s results\n", values[0] == 4 && values[n - 1] == 4 ? "right" : "wrong");
  return values[0] == 4 && values[n - 1] == 4 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "lend: %s\n", error.what());
  return 1;
}
