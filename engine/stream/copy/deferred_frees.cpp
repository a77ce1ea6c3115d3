#include "engine/stream/copy/deferred_frees.hpp"

#include <algorithm>
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
  const std::lock_guard lock(mutex_);
  items_.push_back({stream, after, Allocation{}});
  items_.back().memory = std::move(memory);
  count(&CounterBlock::frees_deferred);
}

void DeferredFrees::give_back(const void* stream) noexcept {
  std::vector<Item> due;
  {
    const std::lock_guard lock(mutex_);
    const auto is_due = [&](Item& item) {
      return (stream == nullptr || item.stream == stream) && is_over(item.after, item.memory);
    };
    const auto first = std::stable_partition(items_.begin(), items_.end(),
                                             [&](Item& item) { return !is_due(item); });
    due.assign(std::make_move_iterator(first), std::make_move_iterator(items_.end()));
    items_.erase(first, items_.end());
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
