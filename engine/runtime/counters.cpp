#include "engine/runtime/counters.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace uptempo {
namespace {

// The blocks of all threads, and the sum of those of ended threads. Never destroyed: threads may
// end after static destructors.
struct Registry {
  std::mutex mutex;
  std::vector<const detail::CounterBlock*> live;
  Counters retired;
  // For threads that count in destructors after their own block is destroyed. Threads that do so
  // concurrently may lose counts.
  detail::CounterBlock late;
  Registry() { live.push_back(&late); }
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

Counters read(const detail::CounterBlock& block) noexcept {
  Counters out;
#define UPTEMPO_COUNTER_READ(name, text) out.name = block.name.load(std::memory_order_relaxed);
  UPTEMPO_COUNTERS(UPTEMPO_COUNTER_READ)
#undef UPTEMPO_COUNTER_READ
  return out;
}

class ThreadBlock {
 public:
  ThreadBlock() {
    const std::lock_guard lock(registry().mutex);
    registry().live.push_back(&block);
  }
  ~ThreadBlock() {
    const std::lock_guard lock(registry().mutex);
    registry().retired += read(block);
    std::erase(registry().live, &block);
    detail::block_of_this_thread = &registry().late;
  }
  ThreadBlock(const ThreadBlock&) = delete;
  ThreadBlock& operator=(const ThreadBlock&) = delete;

  detail::CounterBlock block;
};

}  // namespace

Counters& Counters::operator+=(const Counters& other) noexcept {
#define UPTEMPO_COUNTER_ADD(name, text) name += other.name;
  UPTEMPO_COUNTERS(UPTEMPO_COUNTER_ADD)
#undef UPTEMPO_COUNTER_ADD
  return *this;
}

Counters& Counters::operator-=(const Counters& other) noexcept {
#define UPTEMPO_COUNTER_SUBTRACT(name, text) name -= other.name;
  UPTEMPO_COUNTERS(UPTEMPO_COUNTER_SUBTRACT)
#undef UPTEMPO_COUNTER_SUBTRACT
  return *this;
}

Counters Counters::now() {
  const std::lock_guard lock(registry().mutex);
  Counters sum = registry().retired;
  for (const detail::CounterBlock* block : registry().live) sum += read(*block);
  return sum;
}

namespace detail {

CounterBlock& make_block_of_this_thread() noexcept {
  thread_local ThreadBlock mine;
  block_of_this_thread = &mine.block;
  return mine.block;
}

}  // namespace detail
}  // namespace uptempo
