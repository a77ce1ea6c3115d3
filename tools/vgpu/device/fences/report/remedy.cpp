#include "device/fences/report/remedy.hpp"

#include "device/fences/report/finding_text.hpp"

namespace uptempo::vgpu::fences {
namespace {

using Kind = Task::Kind;

// "fill(int*)", "the copy", "the host"
std::string short_name(const Task& task) {
  switch (task.kind) {
    case Kind::host:
      return "the host";
    case Kind::copy:
      return "the copy";
    case Kind::dispatch:
      break;
  }
  return readable_kernel(task.name);
}

// The names of two tasks. If they are equal, each has its place: "fill(int*) (queue 1, packet 2)".
class Names {
 public:
  Names(const Task& one, const Task& other) : equal_(short_name(one) == short_name(other)) {}

  std::string operator()(const Task& task) const {
    std::string name = short_name(task);
    if (!equal_) return name;
    return name + " (queue " + std::to_string(task.queue) +
           (task.kind == Kind::copy ? ", offset " : ", packet ") + std::to_string(task.position) +
           ')';
  }

 private:
  const bool equal_;
};

std::string order_with_hip(const Task& first, const Task& second, const Names& name_of) {
  if (second.kind == Kind::host)
    return "let the host wait for " + name_of(first) +
           " with hipStreamSynchronize, hipEventSynchronize or hipDeviceSynchronize before it "
           "accesses the memory";
  if (first.kind == Kind::host)
    return "let the host access the memory before it launches " + name_of(second);
  return "use one stream for both, or call hipEventRecord on the stream of " + name_of(first) +
         " after it and hipStreamWaitEvent on the stream of " + name_of(second) +
         " before it, or hipDeviceSynchronize between them";
}

std::string order_with_hsa(const Task& first, const Task& second, const Names& name_of) {
  if (second.kind == Kind::host)
    return "let the host wait for the completion signal of " + name_of(first) +
           " (hsa_signal_wait_scacquire) before it accesses the memory";
  if (first.kind == Kind::host)
    return "let the host access the memory before it publishes " + name_of(second);
  if (second.kind == Kind::copy)
    return "pass the completion signal of " + name_of(first) +
           " as a dependency of the copy (hsa_amd_memory_async_copy)";
  const std::string barrier_and =
      "put a barrier-AND packet that depends on the completion signal of " + name_of(first) +
      " before " + name_of(second);
  if (first.kind == Kind::dispatch && first.id.actor == second.id.actor && !second.barrier)
    return "set the barrier bit of the packet of " + name_of(second) + ", or " + barrier_and;
  return barrier_and;
}

std::string fence_with_hip(const Finding& finding, const Names& name_of) {
  const Task& writer = *finding.writer;
  const Task& reader = *finding.reader;
  if (reader.kind == Kind::host || finding.what == Finding::Class::unreleased)
    return "wait with hipStreamSynchronize or hipDeviceSynchronize, or with an event that was "
           "created with hipEventReleaseToSystem and recorded after " +
           name_of(writer);
  return "call hipStreamSynchronize or hipDeviceSynchronize between " + name_of(writer) + " and " +
         name_of(reader) + ", or order them with an event (hipStreamWaitEvent)";
}

// Host, copy engines and other agents access memory past the caches of the agent.
bool needs_system(const Task& one, const Task& other) {
  return one.kind != Kind::dispatch || other.kind != Kind::dispatch || one.agent != other.agent;
}

std::string fence_with_hsa(const Finding& finding, const Names& name_of) {
  const Task& writer = *finding.writer;
  const Task& reader = *finding.reader;
  const FenceScope scope = needs_system(writer, reader) ? FenceScope::system : FenceScope::agent;
  const std::string name = scope == FenceScope::system ? "system" : "agent or system";
  const auto widened = [&](const Task& task, const char* fence, const char* later) {
    return "give the packet of " + name_of(task) + ", or a packet " + later + ", " + fence +
           " fence scope " + name;
  };
  std::string text;
  if (writer.kind == Kind::dispatch && writer.release < scope)
    text = widened(writer, "the release", "after it that waits for it");
  if (finding.what == Finding::Class::unreleased || reader.kind != Kind::dispatch ||
      reader.acquire >= scope)
    return !text.empty() ? text
                         : "release at " + name + " scope after " + name_of(writer) +
                               " and acquire at " + name + " scope before " + name_of(reader);
  return text + (text.empty() ? "" : "; ") +
         widened(reader, "the acquire", "before it that it waits for");
}

}  // namespace

std::string remedy(const Finding& finding, Library library) {
  const bool overtakes = finding.conflict == Finding::Conflict::write_after_read;
  const Task& first = overtakes ? *finding.reader : *finding.writer;
  const Task& second = overtakes ? *finding.writer : *finding.reader;
  const Names names(first, second);
  if (finding.what == Finding::Class::unordered)
    return library == Library::hip ? order_with_hip(first, second, names)
                                   : order_with_hsa(first, second, names);
  return library == Library::hip ? fence_with_hip(finding, names) : fence_with_hsa(finding, names);
}

}  // namespace uptempo::vgpu::fences
