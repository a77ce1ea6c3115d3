// The subject of an experiment: dispatches and copies in one or two queues, as data. Built-in
// workloads and program files (program_file.hpp) both produce one.
//
// Barrier bits and fence scopes are not part of a sequence: experiments vary them.
//
// Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/fences/fence_plan.hpp>
#include <uptempo/program/grid.hpp>
#include <uptempo/runtime/agent.hpp>
#include "tools/litmus/rules.hpp"
#include "tools/support/program.hpp"

namespace uptempo::fence_scope {

// The most of a sequence. A run of so many steps takes minutes on the virtual GPU.
inline constexpr size_t kMostSteps = 32'768, kMostBuffers = 1024;

// Device memory; coarse-grained and fine-grained host memory.
using BufferKind = litmus::CellKind;

struct Buffer {
  std::string name;
  uint64_t bytes = 0;
  BufferKind kind = BufferKind::device_local;
  // repeated to the end of the buffer before each run; empty: zeros
  std::vector<std::byte> initial{};
};

// Bytes [begin, begin + bytes) of a buffer.
struct Access {
  size_t buffer = 0;
  uint64_t begin = 0, bytes = 0;
  bool writes = false;
};

struct Argument {
  enum class Kind : uint8_t { value, address, local } kind = Kind::value;
  std::vector<std::byte> value{};  // for `value`: as many bytes as the parameter has
  size_t buffer = 0;               // for `address`: byte `begin` of a buffer
  uint64_t begin = 0;
  uint32_t local_bytes = 0;  // for `local`: size of a dynamic LDS array
};

struct Step {
  enum class Kind : uint8_t { dispatch, copy } kind = Kind::dispatch;
  std::string name;    // name in reports, for example "pass 3.1" or "add"
  uint32_t queue = 0;  // dispatches only: 0 or 1
  // Earlier steps that must be complete. A dispatch waits for steps of the other queue and copies,
  // by a barrier-AND packet; a copy waits for any step, by dependency signals.
  std::vector<size_t> after{};
  // All accesses of a dispatch. Bytes that it reads and writes are listed twice.
  std::vector<Access> accesses{};
  // Dispatches only
  std::string kernel{};  // as Program::kernel takes it
  Grid grid{1};
  std::vector<Argument> arguments{};  // explicit arguments, in the order of the kernel's parameters
  // Copies only, by a copy engine: equal sizes; at least one of the two is device memory
  Access from{}, to{};
};

struct Sequence {
  std::string name;
  std::string description;               // one line
  std::vector<std::byte> code_object{};  // empty: the project's own kernels
  std::vector<Buffer> buffers;
  std::vector<Step> steps;  // in the order of each queue
  // The agent's caches, for which hazards are judged possible.
  litmus::CacheRules caches = litmus::CacheRules::gfx9;

  // Indices of the dispatches of a queue: its packets except barrier-AND packets.
  std::vector<size_t> dispatches(uint32_t queue) const;
};

// Returns what a step reads and writes, also that of a copy.
std::vector<Access> accesses_of(const Step& step);

// One element per step; those of copies are unused.
using Headers = std::vector<aql::HeaderFlags>;

// An invalid sequence. The text names the place: "steps[2].arguments[1]: ...".
struct SequenceError : support::UsageError {
  SequenceError(size_t step, const std::string& field, const std::string& text);
};

// Throws SequenceError unless some device can run the sequence: ranges are inside their buffers,
// steps wait for earlier ones only, copies are between host and device. The bench checks whether
// kernels exist and take these arguments.
void require_valid(const Sequence& sequence);

// A barrier bit and system scopes on every dispatch.
Headers everywhere(const Sequence& sequence);

// Headers with few fences, and the reasons for each.
struct PlannedHeaders {
  Headers headers;  // one element per step
  std::vector<PlanReasons>
      // per step, for example "it reads what the packet before it wrote"; empty for copies
      reasons;
};
// Plans each queue by a FencePlan that knows its outside observers: copies, and dispatches of the
// other queue. In addition, a dispatch that waits for others acquires their writes, at system scope
// if it waits for a copy. In one queue without copies no correct plan has fewer system fences or
// barrier bits. Over several queues the plan is correct but may have some fences too many. Up to 64
// steps it has no barrier bit between packets that signals already order. `agent`: some targets
// need fewer fences; null is correct on all.
PlannedHeaders plan(const Sequence& sequence, const Agent* agent = nullptr);

}  // namespace uptempo::fence_scope
