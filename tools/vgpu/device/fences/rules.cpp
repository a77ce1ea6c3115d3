#include "device/fences/rules.hpp"

#include <bit>

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

// Whether L2 may hide the write, which no release of system scope covers, from memory. With several
// L2s a release of agent scope writes back to memory, too.
bool hidden_in_l2(const Task& writer, const View& view, MemoryType type) noexcept {
  return l2_holds_dirty(type) && !(l2s_differ(type) && view.released_agent.contains(writer.id));
}

// Bytes of `writer` that no release covers are in the L2s of the XCDs on which it wrote them.
bool hidden_in_another_l2(const Task& writer, Residency at_write, const Task& other,
                          Paths paths) noexcept {
  const bool one_l2 = at_write.l2s == paths.l2s && std::has_single_bit(paths.l2s);
  return l2s_differ(at_write.type) && !one_l2 && !other.view.released_agent.contains(writer.id);
}

bool has(uint8_t agents, uint32_t agent) noexcept { return (agents >> agent & 1) != 0; }

// Whether the reader's L2 may have kept the old bytes, if no acquire of system scope came between.
// `acquired`: one of agent scope did, which invalidates several L2s.
bool old_in_l2(Residency at_write, const Task& reader, bool acquired, MemoryType type) noexcept {
  const bool probed = at_write.probes && type == MemoryType::read_write;  // the reader's own memory
  return !(acquired && reader.several_l2s) && has(at_write.l2, reader.agent) &&
         l2_goes_stale(type) && !probed;
}

// A read by a dispatch of bytes that a dispatch of another agent wrote.
Violation judge_read_of_another_agent(const Task& writer, Residency at_write, const Task& reader,
                                      bool acquired, bool in_l1, MemoryType type) noexcept {
  const bool released = reader.view.released_system.contains(writer.id);
  const bool hidden = !released && hidden_in_l2(writer, reader.view, at_write.type);
  // Without a release of system scope, `visible` does not tell whether an acquire was of system
  // scope. Only gfx942 writes back without it, and there agent scope suffices for L2.
  const bool old = (released || !acquired) && old_in_l2(at_write, reader, acquired, type);
  return {Finding::Class::stale, hidden || in_l1 || old,
          released ? "no acquire of system scope is between the release of the write and the read "
                     "by another GPU"
                   : "no release of system scope by the writer's GPU covers the write that another "
                     "GPU reads",
          kFences};
}

}  // namespace

std::optional<Violation> judge_read(const Task& writer, Residency at_write, const Task& reader,
                                    Paths paths, MemoryType type) {
  const View& view = reader.view;
  if (!view.ordered.contains(writer.id))
    return Violation{Finding::Class::unordered, true,
                     "nothing orders the read after the write: no barrier bit, no dependency, no "
                     "wait by the host",
                     kOrder};
  if (!is_dispatch(reader)) {
    // The host and SDMA engines access memory directly.
    if (!is_dispatch(writer) || view.released_system.contains(writer.id)) return std::nullopt;
    return Violation{Finding::Class::stale, hidden_in_l2(writer, view, at_write.type),
                     reader.kind == Task::Kind::host
                         ? "no release of system scope covers the write that the host reads"
                         : "no release of system scope covers the write that the copy engine reads",
                     kFences};
  }
  const Acquired& known = view.of(reader.agent);
  if (known.visible.contains(writer.id)) return std::nullopt;
  const bool acquired = known.l1_clean.contains(writer.id);
  const bool in_l1 = !acquired && ((has(at_write.vector_l1, reader.agent) && paths.vector) ||
                                   (has(at_write.scalar_l1, reader.agent) && paths.scalar));
  if (is_dispatch(writer) && writer.agent != reader.agent)
    return judge_read_of_another_agent(writer, at_write, reader, acquired, in_l1, type);
  if (is_dispatch(writer)) {
    std::string_view reason =
        "no release of agent scope or wider covers the write before the acquire";
    if (!acquired)
      reason = "neither a release nor an acquire of agent scope or wider is between the two";
    if (view.released_agent.contains(writer.id))
      reason =
          "no acquire of agent scope or wider is between the release of the write and the read";
    return Violation{Finding::Class::stale,
                     in_l1 || hidden_in_another_l2(writer, at_write, reader, paths), reason,
                     kFences};
  }
  return Violation{Finding::Class::stale, in_l1 || old_in_l2(at_write, reader, acquired, type),
                   writer.kind == Task::Kind::host
                       ? "no acquire of system scope is between the host's store and the read"
                       : "no acquire of system scope is between the copy and the read",
                   kFences};
}

std::optional<Violation> judge_overwrite(const Task& earlier, Residency at_write, const Task& later,
                                         Paths paths) {
  if (perhaps_ahead_of(later, earlier)) return std::nullopt;
  if (!later.view.ordered.contains(earlier.id))
    return Violation{
        Finding::Class::unordered, true,
        "nothing orders the two writes: no barrier bit, no dependency, no wait by the host",
        kOrder};
  if (!is_dispatch(earlier)) return std::nullopt;
  if (is_dispatch(later) && later.agent == earlier.agent) {
    if (!hidden_in_another_l2(earlier, at_write, later, paths)) return std::nullopt;
    return Violation{
        Finding::Class::stale, true,
        "no release of agent scope or wider covers the earlier write, which the L2 of another XCD "
        "may write back over the later one",
        kFences};
  }
  if (later.view.released_system.contains(earlier.id)) return std::nullopt;
  return Violation{
      Finding::Class::stale, hidden_in_l2(earlier, later.view, at_write.type),
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
      Finding::Class::unreleased, hidden_in_l2(writer, host, type),
      "a completion signal announced the write, and no release of system scope has covered it",
      kCompletion};
}

}  // namespace uptempo::vgpu::fences
