#include "engine/stream/copy/deferred_frees.hpp"

#include <utility>

#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo::detail {
namespace {

// Also true for lost work: then the device may still use the memory.
bool is_over(const Event& event, Allocation& memory) noexcept {
  try {
    return event.ready();
  } catch (const std::exception&) {
    memory.leave_to_session();
    return true;
  }
}

}  // namespace

DeferredFrees::~DeferredFrees() {
  give_back(nullptr);
  for (Item& item : items_) item.memory.leave_to_session();
}

void DeferredFrees::expect() {
  std::list<Item> place(1);
  const std::lock_guard lock(mutex_);
  unused_.splice(unused_.end(), place);
}

void DeferredFrees::add(const void* stream, const Event& after, Allocation&& memory) noexcept {
  const std::lock_guard lock(mutex_);
  unused_.front() = {stream, after, std::move(memory)};
  items_.splice(items_.end(), unused_, unused_.begin());
  count(&CounterBlock::frees_deferred);
}

void DeferredFrees::give_back(const void* stream) noexcept {
  std::list<Item> due;  // freed without the lock
  const std::lock_guard lock(mutex_);
  for (auto next = items_.begin(); next != items_.end();) {
    const auto item = next++;
    if ((stream == nullptr || item->stream == stream) && is_over(item->after, item->memory))
      due.splice(due.end(), items_, item);
  }
}

void DeferredFrees::orphan(const void* stream) noexcept {
  const std::lock_guard lock(mutex_);
  for (Item& item : items_)
    if (item.stream == stream) item.stream = this;
}

size_t DeferredFrees::size() noexcept {
  const std::lock_guard lock(mutex_);
  return items_.size();
}

}  // namespace uptempo::detail
