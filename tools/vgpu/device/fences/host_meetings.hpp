// The threads of the host with which dispatches have synchronised while they ran.
//
// A kernel and a thread can hand data to each other in coherent host memory, which neither L2 nor
// the processor's caches hide: a call of the host by printf, a mailbox, a flag. Page faults show
// only a thread's first access to a page, so a thread meets a dispatch where it accesses a page of
// this memory in which the dispatch has an atomic access, or an access of agent scope or wider, and
// packets do not order the two. The thread's other accesses to this memory are then assumed to be
// ordered with those of the dispatch, as a pair. Other threads, such as one that reads a result
// without a wait, are not part of the protocol.
//
// Thread safety: none; the checker's lock guards it.
#pragma once

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/fences/event.hpp"
#include "device/fences/finding.hpp"
#include "device/host/host_events.hpp"

namespace uptempo::vgpu::fences {

class HostMeetings {
 public:
  // A task of the host accesses the page.
  void accessed(const Task& host, GpuAddress page) { last_[{page, host.thread}] = host.id; }
  // The task has met the thread.
  void meet(const TaskId& dispatch, uint64_t thread) { met_[thread].add(dispatch); }
  // The dispatch has ended, with these accesses. `view`: what packets order before it.
  void ended(const TaskId& dispatch, const View& view, const std::vector<TouchedPage>& pages,
             bool may_meet_any_thread) {
    if (may_meet_any_thread) met_any_.add(dispatch);
    for (const TouchedPage& page : pages) {
      if (!is_coherent_host(page.kind) || page.accesses->synchronising == PageMask{}) continue;
      for (auto at = last_.lower_bound({page.page, 0});
           at != last_.end() && at->first.first == page.page; ++at)
        if (!view.ordered.contains(at->second)) meet(dispatch, at->first.second);
    }
  }
  bool have_met(const Task& one, const Task& other) const {
    if (one.kind == Task::Kind::host) return other.kind != Task::Kind::host && have_met(other, one);
    if (one.kind != Task::Kind::dispatch || other.kind != Task::Kind::host) return false;
    const auto found = met_.find(other.thread);
    return met_any_.contains(one.id) || (found != met_.end() && found->second.contains(one.id));
  }
  // The range is about to be unmapped.
  void forget(GpuAddress begin, GpuAddress end) {
    last_.erase(last_.lower_bound({page_of(begin), 0}), last_.lower_bound({end, 0}));
  }

 private:
  std::map<std::pair<GpuAddress, uint64_t>, TaskId> last_;  // by page and thread
  std::unordered_map<uint64_t, Clock> met_;                 // by thread
  Clock met_any_;
};

}  // namespace uptempo::vgpu::fences
