// Helpers for the tests of shared producers. A publication nested in another one's emit function
// runs between that one's claim and its headers, so a single thread covers most orders of two or
// three producers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <uptempo/aql/writer.hpp>
#include "test/support/hsa_double.hpp"
#include "test/support/queue_double.hpp"
#include "test/support/ring_reader.hpp"

namespace uptempo::test {

// As emit_tickets, but calls `meanwhile` before storing the first packet's header.
template <class F>
inline auto emit_tickets(uint64_t first, F meanwhile) {
  return [first, meanwhile](uint64_t i, void* slot) noexcept {
    const uint32_t word = aql::fill(slot, ticketed_packet(first + i));
    if (i == 0) meanwhile();
    return word;
  };
}

// Takes `count` packets out of the ring, as a processor would.
inline void take(QueueDouble& queue, uint64_t count) {
  const uint64_t read = queue.read_index().load();
  for (uint64_t i = 0; i < count; ++i) queue.invalidate(read + i);
  queue.read_index().store(read + count);
}

// Records doorbells in order; the queue's doorbell is of kind USER.
class Doorbells {
 public:
  Doorbells() {
    hsa_calls().reset();
    hsa_calls().on_store = [this](hsa_signal_t, hsa_signal_value_t value) {
      rung.push_back(static_cast<uint64_t>(value));
    };
  }
  ~Doorbells() { hsa_calls().reset(); }
  std::vector<uint64_t> rung;
};
using Rung = std::vector<uint64_t>;

// A ring with three writers.
struct Shared {
  explicit Shared(const QueueDoubleOptions& options = {}) : queue(options), ring(queue.queue()) {
    for (auto& writer : writers) writer.emplace(aql::AqlQueueWriter::share(ring));
  }
  aql::AqlQueueWriter& operator[](size_t i) { return *writers[i]; }

  QueueDouble queue;
  aql::SharedRing ring;
  std::array<std::optional<aql::AqlQueueWriter>, 3> writers;
};

}  // namespace uptempo::test
