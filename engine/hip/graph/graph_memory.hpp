// The memory that copies and fills of an imported graph access, by address. Private to engine/hip.
//
// HIP's copies take any address. ROCr tells what is there: memory of this device, or host memory
// that is allocated pinned, registered or managed. Any other address is pageable host memory, which
// the graph pins for its life. ROCr unpins by address alone, so pins of a graph do not overlap: the
// ranges of one call of pin() are merged by pages, and a later range that is partly pinned is
// refused.
//
// Thread safety: thread-compatible.
// Lifetime: the destructor unpins, so replays must have ended. After the end of the Runtime it does
// nothing.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <uptempo/memory/host_pin.hpp>
#include <uptempo/runtime/agent.hpp>

namespace uptempo::hip {

// Bytes that a node reads or writes.
struct GraphRange {
  const void* data = nullptr;
  size_t bytes = 0;
  std::string node{};  // for errors: "the source of node 3 (memcpy)"
};

class GraphMemory {
 public:
  explicit GraphMemory(const Agent& gpu) : gpu_(gpu) {}

  // Pins the pageable ones. Throws Error for memory of another device, for a range that leaves its
  // allocation, and for memory that cannot be pinned. Earlier pins stay.
  void pin(std::span<const GraphRange> ranges);
  // Where the device finds a range that pin() has accepted.
  void* device_address(const GraphRange& range) const;

  // Keeps all pins until the end of the Runtime, because work in flight may still use them.
  void leave_to_session() noexcept;

 private:
  const Agent gpu_;
  std::vector<HostPin> pins_;
};

}  // namespace uptempo::hip
