// Sets of tasks known to have happened before, one per actor.
//
// An actor is a compute queue, an SDMA queue or the host. Its tasks (packets, copies, groups of
// host stores) are numbered from 0. A Clock holds the set of included tasks of each actor; it only
// grows. Complete tasks mostly form a prefix, so an actor's set is a prefix and a few later tasks
// whose signals were seen to complete early.
//
// Thread safety: none; a value type.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace uptempo::vgpu::fences {

using ActorId = uint32_t;

// The host has the first number; queues follow in order of creation.
inline constexpr ActorId kHost = 0;

struct TaskId {
  ActorId actor = kHost;
  uint64_t index = 0;
  bool operator==(const TaskId&) const = default;
};

// Tasks of one actor.
class Progress {
 public:
  bool contains(uint64_t index) const noexcept {
    return index < below_ || std::binary_search(beyond_.begin(), beyond_.end(), index);
  }
  // Adds all tasks with a smaller index.
  void add_below(uint64_t index) {
    if (index <= below_) return;
    below_ = index;
    absorb();
  }
  void add(uint64_t index) {
    if (contains(index)) return;
    beyond_.insert(std::lower_bound(beyond_.begin(), beyond_.end(), index), index);
    absorb();
  }
  void join(const Progress& other) {
    if (other.beyond_.empty() && other.below_ <= below_) return;
    below_ = std::max(below_, other.below_);
    if (!other.beyond_.empty()) {
      const auto middle = static_cast<ptrdiff_t>(beyond_.size());
      beyond_.insert(beyond_.end(), other.beyond_.begin(), other.beyond_.end());
      std::inplace_merge(beyond_.begin(), beyond_.begin() + middle, beyond_.end());
      beyond_.erase(std::unique(beyond_.begin(), beyond_.end()), beyond_.end());
    }
    absorb();
  }

 private:
  // Moves tasks that continue the prefix into it.
  void absorb() {
    size_t absorbed = 0;
    for (; absorbed < beyond_.size() && beyond_[absorbed] <= below_; ++absorbed)
      below_ = std::max(below_, beyond_[absorbed] + 1);
    beyond_.erase(beyond_.begin(), beyond_.begin() + static_cast<ptrdiff_t>(absorbed));
  }

  uint64_t below_ = 0;
  std::vector<uint64_t> beyond_;  // sorted, all greater than below_
};

class Clock {
 public:
  bool contains(const TaskId& task) const noexcept {
    return task.actor < actors_.size() && actors_[task.actor].contains(task.index);
  }
  void add(const TaskId& task) { at(task.actor).add(task.index); }
  // Adds all tasks of `actor` with an index below `index`.
  void add_below(ActorId actor, uint64_t index) {
    if (index != 0) at(actor).add_below(index);
  }
  void join(const Clock& other) {
    if (other.actors_.size() > actors_.size()) actors_.resize(other.actors_.size());
    for (size_t actor = 0; actor < other.actors_.size(); ++actor)
      actors_[actor].join(other.actors_[actor]);
  }
  // Joins only the tasks of actors for which `chosen(actor)` holds.
  template <typename Chosen>
  void join_if(const Clock& other, Chosen chosen) {
    if (other.actors_.size() > actors_.size()) actors_.resize(other.actors_.size());
    for (size_t actor = 0; actor < other.actors_.size(); ++actor)
      if (chosen(static_cast<ActorId>(actor))) actors_[actor].join(other.actors_[actor]);
  }

 private:
  Progress& at(ActorId actor) {
    if (actor >= actors_.size()) actors_.resize(actor + 1);
    return actors_[actor];
  }
  std::vector<Progress> actors_;
};

}  // namespace uptempo::vgpu::fences
