// What an experiment is made on: dispatches and copies in one or two queues, as data. Built-in workloads and the user's own (program_file.hpp) are the same.
//
// Which barrier bits and fence scopes its packets have is no part of it: that is what experiments vary.
//
// Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "aql/packet.hpp"
#include "engine/fences/fence_rules.hpp"
#include "engine/program/grid.hpp"
#include "engine/runtime/agent.hpp"
#include "tools/support/program.hpp"

namespace uptempo::fence_scope {

// Device memory; host memory, coarse- and fine-grained.
enum class BufferKind : uint8_t { device, coarse, fine };

struct Buffer {
  std::string name;
  uint64_t bytes = 0;
  BufferKind kind = BufferKind::device;
  std::vector<std::byte> initial{};  // repeated to the end of the buffer before each run; empty: zeros
};

// Bytes [begin, begin + bytes) of a buffer.
struct Access {
  size_t buffer = 0;
  uint64_t begin = 0, bytes = 0;
  bool writes = false;
};

struct Argument {
  enum class Kind : uint8_t { value, address, local } kind = Kind::value;
  std::vector<std::byte> value{};  // of `value`: as many bytes as the parameter has
  size_t buffer = 0;               // of `address`: that of byte `begin` of a buffer
  uint64_t begin = 0;
  uint32_t local_bytes = 0;  // of `local`: the size of a dynamic LDS array
};

struct Step {
  enum class Kind : uint8_t { dispatch, copy } kind = Kind::dispatch;
  std::string name;    // as reports have it: "pass 3.1", "add"
  uint32_t queue = 0;  // of dispatches: 0 or 1
  // Earlier steps that must be complete: steps of the other queue and copies, by a barrier-AND packet ahead of a dispatch; any, by dependency signals of a copy.
  std::vector<size_t> after{};
  // Of dispatches, and all of them; bytes that are read and written, as both.
  std::vector<Access> accesses{};
  // Of dispatches
  std::string kernel{};
  Grid grid{1};
  std::vector<Argument> arguments{};  // explicit ones, in the order of the kernel's parameters
  // Of copies, by a copy engine: as many bytes; at least one of the two is device memory
  Access from{}, to{};
};

struct Sequence {
  std::string name;
  std::string description;               // one line
  std::vector<std::byte> code_object{};  // empty: the project's own kernels
  std::vector<Buffer> buffers;
  std::vector<Step> steps;  // each queue's in its order

  // Indices of the steps that are dispatches of a queue: its packets, but for barrier-AND packets.
  std::vector<size_t> dispatches(uint32_t queue) const;
};

// Of each dispatch in the order of `steps`; copies have none, and take a place all the same.
using Headers = std::vector<aql::HeaderFlags>;

// What is wrong with a sequence, and where: "steps[2].arguments[1]: ...".
struct SequenceError : support::UsageError {
  SequenceError(size_t step, const std::string& field, const std::string& text);
};

// Throws SequenceError unless it can be carried out on some device: ranges lie in their buffers, steps wait for earlier ones only, copies are between host and
// device. Whether kernels exist and take these arguments, the bench finds out.
void require_valid(const Sequence& sequence);

// A barrier bit and system scopes on every dispatch.
Headers everywhere(const Sequence& sequence);

// Headers with few fences, each with its reasons.
struct PlannedHeaders {
  Headers headers;  // as Headers are
  std::vector<PlanReasons>
      reasons;  // of each step, in words: "it reads what the packet before it wrote"; empty for copies
};
// A FencePlan for each queue, which is told who else looks: copies, and dispatches of the other queue. On top of it, dispatches that wait acquire what they wait for, at
// system scope if it was a copy's. In one queue without copies nothing is cheaper, as far as FencePlan searches; over several what is planned is right and, up to 64 steps,
// without a barrier bit between packets that signals order already, but may have some fences too many. `agent`: some targets need less than others; null is correct on all.
PlannedHeaders plan(const Sequence& sequence, const Agent* agent = nullptr);

}  // namespace uptempo::fence_scope
