// The built-in sequences, over the project's kernels, each with all accesses declared.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

// What `sweep` varies; 0 stands for the workload's own choice.
struct Shape {
  uint32_t kernels = 0;
  uint64_t bytes_per_kernel = 0;   // that a kernel writes
  uint64_t working_set_bytes = 0;  // device memory that all of them touch
  friend bool operator==(const Shape&, const Shape&) = default;
};

struct Workload {
  std::string name;
  std::string description;  // one line
};
// In the order in which they are listed:
//   bitonic-sort        a sort of bytes_per_kernel / 4 keys, in place; `kernels` ends it early
//   chain               each kernel reads all that the one before wrote; outputs take turns in the working set
//   independent         kernels that touch nothing of one another's
//   producer-consumer   queue 0 fills slots, queue 1 folds them into a result, with signals both ways; `kernels` is even, the working set are the slots and the result
//   copy-kernel-copy    in by a copy engine, a chain of kernels, out by a copy engine
//   empty               kernels that do nothing
const std::vector<Workload>& workloads();

// The shape that is meant. Throws support::UsageError for a name that does not exist, and for a shape that the workload cannot have, saying what it can.
Shape resolve(std::string_view workload, Shape shape = {});
// Throws as resolve().
Sequence make_workload(std::string_view workload, Shape shape = {});

}  // namespace uptempo::fence_scope
