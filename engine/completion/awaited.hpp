// A completion that somebody has asked the drain (completion_thread.hpp) to look out for. Private to engine/dispatch.
//
// The object lies with who awaits: in a coroutine's frame, in a notifier's array. So asking allocates nothing, and a publication
// that nobody awaits costs nothing.
#pragma once

#include <cstdint>

namespace uptempo {
class Timeline;
}

namespace uptempo::detail {

struct Awaited {
  Timeline* timeline = nullptr;
  uint64_t value = 0;
  // Called once, on the drain thread, when the publication has completed or failed. The object may be gone when it returns.
  void (*on_finished)(Awaited&) noexcept = nullptr;

  // The drain's, under its mutex.
  enum class Place : uint8_t { nowhere, waiting, ready };
  Place place = Place::nowhere;
  Awaited* before = nullptr;
  Awaited* after = nullptr;
};

class AwaitedList {
 public:
  Awaited* first() const noexcept { return first_; }
  // Behind all of no higher value: at the end, as a rule, because values grow.
  void insert(Awaited& item) noexcept {
    Awaited* before = last_;
    while (before != nullptr && before->value > item.value) before = before->before;
    item.before = before;
    item.after = before == nullptr ? first_ : before->after;
    (item.before == nullptr ? first_ : item.before->after) = &item;
    (item.after == nullptr ? last_ : item.after->before) = &item;
  }
  void push_back(Awaited& item) noexcept {
    item.before = last_;
    item.after = nullptr;
    (last_ == nullptr ? first_ : last_->after) = &item;
    last_ = &item;
  }
  void erase(Awaited& item) noexcept {
    (item.before == nullptr ? first_ : item.before->after) = item.after;
    (item.after == nullptr ? last_ : item.after->before) = item.before;
  }

 private:
  Awaited* first_ = nullptr;
  Awaited* last_ = nullptr;
};

}  // namespace uptempo::detail
