// A worker's workgroups that were preempted and wait for their next slice, in turn.
//
// Thread safety: any thread; the lock is the owner's except when another worker steals.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

namespace uptempo::vgpu {

template <typename Item>
class PreemptedQueue {
 public:
  // Approximate for other threads.
  size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

  // Appends the item unless `refused()`, which runs under the queue's lock. A thread that makes
  // refused() true and calls remove_if() afterwards misses no item. Returns whether it was
  // appended; if not, `item` keeps its value.
  template <typename Refused>
  bool push(Item& item, Refused refused) {
    const std::lock_guard lock(mutex_);
    if (refused()) return false;
    items_.push_back(std::move(item));
    size_.store(items_.size(), std::memory_order_relaxed);
    return true;
  }

  // Returns an empty Item if there is none.
  Item pop() {
    if (size() == 0) return {};
    const std::lock_guard lock(mutex_);
    if (items_.empty()) return {};
    Item item = std::move(items_.front());
    items_.pop_front();
    size_.store(items_.size(), std::memory_order_relaxed);
    return item;
  }

  // Moves the items for which `matches` to `take`.
  template <typename Matches, typename Take>
  void remove_if(Matches matches, Take take) {
    const std::lock_guard lock(mutex_);
    std::erase_if(items_, [&](Item& item) {
      if (!matches(item)) return false;
      take(std::move(item));
      return true;
    });
    size_.store(items_.size(), std::memory_order_relaxed);
  }

  // Calls `visit(item)` for each item, under the queue's lock.
  template <typename Visit>
  void for_each(Visit visit) {
    const std::lock_guard lock(mutex_);
    for (Item& item : items_) visit(item);
  }

 private:
  std::mutex mutex_;
  std::deque<Item> items_;
  std::atomic<size_t> size_{0};
};

}  // namespace uptempo::vgpu
