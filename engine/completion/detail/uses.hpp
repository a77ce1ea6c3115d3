// Uses: the last publication of each queue that uses a resource. The resource is free when all of
// them are complete. Private: the templates of Launcher need it.
//
// Thread safety: thread-compatible.
// Cost: one entry for each queue that has ever used the resource; queues are few.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <uptempo/completion/completion.hpp>

namespace uptempo::detail {

class Uses {
 public:
  // Makes room for uses by so many more queues. Throws std::bad_alloc.
  void expect(size_t queues);
  // The publication, which may not have begun yet, uses the resource, too. Requires room, unless
  // its queue has used the resource before.
  void add(const Completion& use) noexcept {
    for (Completion& each : last_) {
      if (timeline_of(each) != timeline_of(use)) continue;
      if (each.value() < use.value()) each = use;
      return;
    }
    last_.push_back(use);
  }
  bool includes(const Timeline& queue) const noexcept {
    for (const Completion& each : last_)
      if (timeline_of(each) == &queue) return true;
    return false;
  }
  // Never true if one of the publications is lost.
  bool are_over() const noexcept;
  std::optional<Completion> unfinished() const noexcept;
  // One use for each queue.
  const std::vector<Completion>& each() const noexcept { return last_; }
  void clear() noexcept { last_.clear(); }

 private:
  std::vector<Completion> last_;
};

}  // namespace uptempo::detail
