#include "tools/litmus/litmus.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace uptempo::litmus {

const char* name_of(CellKind kind) noexcept {
  constexpr const char* names[] = {"device", "coarse", "fine"};
  return names[static_cast<size_t>(kind)];
}

std::string name_of(const Step& step) {
  // In the order of the enumerations.
  constexpr const char* kinds[] = {"dispatch ",  "barrier-and",    "barrier-or", "engine copy",
                                   "host store", "host arguments", "host load",  "host wait"};
  constexpr const char* kernels[] = {"store", "copy", "add", "sort "};
  std::string name = kinds[static_cast<size_t>(step.kind)];
  if (step.kind != Step::Kind::dispatch) return name;
  name += kernels[static_cast<size_t>(step.kernel)];
  if (step.kernel != Step::Kernel::sort_pass) return name;
  return name + std::to_string(step.stage) + "." + std::to_string(step.pass);
}

uint32_t initial_word(const Cell& cell, uint32_t word) noexcept {
  if (!cell.unsorted) return cell.initial;
  uint32_t mixed = word + 1;  // the finaliser of MurmurHash3, a permutation
  mixed = (mixed ^ mixed >> 16) * 0x85ebca6bu;
  mixed = (mixed ^ mixed >> 13) * 0xc2b2ae35u;
  return mixed ^ mixed >> 16;
}

size_t Test::loads() const noexcept {
  return static_cast<size_t>(std::ranges::count_if(
      steps, [](const Step& step) { return step.kind == Step::Kind::host_load; }));
}

bool is_for_rules_alone(const Test& test) noexcept {
  return std::ranges::any_of(test.steps, [](const Step& step) { return step.is_declared; });
}

std::vector<Access> accesses_of(const Test& test, const Step& step) {
  if (step.is_declared) return step.declared;
  std::vector<Access> accesses;
  const auto block = [&](const Step& dispatch) {
    return test.cells.size() + static_cast<size_t>(dispatch.shared_block);
  };
  switch (step.kind) {
    case Step::Kind::dispatch:
      if (step.shared_block >= 0) accesses.push_back({block(step), false, Path::scalar});
      if (step.kernel == Step::Kernel::copy) accesses.push_back({step.from, false, Path::vector});
      if (step.kernel == Step::Kernel::add || step.kernel == Step::Kernel::sort_pass)
        accesses.push_back({step.to, false, Path::vector});
      accesses.push_back({step.to, true, Path::vector});
      break;
    case Step::Kind::copy:
      accesses = {{step.from, false, Path::engine}, {step.to, true, Path::engine}};
      break;
    case Step::Kind::host_store:
      accesses = {{step.to, true, Path::host}};
      break;
    case Step::Kind::host_arguments:
      accesses = {{block(test.steps[step.of]), true, Path::host}};
      break;
    case Step::Kind::host_load:
      accesses = {{step.from, false, Path::host}};
      break;
    case Step::Kind::barrier_and:
    case Step::Kind::barrier_or:
    case Step::Kind::host_wait:
      break;
  }
  return accesses;
}

namespace {

void sort_pass(std::vector<uint32_t>& keys, uint32_t stage, uint32_t pass) {
  const uint32_t distance_log2 = stage - pass, distance = 1u << distance_log2;
  for (uint32_t item = 0; item < keys.size() / 2; ++item) {
    const uint32_t left = (item >> distance_log2) << (distance_log2 + 1) | (item & (distance - 1));
    const bool rising = (item >> stage & 1u) == 0;
    if ((keys[left] > keys[left + distance]) == rising)
      std::swap(keys[left], keys[left + distance]);
  }
}

}  // namespace

std::vector<std::vector<uint32_t>> sequential_outcome(const Test& test) {
  if (is_for_rules_alone(test))
    throw std::invalid_argument(
        test.name +
        ": a step with declared accesses has no values; use sequential_outcome() for "
        "tests without such steps");
  std::vector<std::vector<uint32_t>> memory;
  for (const Cell& cell : test.cells) {
    std::vector<uint32_t>& words = memory.emplace_back(test.words);
    for (uint32_t word = 0; word < test.words; ++word) words[word] = initial_word(cell, word);
  }
  std::vector<std::vector<uint32_t>> outcome;
  for (const Step& step : test.steps) {
    switch (step.kind) {
      case Step::Kind::dispatch:
        switch (step.kernel) {
          case Step::Kernel::store:
            memory[step.to].assign(test.words, step.value);
            break;
          case Step::Kernel::copy:
            memory[step.to] = memory[step.from];
            break;
          case Step::Kernel::add:
            for (uint32_t& word : memory[step.to]) word += step.value;
            break;
          case Step::Kernel::sort_pass:
            sort_pass(memory[step.to], step.stage, step.pass);
            break;
        }
        break;
      case Step::Kind::copy:
        memory[step.to] = memory[step.from];
        break;
      case Step::Kind::host_store:
        memory[step.to].assign(test.words, step.value);
        break;
      case Step::Kind::host_load:
        outcome.push_back(memory[step.from]);
        break;
      case Step::Kind::barrier_and:
      case Step::Kind::barrier_or:
      case Step::Kind::host_arguments:
      case Step::Kind::host_wait:
        break;
    }
  }
  return outcome;
}

}  // namespace uptempo::litmus
