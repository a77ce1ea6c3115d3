// Sorts keys on a GPU, one kernel dispatch per pass of the network, with any combination of the
// switches.
//
// Timed and counted: copy to the device, objects that the switches leave to be created in the
// iteration (signal, kernarg blocks), all kernels, copy back. Not timed: set-up, filling the input,
// checking the output, and releasing an iteration's objects.
//
// Thread safety: one owner.
// Lifetime: within that of the agent's Runtime.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <uptempo/uptempo.hpp>
#include "measurement.hpp"
#include "network.hpp"
#include "switches.hpp"

namespace uptempo::sort {

// Barrier bit and scopes requested for packet `index` of `count`. The engine releases packets with
// a completion signal (all of them without avoid_host_sync) at system scope in any case.
aql::HeaderFlags packet_flags(const Switches& switches, size_t index, size_t count);

// The five switches, all on.
inline constexpr Switches kFullyOptimised{true, true, true, true, true};

class Sorter {
 public:
  // Creates queue, buffers and kernel. Throws Error.
  Sorter(const Agent& gpu, Network network, bool descending);

  // Sets the keys that every later run sorts. Throws std::invalid_argument for another number of
  // keys than the network's.
  void set_keys(std::span<const uint32_t> keys);

  // Runs one iteration. Iteration::correct stays true: results are not checked. Throws Error if the
  // device fails.
  Iteration run(const Switches& switches);

  // Fully optimised, but every packet between the first and the last has these flags.
  Iteration run_with_interior(const aql::HeaderFlags& interior);

  // The result of the last run. Each run first overwrites it with a pattern, so that an old result
  // cannot pass for a new one.
  std::span<const uint32_t> output() const noexcept { return last_output_; }

  const Network& network() const noexcept { return network_; }
  Queue& queue() noexcept { return queue_; }

 private:
  using SortKernel = Kernel<uint32_t*, uint32_t, uint32_t, uint32_t>;

  Iteration run(const Switches& switches, const std::optional<aql::HeaderFlags>& interior);
  void dispatch_all(const Switches& switches, const std::optional<aql::HeaderFlags>& interior,
                    const Signal* signal, std::vector<KernargBuffer>& blocks);

  Agent gpu_;
  Network network_;
  uint32_t ascending_;
  SortKernel kernel_;
  Queue queue_;
  BatchSubmitter batch_;
  Copier copier_;
  DeviceBuffer<uint32_t> keys_;
  std::vector<uint32_t> pageable_input_, pageable_output_;
  PinnedBuffer<uint32_t> pinned_input_, pinned_output_;
  std::span<const uint32_t> last_output_;
};

// Random keys for `seed`, the same on every machine.
std::vector<uint32_t> random_keys(uint32_t length, uint64_t seed);

}  // namespace uptempo::sort
