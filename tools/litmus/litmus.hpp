// A litmus test is data: some cells of memory, and what queues, copy engines and the host do to them, in the order of one host thread.
//
//   Test test{.name = "message passing"};
//   const CellId x = test.cell("x", CellKind::coarse_grained), r = test.cell("r", CellKind::fine_grained);
//   const StepId write = test.store(0, x, 1, {Barrier::on, FenceScope::none, FenceScope::agent});
//   const StepId read = test.copy(0, x, r, {Barrier::on, FenceScope::agent, FenceScope::system});
//   test.host_wait(read);
//   test.host_load(r);
//
// A cell is a page of words (of some tests: several pages) that all have the same history, but for what chance does to them: every word is an
// experiment of its own. The outcome of a word is what the test's host_load steps saw of it, in their order.
//
// Packets and copies that stand next to each other are published together: they wait for one gate, which opens when all of them are in their
// queues. A step that others depend on has a completion signal.
//
// Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "aql/packet.hpp"

namespace uptempo::litmus {

inline constexpr uint32_t cell_words = 1024;  // a page, so that no two cells share a line of any cache
inline constexpr uint32_t queue_count = 2;

enum class CellKind : uint8_t { device_local, coarse_grained, fine_grained };
const char* name_of(CellKind kind) noexcept;

using CellId = size_t;
using StepId = size_t;

struct Cell {
  std::string name;
  CellKind kind;
  uint32_t initial = 0;   // of each word
  bool unsorted = false;  // words differ, and `initial` is not used
};
uint32_t initial_word(const Cell& cell, uint32_t word) noexcept;

// What one access of a step is made with.
enum class Path : uint8_t { vector, scalar, engine, host };

struct Access {
  size_t cell;  // kernarg block b counts as cells.size() + b, fine-grained
  bool write;
  Path path;
};

struct Step {
  enum class Kind : uint8_t {
    dispatch,
    barrier_and,     // waits for all of `after`
    barrier_or,      // waits for one of `after`
    copy,            // by a copy engine, `from` to `to`, when all of `after` are complete
    host_store,      // `value` to `to`
    host_arguments,  // writes the kernarg block that the dispatch `of` uses
    host_load,       // of `from`: one more element of the outcome
    host_wait        // until all of `after` are complete
  };
  enum class Kernel : uint8_t { store, copy, add, sort_pass };

  Kind kind = Kind::dispatch;
  // Of packets
  uint32_t queue = 0;
  aql::HeaderFlags flags{};
  // Of dispatches. Its arguments are written and fenced ahead of the test, unless a step does it: then several share a block.
  Kernel kernel = Kernel::store;
  int shared_block = -1;
  uint32_t stage = 0, pass = 0;  // of sort_pass

  CellId from = 0, to = 0;
  uint32_t value = 0;
  std::vector<StepId> after = {};
  StepId of = 0;
  // Instead of what kind, kernel, `from` and `to` say, for programs that are not made of these kernels. Such a step is for the rules alone.
  bool is_declared = false;
  std::vector<Access> declared = {};

  bool is_packet() const noexcept { return kind <= Kind::barrier_or; }
  bool is_on_device() const noexcept { return kind <= Kind::copy; }
};
// "dispatch store", "copy", "host load"
std::string name_of(const Step& step);

struct Test {
  std::string name;
  std::vector<Cell> cells;
  std::vector<Step> steps;
  uint32_t words = cell_words;  // of each cell; a multiple of a page's

  CellId cell(std::string cell_name, CellKind kind, uint32_t initial = 0);
  StepId store(uint32_t queue, CellId to, uint32_t value, aql::HeaderFlags flags);
  StepId copy(uint32_t queue, CellId from, CellId to, aql::HeaderFlags flags);
  StepId add(uint32_t queue, CellId to, uint32_t value, aql::HeaderFlags flags);
  // Of `to`, by the kernel of samples/bitonic_sort.
  StepId sort_pass(uint32_t queue, CellId to, uint32_t stage, uint32_t pass, aql::HeaderFlags flags);
  StepId barrier(uint32_t queue, std::vector<StepId> after, aql::HeaderFlags flags);
  StepId barrier_or(uint32_t queue, std::vector<StepId> after, aql::HeaderFlags flags);
  StepId engine_copy(CellId from, CellId to, std::vector<StepId> after);
  StepId host_store(CellId to, uint32_t value);
  StepId host_load(CellId from);
  StepId host_wait(StepId after);
  // The arguments are in `block`: since ahead of the test, or (two steps) written there by the host.
  StepId store_with_first_use(int block, uint32_t queue, CellId to, uint32_t value, aql::HeaderFlags flags);
  StepId store_with_shared_block(int block, uint32_t queue, CellId to, uint32_t value,
                                 aql::HeaderFlags flags);

  size_t loads() const noexcept;
  size_t cell_bytes() const noexcept { return words * sizeof(uint32_t); }

 private:
  StepId push(Step step);
};

std::vector<Access> accesses_of(const Test& test, const Step& step);

// Whether some step is for the rules alone.
bool is_for_rules_alone(const Test& test) noexcept;

// The outcome, word by word, if steps are carried out one at a time in the order of the test: [load][word]. Throws std::invalid_argument for a test that is for
// the rules alone.
std::vector<std::vector<uint32_t>> sequential_outcome(const Test& test);

}  // namespace uptempo::litmus
