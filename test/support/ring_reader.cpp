#include "test/support/ring_reader.hpp"

#include <chrono>
#include <cstring>
#include <thread>

#if defined(__SANITIZE_THREAD__)
#define UPTEMPO_RACES_BY_INTENT __attribute__((no_sanitize("thread"), noinline))
#else
#define UPTEMPO_RACES_BY_INTENT __attribute__((noinline))
#endif

namespace uptempo::test {
namespace {

constexpr uint32_t mixed(uint64_t ticket, uint32_t word) noexcept {
  uint64_t x = ticket + 0x9e3779b97f4a7c15ull * (word + 1);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return static_cast<uint32_t>(x ^ x >> 31);
}

// Reads word by word through volatile, without ordering: returns what each word holds at that
// moment.
UPTEMPO_RACES_BY_INTENT aql::Packet64 fetch_racing(const aql::Packet64* slot) {
  aql::Packet64 line{};
  const volatile uint32_t* words = slot->word.data();
  for (size_t i = 1; i < line.word.size(); ++i) line.word[i] = words[i];
  return line;
}

}  // namespace

aql::Packet64 ticketed_packet(uint64_t ticket) noexcept {
  aql::Packet64 packet{};
  packet.word[0] = aql::first_word(aql::make_header(aql::PacketType::kernel_dispatch, {}),
                                   static_cast<uint16_t>(mixed(ticket, 0)));
  for (uint32_t i = 1; i < 14; ++i) packet.word[i] = mixed(ticket, i);
  packet.word[14] = static_cast<uint32_t>(ticket);
  packet.word[15] = static_cast<uint32_t>(ticket >> 32);
  return packet;
}

RingReader::RingReader(QueueDouble& queue, Gate gate, uint64_t seed)
    : queue_(queue),
      gate_(gate),
      random_(seed),
      next_(queue.read_index().load()),
      read_index_(next_) {}

bool RingReader::chance(unsigned one_in) { return random_() % one_in == 0; }

void RingReader::defect(std::string text) {
  const std::lock_guard lock(mutex_);
  if (defects_.size() < 20) defects_.push_back(std::move(text));
}

std::vector<std::string> RingReader::defects() const {
  const std::lock_guard lock(mutex_);
  return defects_;
}

std::vector<uint64_t> RingReader::tickets() const {
  const std::lock_guard lock(mutex_);
  return tickets_;
}

// Fetches a random line early, as a prefetcher does. Its only effect is traffic on the writer's
// cache lines.
void RingReader::peek() {
  static_cast<void>(fetch_racing(&queue_.slot(next_ + random_() % queue_.ring_size())));
}

bool RingReader::published(uint64_t index) noexcept {
  return aql::packet_type(static_cast<uint16_t>(queue_.first_word(index))) !=
         aql::PacketType::invalid;
}

void RingReader::consume(const aql::Packet64& packet) {
  const uint64_t ticket = packet.word[14] | static_cast<uint64_t>(packet.word[15]) << 32;
  const uint64_t expected = any_order_ ? ticket : next_;
  if (packet != ticketed_packet(expected)) {
    defect("packet " + std::to_string(next_) + " was seen torn or out of place: ticket " +
           std::to_string(ticket));
  }
  if (any_order_) {
    const std::lock_guard lock(mutex_);
    tickets_.push_back(ticket);
  }
  queue_.invalidate(next_);
  ++next_;
  fetched_ = false;
  taken_.fetch_add(1, std::memory_order_release);
}

bool RingReader::step() {
  if (chance(8)) peek();
  // The read index trails by a random amount. Late values exercise back-pressure; it is never
  // early.
  if (read_index_ != next_ && chance(3)) {
    read_index_ += 1 + random_() % (next_ - read_index_);
    queue_.read_index().store(
        // release: the slot reads above complete before a producer reuses the slot
        read_index_, std::memory_order_release);
  }
  // the slot of next_ still belongs to the reader
  if (next_ - read_index_ >= queue_.ring_size()) return false;
  switch (gate_) {
    case Gate::header: {
      const uint32_t first = queue_.first_word(next_);
      if (aql::packet_type(static_cast<uint16_t>(first)) == aql::PacketType::invalid) return false;
      aql::Packet64 packet = queue_.slot(next_);
      packet.word[0] = first;
      consume(packet);
      return true;
    }
    case Gate::write_index: {
      if (!fetched_) {
        const uint64_t write = queue_.write_index().load(std::memory_order_acquire);
        if (static_cast<int64_t>(write - next_) <= 0) return false;
        for (uint64_t i = next_; i != write; ++i) {
          if (!published(i))
            defect("the write index covers packet " + std::to_string(i) +
                   ", which is not published");
        }
        line_ = queue_.slot(next_);
        fetched_ = true;
        if (chance(2)) return false;  // reads the header in a later step
      }
      if (!published(next_)) return false;
      line_.word[0] = queue_.first_word(next_);
      consume(line_);
      return true;
    }
    case Gate::all: {
      const uint64_t last = queue_.doorbell().load(std::memory_order_acquire);
      const uint64_t write = queue_.write_index().load(std::memory_order_acquire);
      if (static_cast<int64_t>(last - next_) < 0 || static_cast<int64_t>(write - next_) <= 0)
        return false;
      if (!published(next_)) return false;
      const aql::Packet64 packet = queue_.slot(next_);
      consume(packet);
      return true;
    }
    case Gate::doorbell: {
      const uint64_t last = queue_.doorbell().load(std::memory_order_acquire);
      if (static_cast<int64_t>(last - next_) < 0) return false;
      if (static_cast<int64_t>(queue_.write_index().load(std::memory_order_relaxed) - last) <= 0) {
        defect("the doorbell holds " + std::to_string(last) +
               ", but the write index does not cover it");
      }
      if (!published(next_)) {
        defect("the doorbell holds " + std::to_string(last) + ", but packet " +
               std::to_string(next_) + " is not published");
        return false;
      }
      aql::Packet64 packet = queue_.slot(next_);
      consume(packet);
      return true;
    }
  }
  return false;
}

void RingReader::run(uint64_t count) {
  while (taken() < count && !stopped_.load(std::memory_order_relaxed)) {
    if (step()) continue;
    if (chance(32)) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 50));
  }
  if (read_index_ != next_) queue_.read_index().store(next_, std::memory_order_release);
}

}  // namespace uptempo::test
