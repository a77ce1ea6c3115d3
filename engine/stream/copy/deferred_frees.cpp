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
  } catch (const Error&) {
    memory.leave_to_session();
    return true;
  }
}

}  // namespace

DeferredFrees::~DeferredFrees() {
  give_back(nullptr);
  for (Item& item : items_) item.memory.leave_to_session();
}

void DeferredFrees::add(const void* stream, const Event& after, Allocation&& memory) {
  std::list<Item> item;
  item.push_back({stream, after, Allocation{}});
  item.back().memory = std::move(memory);
  const std::lock_guard lock(mutex_);
  items_.splice(items_.end(), item);
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
