// The memory that a queue's packets refer to. The device may touch it until the packet is complete,
// or until the queue is destroyed.
#pragma once

#include <hsa/hsa.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace uptempo::faults {

// References of the dispatches in a range of a queue's indices, read from its ring. The range must
// not be longer than the ring.
class PacketReferences {
 public:
  void add(const hsa_queue_t& queue, uint64_t begin, uint64_t end);
  // All that the queue was ever given.
  static PacketReferences of(const hsa_queue_t& queue);

  bool empty() const { return kernargs_.empty() && signals_.empty(); }
  // Returns a sentence for each block or signal that `others` use as well, and for each block whose
  // bytes are no longer those that add() found. Reads the blocks.
  std::string misuse(const PacketReferences& others) const;
  // "2 blocks, 2 signals"
  std::string text() const;

 private:
  // The first line of each block: the pools' blocks are whole lines (kernarg_pool.hpp).
  using Line = std::array<std::byte, 64>;
  std::map<uint64_t, Line> kernargs_;
  std::set<uint64_t> signals_;
};

}  // namespace uptempo::faults
