#include "tools/fence_scope/sequence/step_kernels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/bitonic_sort.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::fence_scope {
namespace {

const char* words(ArgumentType::Kind kind) noexcept {
  switch (kind) {
    case ArgumentType::Kind::value:
      return "a value";
    case ArgumentType::Kind::address:
      return "an address";
    case ArgumentType::Kind::local:
      break;
  }
  return "an LDS array";
}

ArgumentType type_of(const Argument& argument) noexcept {
  switch (argument.kind) {
    case Argument::Kind::value:
      return {ArgumentType::Kind::value, static_cast<uint32_t>(argument.value.size())};
    case Argument::Kind::address:
      return {ArgumentType::Kind::address, sizeof(void*)};
    case Argument::Kind::local:
      break;
  }
  return {ArgumentType::Kind::local, sizeof(uint32_t)};
}

// Found by symbol or by the name in a C++ source, as by Program::kernel.
std::shared_ptr<const KernelInfo> find(const std::vector<Program>& programs, size_t number,
                                       const std::string& name) {
  std::vector<std::string> known;
  for (const Program& program : programs) {
    try {
      return program.kernel_info(name);
    } catch (const Error& error) {
      if (programs.size() == 1 || error.status() != HSA_STATUS_ERROR_INVALID_SYMBOL_NAME)
        throw SequenceError(number, "kernel", error.what());
    }
    for (const std::string& each : program.kernel_names()) known.push_back(each);
  }
  throw SequenceError(
      number, "kernel",
      fmt::format("there is no kernel '{}'; there are {}", name, fmt::join(known, ", ")));
}

void check_arguments(size_t number, const Step& step, const ArgumentLayout& layout) {
  if (step.arguments.size() != layout.explicit_count())
    throw SequenceError(number, "arguments",
                        fmt::format("{} given; '{}' takes {}", step.arguments.size(), step.kernel,
                                    layout.explicit_count()));
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    const ArgumentType given = type_of(step.arguments[i]);
    const ArgumentType taken{layout.kind(i), layout.size(i)};
    if (given.kind == taken.kind && given.size == taken.size) continue;
    throw SequenceError(number, fmt::format("arguments[{}]", i),
                        fmt::format("{} of {} bytes; '{}' takes {} of {} there", words(given.kind),
                                    given.size, step.kernel, words(taken.kind), taken.size));
  }
}

}  // namespace

StepKernels::StepKernels(const Agent& gpu, const Sequence& sequence)
    : kernels_(sequence.steps.size()) {
  if (!sequence.code_object.empty()) {
    programs_.emplace_back(gpu, sequence.code_object);
  } else {
    programs_.emplace_back(gpu, builtin_kernels::basics());
    programs_.emplace_back(gpu, builtin_kernels::bitonic_sort());
    programs_.emplace_back(gpu, builtin_kernels::probes());
  }
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    const Step& step = sequence.steps[i];
    if (step.kind == Step::Kind::copy) continue;
    kernels_[i] = find(programs_, i, step.kernel);
    check_arguments(i, step, kernels_[i]->arguments);
    try {
      require_geometry(*kernels_[i], step.grid);
    } catch (const Error& error) {
      throw SequenceError(i, "grid", error.what());
    }
    uint64_t local = kernels_[i]->group_segment_size;
    for (const Argument& argument : step.arguments)
      if (argument.kind == Argument::Kind::local) local = align_local(local) + argument.local_bytes;
    if (local > gpu.properties().group_segment_bytes)
      throw SequenceError(i, "arguments",
                          fmt::format("{} bytes of LDS; a compute unit has {}", local,
                                      gpu.properties().group_segment_bytes));
  }
}

}  // namespace uptempo::fence_scope
