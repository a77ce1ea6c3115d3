// An adversarial packet processor: takes ticketed packets from a ring as early, as late and in as many pieces as the HSA rules allow, and
// reports every packet that it saw torn, out of order or twice.
//
// What a processor may rely on is a parameter, because the publication rules protect each kind of processor by a different store:
//   Gate::header       takes a packet as soon as its header is valid, blind to write index and doorbell. Protected by: header last.
//   Gate::write_index  fetches the 64-byte line of any slot below the visible write index in two pieces at two moments, bytes 4..63
//                      first, and uses both (a remapped queue re-fetches so). Protected by: write index over published slots only; a
//                      slot below it that is not published is a defect.
//   Gate::doorbell     sleeps until the doorbell covers a slot, then takes it without another look at its header; a slot that is not
//                      valid then is a defect. Protected by: doorbell after everything, with the index of the last packet.
//   Gate::all          waits for doorbell, write index and header, then fetches at once: the tamest. What it sees torn was overwritten.
//
// step() does one small thing and returns, so a test can interleave it with a writer's stores in one thread, from inside emit(), in an order
// fixed by the seed. run() steps in a thread of its own. Premature looks at slots that are being written are data races by intent: they are made
// by uninstrumented code, so that ThreadSanitizer judges the reads that count.
//
// Thread safety: step() and run() belong to one thread; counters may be read from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "test/support/queue_double.hpp"

namespace uptempo::test {

// A packet that carries its ticket in every word, so that any mixture of two packets shows. The type is kernel dispatch.
aql::Packet64 ticketed_packet(uint64_t ticket) noexcept;
// Writes bytes 4..63 only, in two halves with `between` called in the middle; returns the first word.
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

  // At most one of: look early, fetch a piece, take a packet, move the read index, do nothing. True if a packet was taken.
  bool step();
  // Steps until `count` packets have been taken in total or stop() was called, with pauses of random length.
  void run(uint64_t count);
  void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }

  uint64_t taken() const noexcept { return taken_.load(std::memory_order_acquire); }
  // What went wrong, one line per defect; empty is what every test wants.
  std::vector<std::string> defects() const;
  // Tickets expected at each index are the indices themselves unless the producers number on their own (several foreign ones).
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
  uint64_t next_;         // index of the packet to take next
  uint64_t read_index_;   // what the read index says; trails next_ at random
  bool fetched_ = false;  // Gate::write_index: the body is here, the header is not
  aql::Packet64 line_{};
  std::atomic<uint64_t> taken_{0};
  std::atomic<bool> stopped_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> defects_;
  std::vector<uint64_t> tickets_;
};

}  // namespace uptempo::test
