// The rules: when one access may miss, or overtake, another one.
//
// Pure functions over what is known of both; the sources of the rules stand beside them (rules.cpp) and in the folder's README.
//
// Thread safety: any thread.
#pragma once

#include <optional>

#include "device/caching.hpp"
#include "device/fences/finding.hpp"

namespace uptempo::vgpu::fences {

// Which caches may have held the line, with its old bytes, when a write was done.
struct Residency {
  bool vector_l1 = false;  // of a compute unit other than the writer's
  bool scalar_l1 = false;
  bool l2 = false;
  bool operator==(const Residency&) const = default;
};

// Through which caches a task read the line.
struct ReadPaths {
  bool vector = false;
  bool scalar = false;
  bool operator==(const ReadPaths&) const = default;
};

struct Violation {
  Finding::Class what;
  bool possible_on_target;
  std::string_view reason;
  std::string_view rule;
};

// A read by `reader` of bytes that `writer` wrote last. Nothing: it is ordered and visible. The tasks are different ones.
std::optional<Violation> judge_read(const Task& writer, Residency at_write, const Task& reader,
                                    ReadPaths paths, MemoryType type);

// A write by `later` over bytes that `earlier` wrote last.
std::optional<Violation> judge_overwrite(const Task& earlier, const Task& later, MemoryType type);

// A write by `writer` over bytes that `reader` read.
std::optional<Violation> judge_write_after_read(const Task& reader, const Task& writer);

// What a completion has announced to the host, and what it has not released: `host` is what the host may rely on.
std::optional<Violation> judge_announced(const Task& writer, const View& host, MemoryType type);

}  // namespace uptempo::vgpu::fences
