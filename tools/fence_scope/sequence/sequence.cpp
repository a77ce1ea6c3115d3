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

class Validator {
 public:
  Validator(const Sequence& sequence, size_t number)
      : sequence_(sequence), number_(number), step_(sequence.steps[number]) {}

  void check() const {
    check_order();
    if (step_.kind == Step::Kind::copy) return check_copy();
    if (step_.queue > 1)
      refuse("queue", fmt::format("{}; there are two queues, 0 and 1", step_.queue));
    if (step_.kernel.empty()) refuse("kernel", "a dispatch needs a kernel");
    for (size_t i = 0; i < step_.accesses.size(); ++i)
      check_range(fmt::format("accesses[{}]", i), step_.accesses[i].buffer, step_.accesses[i].begin,
                  step_.accesses[i].bytes);
    for (size_t i = 0; i < step_.arguments.size(); ++i) {
      const Argument& argument = step_.arguments[i];
      if (argument.kind == Argument::Kind::address)
        check_range(fmt::format("arguments[{}]", i), argument.buffer, argument.begin, 0);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& field, const std::string& text) const {
    throw SequenceError(number_, field, text);
  }

  void check_order() const {
    std::set<size_t> seen;
    for (size_t i = 0; i < step_.after.size(); ++i) {
      const std::string field = fmt::format("after[{}]", i);
      const size_t other = step_.after[i];
      if (other >= number_)
        refuse(field,
               fmt::format("step {} is not an earlier one; a step waits for earlier steps", other));
      if (!seen.insert(other).second) refuse(field, fmt::format("step {} is listed twice", other));
      const Step& waited = sequence_.steps[other];
      if (step_.kind == Step::Kind::dispatch && waited.kind == Step::Kind::dispatch &&
          waited.queue == step_.queue)
        refuse(field,
               fmt::format("step {} is in the same queue, where barrier bits define the order",
                           other));
    }
  }

  void check_range(const std::string& field, size_t buffer, uint64_t begin, uint64_t bytes) const {
    if (buffer >= sequence_.buffers.size())
      refuse(field,
             fmt::format("there is no buffer {}, only {}", buffer, sequence_.buffers.size()));
    const Buffer& of = sequence_.buffers[buffer];
    if (begin > of.bytes || bytes > of.bytes - begin)
      refuse(field, fmt::format("{} bytes from byte {}, but '{}' has {}", bytes, begin, of.name,
                                of.bytes));
  }

  void check_copy() const {
    check_range("from", step_.from.buffer, step_.from.begin, step_.from.bytes);
    check_range("to", step_.to.buffer, step_.to.begin, step_.to.bytes);
    if (step_.from.bytes != step_.to.bytes)
      refuse("to", fmt::format("{} bytes, but 'from' has {}", step_.to.bytes, step_.from.bytes));
    if (step_.from.bytes == 0) refuse("from", "a copy of 0 bytes");
    const auto is_device = [&](const Access& side) {
      return sequence_.buffers[side.buffer].kind == BufferKind::device_local;
    };
    if (is_device(step_.from) == is_device(step_.to))
      refuse("to",
             fmt::format("both '{}' and '{}' are in {} memory; copies are between device and host",
                         sequence_.buffers[step_.from.buffer].name,
                         sequence_.buffers[step_.to.buffer].name,
                         is_device(step_.to) ? "device" : "host"));
  }

  const Sequence& sequence_;
  const size_t number_;
  const Step& step_;
};

}  // namespace

void require_valid(const Sequence& sequence) {
  if (std::ranges::none_of(sequence.steps,
                           [](const Step& step) { return step.kind == Step::Kind::dispatch; }))
    throw support::UsageError("steps: there is no dispatch, so no header to choose");
  for (size_t i = 0; i < sequence.buffers.size(); ++i)
    if (sequence.buffers[i].bytes == 0)
      throw support::UsageError(fmt::format("buffers[{}]: 0 bytes", i));
  for (size_t i = 0; i < sequence.steps.size(); ++i) Validator(sequence, i).check();
}

}  // namespace uptempo::fence_scope
