// Executes a function in a child process, one instruction at a time, and reports what it stores to
// watched memory, in order: the only way to see fences and the stores around them.
//
//   const Steps steps = single_step({{Place::ring, ring, bytes}, ...}, [&] { batch.submit(); });
//   CHECK(steps.last(Kind::store, Place::kernargs) < steps.first(Kind::fence));
//
// Stores are found by comparing the watched memory after every instruction, so a store of the
// present value is not seen: give the memory other contents. Loads are seen at Place::hdp and
// Place::line only, for the forms of MOV that compilers use for one volatile load.
//
// The child is a fork: it has only the calling thread, and what it changes is lost. Objects that it
// uses must exist before. Requires x86-64 and permission to trace children.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace uptempo::test {

enum class Place : uint8_t {
  kernargs,
  ring,         // reported as ring_body and ring_header
  ring_body,    // bytes 4..63 of a slot
  ring_header,  // the first 32 bits of a slot
  hdp,          // a register: set to 0 again after each store
  line,         // of read-backs
  write_index,
  doorbell,
};
enum class Kind : uint8_t { store, load, fence, full_fence };  // SFENCE, MFENCE

struct Watched {
  Place place;
  const void* begin;
  size_t bytes;
};

struct Step {
  uint64_t number;  // of the instruction, from 1
  Kind kind;
  Place place{};    // not for fences
  size_t slot = 0;  // for places of the ring
};

struct Steps {
  static constexpr uint64_t kNever = 0;

  std::vector<Step> all;

  size_t count(Kind kind, Place place) const;
  // Number of the instruction; kNever if there is none. `slot`: only of that slot of the ring.
  uint64_t first(Kind kind, Place place, size_t slot = SIZE_MAX) const;
  uint64_t last(Kind kind, Place place) const;
  // True if an SFENCE or MFENCE is strictly between the two instructions.
  bool has_fence(uint64_t after, uint64_t before) const;
  // True if an MFENCE is, which orders loads, too.
  bool has_full_fence(uint64_t after, uint64_t before) const;
};

// Throws std::runtime_error if the system refuses to trace or the child ends early.
Steps single_step(const std::vector<Watched>& watched, const std::function<void()>& run);

}  // namespace uptempo::test
