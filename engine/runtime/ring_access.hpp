// How a writer must reach the indices and the doorbell of a queue (aql::RingAccess), found from
// what tools have done to HSA.
//
// A profiler replaces hsa_queue_create (its queue's doorbell is a signal of kind USER), or the
// functions hsa_queue_*_write_index_* and hsa_signal_*store_*, which then move an index of the
// tool's own. A direct store to the queue's own index or doorbell bypasses such a tool. An exported
// HSA function is one jump through the table that tools change (hsa_table_interface.cpp). If each
// of these jumps leads into ROCr's own library, no tool interposes, also none that observes later.
//
// Limits:
// * The jump is known for x86-64, as in the ROCr 5.2.3, 6.1.2 and 6.4.3 of Debian. Any other code
//   counts as interposed, because HSA calls are always correct; so does an ROCr that is not the
//   shared library libhsa-runtime64.so.1.
// * A tool that changes the table after the queue was created, or patches the code of ROCr itself,
//   is not seen. rocprofiler-sdk's attach replaces hsa_queue_create at the start, which is seen.
//
// Thread safety: every function may be called from any thread.
// Cost: some forty look-ups of symbols and addresses; call it when a queue is created.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <string>

#include <uptempo/aql/amd_abi.hpp>

namespace uptempo {

namespace detail {

// The state of the HSA functions that publish packets: replaced by tools, or not.
struct Interposition {
  bool none = false;    // every function is ROCr's own
  std::string finding;  // says why, and names the first foreign function and its library
};
// Requires that HSA is initialised.
Interposition find_interposition();

}  // namespace detail

enum class RingAccessMode : uint8_t {
  automatic,  // direct, unless a tool interposes or the doorbell is not of kind DOORBELL
  // Direct even then: tools do not see the packets. For tools that only count calls or trace them.
  direct,
  hsa_calls,  // HSA calls even without a tool
};

struct RingAccessChoice {
  aql::RingAccess access = aql::RingAccess::direct;
  std::string reason;
};
// Returns the access for a writer of this queue. Requires that HSA is initialised, except for
// another wish than `automatic`. `pm4_emulation`: that of the queue's agent. Then no processor
// reads the queue's own indices, so the access is by HSA calls, whatever the wish.
RingAccessChoice choose_ring_access(const hsa_queue_t* queue, bool pm4_emulation,
                                    RingAccessMode wish = RingAccessMode::automatic);

}  // namespace uptempo
