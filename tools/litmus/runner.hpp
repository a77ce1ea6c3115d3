// Carries litmus tests out on a GPU, packet by packet as the test says, with nothing added but what stands around it:
//   ahead      cells get their initial words and kernarg blocks their contents, all work is complete, and a barrier packet with system
//              scopes empties the caches
//   a gate     a barrier-AND packet without fences at the head of each publication, and one more dependency of each copy
//   chance     kernels last, the host waits, and copies depend on a kernel in a queue of its own, for times that vary with the iteration
//   behind     barrier packets with system scopes end whatever the test left unfinished
//
// Thread safety: one owner. Lifetime: within that of the Runtime. Cost: memory, signals and queues are made once and used by all tests.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/runtime/agent.hpp"
#include "tools/litmus/litmus.hpp"

namespace uptempo::litmus {

// Where a step ended up.
struct Placement {
  uint64_t packet_index = 0;  // of packets, in their queue
};

struct Run {
  std::vector<std::vector<uint32_t>> outcome;  // [load][word], as sequential_outcome()
  std::vector<Placement> placement;            // [step]
};

class Runner {
 public:
  // Throws Error.
  explicit Runner(const Agent& gpu);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Throws std::invalid_argument for a test that is for the rules alone. `iteration` decides what is left to chance. Throws Error if a step is not complete within ten seconds: the device has stopped, or the test
  // waits for itself.
  Run run(const Test& test, uint64_t iteration);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::litmus
