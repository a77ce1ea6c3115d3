// The awaited publications of a timeline, and their server. Private to engine/completion.
#pragma once

#include <atomic>

#include "engine/completion/detail/awaited.hpp"

namespace uptempo::detail {

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
