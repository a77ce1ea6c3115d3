// Records a run as the fence checker saw it, so that it can be judged again.
//
// Programs do the same to many pages. Pages with the same past behave alike, whatever the packets'
// headers, so the journal keeps one page of each kind with their number. Two pages have the same
// past if the same events did the same to them, byte by byte. The host's accesses to several pages
// between two events of the device count as one event, provided the host's knowledge was the same
// each time.
//
// Limitation: the journal does not keep which of several alike pages the host accessed first. This
// matters where a dispatch meets the host at an atomic (judge.hpp), because the dispatch then comes
// after the host's earlier accesses. A finding may then be missing (in 20 of 192,000 random
// programs).
//
// Thread safety: none; the checker's lock guards it.
// Cost: a hash of 1.6 KB for each page that an event touches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "device/fences/event.hpp"

namespace uptempo::vgpu::fences {

// The Journal owns the pages' accesses.
struct Recording {
  std::vector<Event> events;  // all events, each with the pages that were kept
  std::unordered_map<GpuAddress, uint64_t> page_count;  // how many pages each kept page represents
};

class Journal {
 public:
  explicit Journal(size_t limit_bytes = kLimitBytes) : limit_bytes_(limit_bytes) {}
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void add(const Event& event);

  // The run was too long; nothing of it is kept.
  bool overflowed() const noexcept { return overflowed_; }

  // Call once, at the end.
  Recording recording();

  static constexpr size_t kLimitBytes = size_t{256} << 20;

 private:
  struct Hash {
    size_t operator()(const PageAccesses& accesses) const noexcept;
  };
  // An event's accesses to pages that had the same past before it.
  struct Node {
    uint32_t parent;  // kNone: nothing before
    uint32_t event;   // the first of the events that count as one
    MemoryKind kind;
    const PageAccesses* accesses;
  };
  struct Key {
    uint32_t parent;
    size_t what;
    uint64_t known;
    uint64_t thread;  // of the host
    MemoryKind kind;
    const PageAccesses* accesses;
    auto operator<=>(const Key&) const = default;
  };
  static constexpr uint32_t kNone = ~0u;

  void touch(GpuAddress page, size_t what, uint64_t known, uint64_t thread, MemoryKind kind,
             const PageAccesses* accesses);
  const PageAccesses* intern(const PageAccesses* accesses);
  uint64_t known_at(uint64_t host_ns) const;
  void grow(size_t bytes);

  const size_t limit_bytes_;
  size_t bytes_ = 0;
  bool overflowed_ = false;
  std::vector<Event> events_;
  std::unordered_set<PageAccesses, Hash> contents_;
  std::vector<Node> nodes_;
  std::map<Key, uint32_t> present_;       // nodes of the event to which pages are being added
  std::map<GpuAddress, uint32_t> pages_;  // the last node of each
  std::vector<std::pair<uint32_t, GpuAddress>> of_host_;  // the host's events, and their pages
  // when packets and copies completed signals
  std::vector<uint64_t> announcements_ns_;
  uint64_t known_ = 0;  // how many of them the host is assumed to know
};

}  // namespace uptempo::vgpu::fences
