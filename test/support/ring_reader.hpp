// An adversarial packet processor: takes ticketed packets from a ring as early, as late and in as
// many pieces as the HSA rules allow. It reports every packet that it sees torn, out of order or
// twice.
//
// The gate selects which store the reader relies on, because the publication rules protect each
// kind of processor by a different store:
//   Gate::header       Takes a packet as soon as its header is valid; ignores write index and
//                      doorbell. Protected by: header last.
//   Gate::write_index  Fetches the 64-byte line of a slot below the visible write index in two
//                      pieces, bytes 4..63 first, at two moments, and uses both. A remapped queue
//                      re-fetches this way. Reports each unpublished slot below the write index as
//                      a defect. Protected by: the write index covers published slots only.
//   Gate::doorbell     Sleeps until the doorbell covers a slot, then takes it without reading its
//                      header again. Reports a slot that is not valid then as a defect.
//                      Protected by: doorbell last, with the index of the last packet.
//   Gate::all          Waits for doorbell, write index and header, then fetches at once. A packet
//                      that it sees torn was overwritten.
//
// step() performs one small action and returns. A test can therefore interleave it with a writer's
// stores in one thread, from inside emit(), in an order fixed by the seed. run() steps in a thread
// of its own.
//
// Early reads of slots that are being written are intended data races. Uninstrumented code performs
// them, so ThreadSanitizer judges only the reads that count.
//
// Thread safety: one thread calls step() and run(); any thread may read the counters.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "test/support/queue_double.hpp"

namespace uptempo::test {

// A kernel dispatch packet with its ticket in every word, so any mixture of two packets is
// detected.
aql::Packet64 ticketed_packet(uint64_t ticket) noexcept;
// Returns an emitter of the packets with tickets from `first` on.
inline auto emit_tickets(uint64_t first) {
  return [first](uint64_t i, void* slot) noexcept {
    return aql::fill(slot, ticketed_packet(first + i));
  };
}
// Writes bytes 4..63 only, in two halves, and calls `between` after the first; returns the first
// word.
template <class Between>
uint32_t fill_ticketed(void* slot, uint64_t ticket, Between&& between) noexcept {
  const aql::Packet64 packet = ticketed_packet(ticket);
  auto* words = static_cast<uint32_t*>(slot);
  for (int i = 8; i < 16; ++i) words[i] = packet.word[static_cast<size_t>(i)];
  between();
  for (int i = 1; i < 8; ++i) words[i] = packet.word[static_cast<size_t>(i)];
  return packet.word[0];
}

enum class Gate { header, write_index, doorbell, all };

class RingReader {
 public:
  RingReader(QueueDouble& queue, Gate gate, uint64_t seed);

  // Performs at most one action: read early, fetch a piece, take a packet, or move the read index.
  // Returns true if it took a packet.
  bool step();
  // Steps until `count` packets are taken in total or stop() is called, with pauses of random
  // length.
  void run(uint64_t count);
  void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }

  uint64_t taken() const noexcept { return taken_.load(std::memory_order_acquire); }
  // One line per defect; empty if the reader saw none.
  std::vector<std::string> defects() const;
  // By default the packet at index i must carry ticket i. Call this if several producers use
  // tickets of their own.
  void expect_tickets_in_any_order() noexcept { any_order_ = true; }
  std::vector<uint64_t> tickets() const;

 private:
  bool chance(unsigned one_in);
  void peek();
  bool published(uint64_t index) noexcept;
  void consume(const aql::Packet64& packet);
  void defect(std::string text);

  QueueDouble& queue_;
  Gate gate_;
  std::mt19937_64 random_;
  bool any_order_ = false;
  uint64_t next_;         // index of the next packet to take
  uint64_t read_index_;   // stored read index; trails next_ at random
  bool fetched_ = false;  // Gate::write_index: the body is fetched, the header is not
  aql::Packet64 line_{};
  std::atomic<uint64_t> taken_{0};
  std::atomic<bool> stopped_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> defects_;
  std::vector<uint64_t> tickets_;
};

}  // namespace uptempo::test
