#include "device/fences/rules.hpp"

namespace uptempo::vgpu::fences {
namespace {

constexpr std::string_view kOrder =
    "HSA System Architecture 1.2, 2.9.1 (barrier bit) and 2.9.8 (dependencies)";
constexpr std::string_view kFences =
    "HSA System Architecture 1.2, 2.9.1 (acquire and release fence scope) and 3.4";
constexpr std::string_view kCompletion = "HSA System Architecture 1.2, 2.9.1 (release fence scope)";

bool is_dispatch(const Task& task) noexcept { return task.kind == Task::Kind::dispatch; }

// The host stored at some time between the opening and the closing of a page. Stores that are found
// after a task, which began while the page was open, may have been made before the task.
bool perhaps_ahead_of(const Task& host, const Task& task) noexcept {
  return host.kind == Task::Kind::host && task.view.ordered.contains(host.id);
}

}  // namespace

std::optional<Violation> judge_read(const Task& writer, Residency at_write, const Task& reader,
                                    ReadPaths paths, MemoryType type) {
  const View& view = reader.view;
  if (!view.ordered.contains(writer.id))
    return Violation{Finding::Class::unordered, true,
                     "nothing orders the read after the write: no barrier bit, no dependency, no "
                     "wait by the host",
                     kOrder};
  if (!is_dispatch(reader)) {
    // The host and SDMA engines access memory directly.
    if (!is_dispatch(writer) || view.released_system.contains(writer.id)) return std::nullopt;
    return Violation{Finding::Class::stale, l2_needs_fences(type),
                     reader.kind == Task::Kind::host
                         ? "no release of system scope covers the write that the host reads"
                         : "no release of system scope covers the write that the copy engine reads",
                     kFences};
  }
  if (view.visible.contains(writer.id)) return std::nullopt;
  const bool acquired = view.l1_clean.contains(writer.id);
  const bool in_l1 =
      !acquired && ((at_write.vector_l1 && paths.vector) || (at_write.scalar_l1 && paths.scalar));
  if (is_dispatch(writer)) {
    std::string_view reason =
        "no release of agent scope or wider covers the write before the acquire";
    if (!acquired)
      reason = "neither a release nor an acquire of agent scope or wider is between the two";
    if (view.released_agent.contains(writer.id))
      reason =
          "no acquire of agent scope or wider is between the release of the write and the read";
    return Violation{Finding::Class::stale, in_l1, reason, kFences};
  }
  return Violation{Finding::Class::stale, in_l1 || (at_write.l2 && l2_needs_fences(type)),
                   writer.kind == Task::Kind::host
                       ? "no acquire of system scope is between the host's store and the read"
                       : "no acquire of system scope is between the copy and the read",
                   kFences};
}

std::optional<Violation> judge_overwrite(const Task& earlier, const Task& later, MemoryType type) {
  if (perhaps_ahead_of(later, earlier)) return std::nullopt;
  if (!later.view.ordered.contains(earlier.id))
    return Violation{
        Finding::Class::unordered, true,
        "nothing orders the two writes: no barrier bit, no dependency, no wait by the host",
        kOrder};
  if (!is_dispatch(earlier) || is_dispatch(later) ||
      later.view.released_system.contains(earlier.id))
    return std::nullopt;
  return Violation{
      Finding::Class::stale, l2_needs_fences(type),
      "no release of system scope covers the earlier write, which may be written back over the "
      "later one",
      kFences};
}

std::optional<Violation> judge_write_after_read(const Task& reader, const Task& writer) {
  if (writer.view.ordered.contains(reader.id) || perhaps_ahead_of(writer, reader))
    return std::nullopt;
  return Violation{
      Finding::Class::unordered, true,
      "nothing orders the write after the read: no barrier bit, no dependency, no wait by the host",
      kOrder};
}

std::optional<Violation> judge_announced(const Task& writer, const View& host, MemoryType type) {
  if (!is_dispatch(writer) || !host.ordered.contains(writer.id) ||
      host.released_system.contains(writer.id))
    return std::nullopt;
  return Violation{
      Finding::Class::unreleased, l2_needs_fences(type),
      "a completion signal announced the write, and no release of system scope has covered it",
      kCompletion};
}

}  // namespace uptempo::vgpu::fences
