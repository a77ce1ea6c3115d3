// Runs litmus tests on a GPU, packet by packet as written. The runner adds:
//   before     initialises cells and kernarg blocks, completes all work and empties the caches by a
//              barrier packet with system scopes
//   gate       a barrier-AND packet without fences at the start of each publication, and one more
//              dependency of each copy
//   delays     kernels, the host, and a kernel in a separate queue that copies wait for take a time
//              that varies with the iteration
//   after      barrier packets with system scopes complete what the test left unfinished
//
// Thread safety: one owner.
// Lifetime: within that of the Runtime.
// Cost: all tests share memory, signals and queues, which are created once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <uptempo/memory/buffer.hpp>
#include <uptempo/runtime/agent.hpp>
#include "tools/litmus/litmus.hpp"

namespace uptempo::litmus {

// The memory that has cells of this kind.
MemoryKind memory_kind(CellKind kind) noexcept;

// Where a step was published.
struct Placement {
  uint64_t packet_index = 0;  // packets only: index in their queue
};

struct Run {
  std::vector<std::vector<uint32_t>> outcome;  // [load][word], as in sequential_outcome()
  std::vector<Placement> placement;            // [step]
};

class Runner {
 public:
  // Throws Error.
  explicit Runner(const Agent& gpu);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Runs a test. `iteration` determines the delays.
  // Errors: std::invalid_argument for a test with declared accesses; Error if a step is not
  // complete within a minute, because the device has stopped or the test waits for itself.
  Run run(const Test& test, uint64_t iteration);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::litmus
