#include <uptempo/runtime/counters.hpp>

#include <mutex>

namespace uptempo {
namespace {

class ThreadBlock;

// The blocks of all threads, and the sum of those of ended threads. Never destroyed: threads may
// end after static destructors.
struct Registry {
  std::mutex mutex;
  ThreadBlock* live = nullptr;
  Counters retired;
  // For threads that count in destructors after their own block is destroyed. Threads that do so
  // concurrently may lose counts.
  detail::CounterBlock late;
};

Registry& registry() {
  // Without allocation, because a thread may count for the first time where nothing may fail.
  alignas(Registry) static std::byte storage[sizeof(Registry)];
  static Registry* const instance = new (storage) Registry;
  return *instance;
}

Counters read(const detail::CounterBlock& block) noexcept {
  Counters out;
#define UPTEMPO_COUNTER_READ(name, text) out.name = block.name.load(std::memory_order_relaxed);
  UPTEMPO_COUNTERS(UPTEMPO_COUNTER_READ)
#undef UPTEMPO_COUNTER_READ
  return out;
}

// Links itself into the list: a thread may count for the first time where nothing may fail.
class ThreadBlock {
 public:
  ThreadBlock() noexcept {
    const std::lock_guard lock(registry().mutex);
    next = registry().live;
    link_ = &registry().live;
    if (next != nullptr) next->link_ = &next;
    registry().live = this;
  }
  ~ThreadBlock() {
    const std::lock_guard lock(registry().mutex);
    registry().retired += read(block);
    *link_ = next;
    if (next != nullptr) next->link_ = link_;
    detail::block_of_this_thread = &registry().late;
  }
  ThreadBlock(const ThreadBlock&) = delete;
  ThreadBlock& operator=(const ThreadBlock&) = delete;

  detail::CounterBlock block;
  ThreadBlock* next;

 private:
  ThreadBlock** link_;  // the pointer to this block
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
  sum += read(registry().late);
  for (const ThreadBlock* thread = registry().live; thread != nullptr; thread = thread->next)
    sum += read(thread->block);
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
