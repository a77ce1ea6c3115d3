// The rules: when one access may miss or overtake another.
//
// Pure functions of what is known about both. rules.cpp and tools/vgpu/device/DESIGN.md give the
// sources.
//
// Thread safety: any thread.
#pragma once

#include <optional>

#include "device/caches/caching.hpp"
#include "device/fences/finding.hpp"

namespace uptempo::vgpu::fences {

// The caches that may have held the line, with its old bytes, at the time of a write, and how the
// writer reached memory.
struct Residency {
  // A bit per agent.
  uint8_t vector_l1 = 0;  // of a compute unit other than the writer's
  uint8_t scalar_l1 = 0;
  uint8_t l2 = 0;   // not the one of a dispatch that writes
  uint8_t l2s = 0;  // a bit per L2 through which the task wrote any byte of it; 0: not known
  MemoryType type = MemoryType::uncached;  // as the writer's agent has mapped it
  bool probes = false;  // the write invalidates clean copies in the L2 of the memory's owner
  bool operator==(const Residency&) const = default;
};

// The caches through which a task accessed the line.
struct Paths {
  bool vector = false;
  bool scalar = false;
  // A bit per L2 through which it read or wrote (whichever is judged) any byte of it; 0: not known.
  uint8_t l2s = 0;
  bool operator==(const Paths&) const = default;
};

struct Violation {
  Finding::Class what;
  bool possible_on_target;
  std::string_view reason;
  std::string_view rule;
};

// A read by `reader` of bytes that `writer` wrote last. Returns nothing when it is ordered and
// visible. The tasks must differ. `type`: as the reader's agent has mapped the memory.
std::optional<Violation> judge_read(const Task& writer, Residency at_write, const Task& reader,
                                    Paths paths, MemoryType type);

// A write by `later` over bytes that `earlier` wrote last.
std::optional<Violation> judge_overwrite(const Task& earlier, Residency at_write, const Task& later,
                                         Paths paths);

// A write by `writer` over bytes that `reader` read.
std::optional<Violation> judge_write_after_read(const Task& reader, const Task& writer);

// Writes that a completion has announced to the host but not released. `host`: what the host may
// rely on.
std::optional<Violation> judge_announced(const Task& writer, const View& host, MemoryType type);

}  // namespace uptempo::vgpu::fences
