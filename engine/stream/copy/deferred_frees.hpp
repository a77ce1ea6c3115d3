// Buffers that are given back when the work put on a stream before is complete. Private to engine/stream.
//
// Giving memory back is a system call, so it happens only where its stream, or all streams, wait: Stream::free(), synchronize() and the destructor of the same stream, and
// Streams::synchronize(). Never in a launch, and never in the synchronize() of another stream.
//
// Thread safety: every function from any thread; no lock is held while memory is given back.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "engine/memory/pool.hpp"
#include "engine/stream/event/event.hpp"

namespace uptempo::detail {

class DeferredFrees {
 public:
  DeferredFrees() = default;
  ~DeferredFrees();
  DeferredFrees(const DeferredFrees&) = delete;
  DeferredFrees& operator=(const DeferredFrees&) = delete;

  void add(const void* stream, const Event& after, Allocation&& memory);
  // Gives back what is due of one stream, or of all with null.
  void give_back(const void* stream) noexcept;
  // The stream has gone: what it leaves belongs to nobody.
  void orphan(const void* stream) noexcept;
  size_t size() noexcept;

 private:
  struct Item {
    const void* stream;
    Event after;
    Allocation memory;
  };
  std::mutex mutex_;
  std::vector<Item> items_;
};

}  // namespace uptempo::detail
