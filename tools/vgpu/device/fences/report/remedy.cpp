#include "device/fences/report/remedy.hpp"

#include "device/fences/report/finding_text.hpp"

namespace uptempo::vgpu::fences {
namespace {

using Class = Finding::Class;
using Conflict = Finding::Conflict;
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

// A task with the library that published it.
struct Published {
  const Task& task;
  Library library;
};

std::string wait_by_host(const std::string& name, Library library) {
  const std::string wait = "let the host wait for " + name;
  switch (library) {
    case Library::hip:
      return wait + " with hipStreamSynchronize, hipEventSynchronize or hipDeviceSynchronize";
    case Library::uptempo:
      return wait + " with wait() of its submission's Completion, or synchronize() of its Stream,";
    case Library::hsa:
      break;
  }
  return wait + " with hsa_signal_wait_scacquire on its completion signal";
}

std::string before_it_is_published(const std::string& name, Library library) {
  return std::string("before it ") +
         (library == Library::hip       ? "launches "
          : library == Library::uptempo ? "submits "
                                        : "publishes ") +
         name;
}

// The order of an access by the host and a task of the device. The host writes for the task before
// it publishes it, and reads its results after its completion.
std::string order_with_host(Conflict conflict, bool host_is_first, const Published& device,
                            const Names& name_of) {
  const std::string name = name_of(device.task);
  const std::string wait = wait_by_host(name, device.library);
  const std::string before = before_it_is_published(name, device.library);
  switch (conflict) {
    case Conflict::read_after_write:
      return host_is_first ? "let the host write the memory " + before
                           : wait + " before it reads the memory";
    case Conflict::write_after_read:
      if (host_is_first)
        return wait + " before it reads the memory, or, for the bytes from before " + name +
               ", let it read them " + before;
      return "let the host write the memory " + before + ", or, if " + name +
             " must not see the new bytes, " + wait + " before it writes them";
    case Conflict::write_after_write:
      break;
  }
  return host_is_first ? "let the host write the memory " + before
                       : wait + " before it writes the memory";
}

// HIP sets the barrier bit of all kernels but those with this flag.
bool is_any_order_launch(const Task& first, const Task& second) {
  const HipStream one = first.origin.published.stream, other = second.origin.published.stream;
  return first.id.actor == second.id.actor && second.kind == Kind::dispatch && !second.barrier &&
         (one == other || one == HipStream::unknown || other == HipStream::unknown);
}

std::string order_with_hip(const Task& first, const Task& second, const Names& name_of) {
  if (is_any_order_launch(first, second))
    return "launch " + name_of(second) +
           " without hipExtAnyOrderLaunch: with this flag it does not wait for earlier work of its "
           "stream";
  return "use one stream for both, or call hipEventRecord on the stream of " + name_of(first) +
         " after it and hipStreamWaitEvent on the stream of " + name_of(second) +
         " before it, or hipDeviceSynchronize between them";
}

std::string order_with_uptempo(const Task& first, const Task& second, const Names& name_of) {
  const std::string streams = "call record() on the Stream of " + name_of(first) +
                              " after it and after() with that Event on the Stream of " +
                              name_of(second) + " before it";
  if (second.kind == Kind::copy)
    return "copy with Stream::copy() after " + name_of(first) +
           " in its Stream, or wait() for the Completion of " + name_of(first) + " before the copy";
  if (first.id.actor == second.id.actor && !second.barrier)
    return "declare the memory with .reads() and .writes(), or the order with .after(), at the "
           "dispatches of " +
           name_of(first) + " and " + name_of(second) +
           ", without .without_barrier(); between two Streams, " + streams;
  return streams + "; between two queues, let the batch of " + name_of(first) +
         " complete with a Signal (BatchSubmitter::complete_with) for which the batch of " +
         name_of(second) + " waits (BatchSubmitter::after)";
}

std::string order_with_hsa(const Task& first, const Task& second, const Names& name_of) {
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

// Two libraries: neither orders its work after that of the other by itself.
std::string order_between(const Published& first, const Published& second, const Names& name_of) {
  const std::string one = name_of(first.task), other = name_of(second.task);
  const auto are = [&](Library earlier, Library later) {
    return first.library == earlier && second.library == later;
  };
  if (are(Library::hip, Library::uptempo))
    return "call hip::after(queue, stream), with the Queue or Stream of " + other +
           " and HIP's stream of " + one + ", before " + other + " is submitted";
  if (are(Library::uptempo, Library::hip))
    return "call hip::after(stream, queue), with HIP's stream of " + other +
           " and the Queue or Stream of " + one + ", before " + other +
           " is launched: HIP does not wait for Uptempo's queues";
  if (are(Library::hsa, Library::uptempo))
    return "let the completion signal of " + one + " be awaited before " + other +
           ", with Stream::after or BatchSubmitter::after";
  if (are(Library::uptempo, Library::hsa))
    return "let the work of " + one +
           " set a signal (Stream::signal, BatchSubmitter::complete_with), and put a barrier-AND "
           "packet that depends on it before " +
           other;
  return wait_by_host(one, first.library) + ' ' + before_it_is_published(other, second.library);
}

std::string order(const Published& first, const Published& second, const Names& name_of) {
  if (first.library != second.library) return order_between(first, second, name_of);
  switch (first.library) {
    case Library::hip:
      return order_with_hip(first.task, second.task, name_of);
    case Library::uptempo:
      return order_with_uptempo(first.task, second.task, name_of);
    case Library::hsa:
      break;
  }
  return order_with_hsa(first.task, second.task, name_of);
}

std::string fence_with_hip(const Finding& finding, const Names& name_of) {
  const Task& writer = *finding.writer;
  const Task& reader = *finding.reader;
  if (reader.kind == Kind::host || finding.what == Class::unreleased)
    return "wait with hipStreamSynchronize or hipDeviceSynchronize, or with an event that was "
           "created with hipEventReleaseToSystem and recorded after " +
           name_of(writer);
  if (writer.kind == Kind::host)
    return "call hipStreamSynchronize or hipDeviceSynchronize between the host's store and the "
           "launch of " +
           name_of(reader);
  return "call hipStreamSynchronize or hipDeviceSynchronize between " + name_of(writer) + " and " +
         name_of(reader) + ", or order them with an event (hipStreamWaitEvent)";
}

// Host, copy engines and other agents access memory past the caches of the agent.
bool needs_system(const Task& one, const Task& other) {
  return one.kind != Kind::dispatch || other.kind != Kind::dispatch || one.agent != other.agent;
}

std::string fence_with_uptempo(const Finding& finding, const Names& name_of) {
  const Task& writer = *finding.writer;
  const Task& reader = *finding.reader;
  if (reader.kind == Kind::host || finding.what == Class::unreleased)
    return "wait for the Completion of " + name_of(writer) +
           " before its result is used, or add .observed_by(Observer::system) to its dispatch";
  std::string text =
      "leave out .fences() and declare what the dispatches read and write (.reads(), .writes()), "
      "or "
      "pass FenceScope::";
  text += needs_system(writer, reader) ? "system" : "agent or wider";
  text += " to .fences()";
  if (writer.kind == Kind::dispatch) text += " as the release of " + name_of(writer);
  if (writer.kind == Kind::dispatch && reader.kind == Kind::dispatch) text += " and";
  if (reader.kind == Kind::dispatch) text += " as the acquire of " + name_of(reader);
  return text;
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
  if (finding.what == Class::unreleased || reader.kind != Kind::dispatch || reader.acquire >= scope)
    return !text.empty() ? text
                         : "release at " + name + " scope after " + name_of(writer) +
                               " and acquire at " + name + " scope before " + name_of(reader);
  return text + (text.empty() ? "" : "; ") +
         widened(reader, "the acquire", "before it that it waits for");
}

std::string fence(const Finding& finding, Libraries libraries, const Names& name_of) {
  if (finding.writer->kind == Kind::host) libraries.writer = libraries.reader;
  if (finding.reader->kind == Kind::host || finding.what == Class::unreleased)
    libraries.reader = libraries.writer;
  if (libraries.writer != libraries.reader) return fence_with_hsa(finding, name_of);
  switch (libraries.writer) {
    case Library::hip:
      return fence_with_hip(finding, name_of);
    case Library::uptempo:
      return fence_with_uptempo(finding, name_of);
    case Library::hsa:
      break;
  }
  return fence_with_hsa(finding, name_of);
}

}  // namespace

std::string remedy(const Finding& finding, Libraries libraries) {
  const Published writer{*finding.writer, libraries.writer};
  const Published reader{*finding.reader, libraries.reader};
  // The earlier task of a queue is the first one, also where the later one has overtaken it.
  const bool of_one_queue = writer.task.id.actor == reader.task.id.actor;
  const bool reader_is_first = of_one_queue ? reader.task.position < writer.task.position
                                            : finding.conflict == Conflict::write_after_read;
  const Published& first = reader_is_first ? reader : writer;
  const Published& second = reader_is_first ? writer : reader;
  const Names name_of(first.task, second.task);
  if (finding.what != Class::unordered) return fence(finding, libraries, name_of);
  if (first.task.kind == Kind::host || second.task.kind == Kind::host) {
    const bool host_is_first = first.task.kind == Kind::host;
    return order_with_host(finding.conflict, host_is_first, host_is_first ? second : first,
                           name_of);
  }
  return order(first, second, name_of);
}

}  // namespace uptempo::vgpu::fences
