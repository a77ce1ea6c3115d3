// Awaited: one entry in the completion thread's list (completion_thread.hpp). Private to
// engine/completion.
//
// Lifetime: the waiting side owns the object, in a coroutine's frame or a notifier's array.
// Cost: adding an entry allocates nothing. A publication without entries costs nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace uptempo {
class Timeline;
}

namespace uptempo::detail {

struct Awaited {
  Timeline* timeline = nullptr;
  uint64_t value = 0;
  // Called once, on the completion thread, when the publication has completed or failed. It may
  // destroy the object.
  void (*on_finished)(Awaited&) noexcept = nullptr;

  // Owned by the completion thread, under its mutex.
  enum class Place : uint8_t { nowhere, waiting, ready };
  Place place = Place::nowhere;
  Awaited* before = nullptr;
  Awaited* after = nullptr;
};

class AwaitedList {
 public:
  Awaited* first() const noexcept { return first_; }
  // Inserts after all items with no higher value. Values grow, so this is usually the end.
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

// Serves awaited publications: the completion thread, as a timeline knows it.
class AwaitedServer {
 public:
  // Requests another check of the awaited publications, for example after a failure. Any thread.
  virtual void look_again() noexcept = 0;

 protected:
  ~AwaitedServer() = default;
};

// The awaited publications of one timeline.
struct AwaitedPublications {
  AwaitedList list;                             // under the server's mutex
  std::atomic<AwaitedServer*> server{nullptr};  // null while the list is empty
};

}  // namespace uptempo::detail
