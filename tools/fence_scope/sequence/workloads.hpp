// The built-in sequences over the project's kernels, with all accesses declared.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

// Sizes that `sweep` varies; 0 selects the workload's own value.
struct Shape {
  uint32_t kernels = 0;
  uint64_t bytes_per_kernel = 0;   // bytes that a kernel writes
  uint64_t working_set_bytes = 0;  // device memory that all kernels together touch
  friend bool operator==(const Shape&, const Shape&) = default;
};

struct Workload {
  std::string name;
  std::string description;  // one line
  // The complete shape, or a support::UsageError without the workload's name; and the sequence of a
  // complete shape, without name and description.
  std::function<Shape(const Shape&)> shape;
  std::function<Sequence(const Shape&)> make;
};
// In listing order:
//   bitonic-sort        a sort of bytes_per_kernel / 4 keys, in place; `kernels` ends it early
//   chain               each kernel reads all output of the previous one; outputs take turns in the
//                       working set
//   independent         kernels without common memory
//   producer-consumer   queue 0 fills slots, queue 1 folds them into a result, with signals both
//                       ways; `kernels` is even, the working set are the slots and the result
//   copy-kernel-copy    in by a copy engine, a chain of kernels, out by a copy engine
//   empty               kernels that do nothing
const std::vector<Workload>& workloads();

// The complete shape. Throws support::UsageError for an unknown name, and for a shape that the
// workload does not support, naming the valid values.
Shape resolve(std::string_view workload, Shape shape = {});
// Throws as resolve().
Sequence make_workload(std::string_view workload, Shape shape = {});

}  // namespace uptempo::fence_scope
