// A list of awaited publications (completion_thread.hpp). Private to engine/completion.
#pragma once

#include <uptempo/completion/detail/awaited.hpp>

namespace uptempo::detail {

class AwaitedList {
 public:
  Awaited* first() const noexcept { return first_; }
  // Inserts after all items with no higher value. Values grow, so this is usually the end.
  void insert(Awaited& item) noexcept {
    Awaited* before = last_;
    while (before != nullptr && before->publication.value() > item.publication.value())
      before = before->before;
    insert_after(before, item);
  }
  void push_back(Awaited& item) noexcept { insert_after(last_, item); }
  void erase(Awaited& item) noexcept {
    (item.before == nullptr ? first_ : item.before->after) = item.after;
    (item.after == nullptr ? last_ : item.after->before) = item.before;
  }

 private:
  void insert_after(Awaited* before, Awaited& item) noexcept {
    item.before = before;
    item.after = before == nullptr ? first_ : before->after;
    (item.before == nullptr ? first_ : item.before->after) = &item;
    (item.after == nullptr ? last_ : item.after->before) = &item;
  }

  Awaited* first_ = nullptr;
  Awaited* last_ = nullptr;
};

}  // namespace uptempo::detail
