#include "tools/fence_scope/sequence/sequence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace uptempo::fence_scope {

SequenceError::SequenceError(size_t step, const std::string& field, const std::string& text)
    : support::UsageError(
          fmt::format("steps[{}]{}{}: {}", step, field.empty() ? "" : ".", field, text)) {}

std::vector<size_t> Sequence::dispatches(uint32_t queue) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].kind == Step::Kind::dispatch && steps[i].queue == queue) found.push_back(i);
  return found;
}

std::vector<Access> accesses_of(const Step& step) {
  if (step.kind == Step::Kind::dispatch) return step.accesses;
  Access from = step.from, to = step.to;
  from.writes = false;
  to.writes = true;
  return {from, to};
}

Headers everywhere(const Sequence& sequence) {
  return Headers(sequence.steps.size(),
                 {aql::Barrier::on, aql::FenceScope::system, aql::FenceScope::system});
}

namespace {

void require_valid_step(const Sequence& sequence, size_t number) {
  const Step& step = sequence.steps[number];
  const auto refuse = [number](const std::string& field, const std::string& text) {
    throw SequenceError(number, field, text);
  };
  const auto require_range = [&](const std::string& field, size_t buffer, uint64_t begin,
                                 uint64_t bytes) {
    if (buffer >= sequence.buffers.size())
      refuse(field, fmt::format("there is no buffer {}, only {}", buffer, sequence.buffers.size()));
    const Buffer& of = sequence.buffers[buffer];
    if (begin > of.bytes || bytes > of.bytes - begin)
      refuse(field, fmt::format("{} bytes from byte {}, but '{}' has {}", bytes, begin, of.name,
                                of.bytes));
  };

  std::set<size_t> seen;
  for (size_t i = 0; i < step.after.size(); ++i) {
    const std::string field = fmt::format("after[{}]", i);
    const size_t other = step.after[i];
    if (other >= number)
      refuse(field,
             fmt::format("step {} is not an earlier one; a step waits for earlier steps", other));
    if (!seen.insert(other).second) refuse(field, fmt::format("step {} is listed twice", other));
    const Step& waited = sequence.steps[other];
    if (step.kind == Step::Kind::dispatch && waited.kind == Step::Kind::dispatch &&
        waited.queue == step.queue)
      refuse(field, fmt::format("step {} is in the same queue, where barrier bits define the order",
                                other));
  }

  if (step.kind == Step::Kind::dispatch) {
    if (step.queue > 1)
      refuse("queue", fmt::format("{}; there are two queues, 0 and 1", step.queue));
    if (step.kernel.empty()) refuse("kernel", "a dispatch needs a kernel");
    for (size_t i = 0; i < step.accesses.size(); ++i)
      require_range(fmt::format("accesses[{}]", i), step.accesses[i].buffer, step.accesses[i].begin,
                    step.accesses[i].bytes);
    for (size_t i = 0; i < step.arguments.size(); ++i)
      if (const Argument& argument = step.arguments[i]; argument.kind == Argument::Kind::address)
        require_range(fmt::format("arguments[{}]", i), argument.buffer, argument.begin, 0);
    return;
  }
  require_range("from", step.from.buffer, step.from.begin, step.from.bytes);
  require_range("to", step.to.buffer, step.to.begin, step.to.bytes);
  if (step.from.bytes != step.to.bytes)
    refuse("to", fmt::format("{} bytes, but 'from' has {}", step.to.bytes, step.from.bytes));
  if (step.from.bytes == 0) refuse("from", "a copy of 0 bytes");
  const Buffer &from = sequence.buffers[step.from.buffer], &to = sequence.buffers[step.to.buffer];
  const bool from_device = from.kind == BufferKind::device_local,
             to_device = to.kind == BufferKind::device_local;
  if (from_device == to_device)
    refuse("to",
           fmt::format("both '{}' and '{}' are in {} memory; copies are between device and host",
                       from.name, to.name, to_device ? "device" : "host"));
}

}  // namespace

void require_valid(const Sequence& sequence) {
  if (std::ranges::none_of(sequence.steps,
                           [](const Step& step) { return step.kind == Step::Kind::dispatch; }))
    throw support::UsageError("steps: there is no dispatch, so no header to choose");
  for (size_t i = 0; i < sequence.buffers.size(); ++i)
    if (sequence.buffers[i].bytes == 0)
      throw support::UsageError(fmt::format("buffers[{}]: 0 bytes", i));
  for (size_t i = 0; i < sequence.steps.size(); ++i) require_valid_step(sequence, i);
}

}  // namespace uptempo::fence_scope
