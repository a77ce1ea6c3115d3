// DeferredFrees: buffers that are freed once the stream's earlier work is complete. Private to
// engine/stream.
//
// Freeing memory is a system call, so it happens only in calls that wait: Stream::free(),
// synchronize() and the destructor of the same stream, and Streams::synchronize(). A launch, or
// synchronize() of another stream, frees nothing.
//
// Thread safety: every function may be called from any thread. No lock is held while memory is
// freed.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>

#include "engine/memory/pool.hpp"
#include "engine/stream/event/event.hpp"

namespace uptempo::detail {

class DeferredFrees {
 public:
  DeferredFrees() = default;
  ~DeferredFrees();
  DeferredFrees(const DeferredFrees&) = delete;
  DeferredFrees& operator=(const DeferredFrees&) = delete;

  // Makes a place for one add(). Throws std::bad_alloc.
  void expect();
  // Requires expect().
  void add(const void* stream, const Event& after, Allocation&& memory) noexcept;
  // Frees the due buffers of one stream, or of all streams if null.
  void give_back(const void* stream) noexcept;
  // Call when the stream is destroyed. Its remaining buffers then belong to no stream.
  void orphan(const void* stream) noexcept;
  size_t size() noexcept;

 private:
  struct Item {
    const void* stream = nullptr;
    Event after;
    Allocation memory;
  };
  std::mutex mutex_;
  std::list<Item> items_, unused_;
};

}  // namespace uptempo::detail
