// The part of the sort that runs on the rank's GPU: sorting chunks, and merging what other ranks
// have sent.
//
// Every function puts copies and kernels on a stream and returns at once. The caller polls the
// events and makes MPI progress meanwhile. Chunks are sorted on one stream and runs are merged on
// another, so that both run at once where the GPU has room.
//
// Errors: Error if the device fails, or is out of memory.
// Thread safety: one owner.
// Lifetime: within that of the agent's Runtime. Pinned memory must live until the event is ready.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <uptempo/uptempo.hpp>
#include "intervals.hpp"
#include "merge_plan.hpp"

namespace uptempo::sample_sort {

// Work that has been put on a stream.
struct Work {
  TimedEvent begin, end;
  bool ready() const { return end.ready(); }
  // Only after ready().
  Interval interval() const;
};

class GpuSorter {
 public:
  // For chunks of up to `chunk_keys` keys. `expected_keys` is the number of keys that will be
  // merged; the buffers grow if there are more.
  GpuSorter(const Agent& gpu, uint64_t chunk_keys, uint64_t expected_keys);

  // Sorts a chunk of pinned memory, in place.
  Work sort(std::span<uint32_t> chunk);

  // Copies a round's runs from pinned memory to the device, and executes the merges. `copied` is
  // ready as soon as the pinned memory may be written again.
  Work merge(std::span<const uint32_t> runs, uint64_t first, std::span<const Merge> merges,
             Event& copied);
  // Executes the merges and copies side `side` to pinned memory.
  Work merge_to(std::span<uint32_t> result, uint32_t side, std::span<const Merge> merges);

  // Makes the device fail: a kernel writes to an address that it cannot access.
  Event fault();

  // The device's clock now.
  int64_t now_ns();

 private:
  void reserve(uint64_t keys);
  void launch(const Merge& merge);

  Streams streams_;
  Stream sorting_, merging_, clock_;
  Kernel<uint32_t*, uint32_t, uint32_t, uint32_t> sort_kernel_;
  Kernel<const uint32_t*, uint32_t, const uint32_t*, uint32_t, uint32_t*> merge_kernel_;
  DeviceBuffer<uint32_t> chunk_;
  DeviceBuffer<uint32_t> sides_[2];
  uint64_t used_ = 0;  // keys on the sides so far
};

}  // namespace uptempo::sample_sort
