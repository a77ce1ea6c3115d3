// A litmus test as data: cells of memory, and the steps of queues, copy engines and the host on
// them, in the order of one host thread.
//
//   Test test{.name = "message passing"};
//   const CellId x = test.cell("x", CellKind::coarse_grained);
//   const CellId r = test.cell("r", CellKind::fine_grained);
//   const HeaderFlags release{Barrier::on, FenceScope::none, FenceScope::agent};
//   const HeaderFlags acquire{Barrier::on, FenceScope::agent, FenceScope::system};
//   const StepId write = test.store(0, x, 1, release);
//   const StepId read = test.copy(0, x, r, acquire);
//   test.host_wait(read);
//   test.host_load(r);
//
// Cell: a page of words, in some tests several pages. All words have the same history except for
// random delays, so every word is a separate experiment. Outcome of a word: the values that the
// test's host_load steps read, in their order. Publication: adjacent packets and copies are
// published together. They wait for one gate, which opens when all of them are in their queues. A
// step that others depend on has a completion signal.
//
// Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <uptempo/aql/packet.hpp>

namespace uptempo::litmus {

inline constexpr uint32_t kCellWords = 1024;  // a page, so that no two cells share a cache line
inline constexpr uint32_t kQueueCount = 2;
inline constexpr uint32_t kSortWorkgroup = 256;  // work-items of a sort pass, two words each

enum class CellKind : uint8_t { device_local, coarse_grained, fine_grained };
const char* name_of(CellKind kind) noexcept;

using CellId = size_t;
using StepId = size_t;

struct Cell {
  std::string name;
  CellKind kind;
  uint32_t initial = 0;   // of each word
  bool unsorted = false;  // words differ; `initial` is not used
};
uint32_t initial_word(const Cell& cell, uint32_t word) noexcept;

// The unit that makes an access.
enum class Path : uint8_t { vector, scalar, engine, host };

struct Access {
  size_t cell;  // kernarg block b counts as cell cells.size() + b, fine-grained
  bool write;
  Path path;
};

struct Step {
  enum class Kind : uint8_t {
    dispatch,
    barrier_and,     // waits for all of `after`
    barrier_or,      // waits for one of `after`
    copy,            // by a copy engine, `from` to `to`, when all of `after` are complete
    host_store,      // stores `value` to `to`
    host_arguments,  // writes the kernarg block that dispatch `of` uses
    host_load,       // loads `from`: one more element of the outcome
    host_wait        // waits until all of `after` are complete
  };
  enum class Kernel : uint8_t { store, copy, add, sort_pass };

  Kind kind = Kind::dispatch;
  // Packets only:
  uint32_t queue = 0;
  aql::HeaderFlags flags{};
  // Dispatches only. Arguments are written and fenced before the test, unless a host_arguments step
  // writes them; then several dispatches share a block.
  Kernel kernel = Kernel::store;
  int shared_block = -1;
  uint32_t stage = 0, pass = 0;  // sort_pass only

  CellId from = 0, to = 0;
  uint32_t value = 0;
  std::vector<StepId> after = {};
  StepId of = 0;
  // Replaces the accesses given by kind, kernel, `from` and `to`, for programs that use other
  // kernels. Such a step can be judged by the rules but not run.
  bool is_declared = false;
  std::vector<Access> declared = {};

  bool is_packet() const noexcept { return kind <= Kind::barrier_or; }
  bool is_on_device() const noexcept { return kind <= Kind::copy; }
};
// for example "dispatch store", "copy", "host load"
std::string name_of(const Step& step);

struct Test {
  std::string name;
  std::vector<Cell> cells;
  std::vector<Step> steps;
  uint32_t words = kCellWords;  // words of each cell; a multiple of a page's

  CellId cell(std::string cell_name, CellKind kind, uint32_t initial = 0) {
    cells.push_back({.name = std::move(cell_name), .kind = kind, .initial = initial});
    return cells.size() - 1;
  }
  StepId store(uint32_t queue, CellId to, uint32_t value, aql::HeaderFlags flags) {
    return push({.queue = queue, .flags = flags, .to = to, .value = value});
  }
  StepId copy(uint32_t queue, CellId from, CellId to, aql::HeaderFlags flags) {
    return push(
        {.queue = queue, .flags = flags, .kernel = Step::Kernel::copy, .from = from, .to = to});
  }
  StepId add(uint32_t queue, CellId to, uint32_t value, aql::HeaderFlags flags) {
    return push(
        {.queue = queue, .flags = flags, .kernel = Step::Kernel::add, .to = to, .value = value});
  }
  // A pass of samples/bitonic_sort's kernel on `to`.
  StepId sort_pass(uint32_t queue, CellId to, uint32_t stage, uint32_t pass,
                   aql::HeaderFlags flags) {
    return push({.queue = queue,
                 .flags = flags,
                 .kernel = Step::Kernel::sort_pass,
                 .stage = stage,
                 .pass = pass,
                 .to = to});
  }
  StepId barrier(uint32_t queue, std::vector<StepId> after, aql::HeaderFlags flags) {
    return push({.kind = Step::Kind::barrier_and,
                 .queue = queue,
                 .flags = flags,
                 .after = std::move(after)});
  }
  StepId barrier_or(uint32_t queue, std::vector<StepId> after, aql::HeaderFlags flags) {
    return push({.kind = Step::Kind::barrier_or,
                 .queue = queue,
                 .flags = flags,
                 .after = std::move(after)});
  }
  StepId engine_copy(CellId from, CellId to, std::vector<StepId> after) {
    return push({.kind = Step::Kind::copy, .from = from, .to = to, .after = std::move(after)});
  }
  StepId host_store(CellId to, uint32_t value) {
    return push({.kind = Step::Kind::host_store, .to = to, .value = value});
  }
  StepId host_load(CellId from) { return push({.kind = Step::Kind::host_load, .from = from}); }
  StepId host_wait(StepId after) { return push({.kind = Step::Kind::host_wait, .after = {after}}); }
  // The arguments are in `block`, written before the test, or (adds two steps) by the host in the
  // test.
  StepId store_with_first_use(int block, uint32_t queue, CellId to, uint32_t value,
                              aql::HeaderFlags flags) {
    return push({.queue = queue, .flags = flags, .shared_block = block, .to = to, .value = value});
  }
  StepId store_with_shared_block(int block, uint32_t queue, CellId to, uint32_t value,
                                 aql::HeaderFlags flags) {
    push({.kind = Step::Kind::host_arguments, .of = steps.size() + 1});
    return store_with_first_use(block, queue, to, value, flags);
  }

  size_t loads() const noexcept;
  size_t cell_bytes() const noexcept { return words * sizeof(uint32_t); }

 private:
  StepId push(Step step) {
    steps.push_back(std::move(step));
    return steps.size() - 1;
  }
};

std::vector<Access> accesses_of(const Test& test, const Step& step);

// Whether some step has declared accesses, so that the test cannot run.
bool is_for_rules_alone(const Test& test) noexcept;

// The outcome, word by word, of executing the steps one at a time in the order of the test:
// [load][word]. Throws std::invalid_argument for a test with declared accesses.
std::vector<std::vector<uint32_t>> sequential_outcome(const Test& test);

}  // namespace uptempo::litmus
