// One sort by all ranks: sample, sort chunks, exchange, merge, as one loop that never blocks while
// an exchange is outstanding.
//
// Round c exchanges chunk c of every rank. Meanwhile the GPU sorts chunks c + 1 and c + 2 and
// merges the runs of earlier rounds. The loop asks in turn whether a sort, an exchange or a copy is
// done, and starts what has become possible. So MPI_Test is called all the time, between kernels.
//
// Thread safety: one owner.
// Lifetime: within that of the Communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <uptempo/uptempo.hpp>
#include "communicator.hpp"
#include "gpu_sorter.hpp"
#include "keys.hpp"

namespace uptempo::sample_sort {

// The phases of a rank's host; each point of time belongs to one of them.
enum class Phase : uint8_t {
  sample,    // until the splitters are known; the GPU sorts the first chunks meanwhile
  sort,      // for a sorted chunk, while no exchange is outstanding
  exchange,  // an exchange of counts or keys is outstanding, from its start until it is found done
  merge,     // for merges: before arriving keys have room again, and after the last exchange
};
inline constexpr size_t kPhases = 4;

// Times of one rank in seconds, and its keys.
struct RankTimes {
  double phases[kPhases] = {};
  double total = 0;
  double device_sorting = 0;  // the device executed copies and kernels of sorts
  double device_merging = 0;  // of merges
  double device_busy = 0;     // of either
  double overlap = 0;         // of either, in the phase exchange
  double received = 0;        // keys
};

struct Workload {
  Distribution distribution = Distribution::uniform;
  uint64_t total = 0;
  uint64_t seed = 1;
  bool uneven = false;
  uint64_t chunk = 0;   // keys of a rank in a round; the last chunk of a rank may be smaller
  uint32_t rounds = 1;  // of the rank with the most keys
};

class SampleSort {
 public:
  // Allocates pinned and device memory for this rank. Throws Error.
  SampleSort(Communicator& ranks, const Agent& gpu, const Workload& workload);

  // Generates the keys and sorts them. If `fails`, the device of this rank gets a memory fault as
  // soon as the first exchange has started. Throws Error if the device fails.
  RankTimes run(bool fails = false);

  // Whether the ranks' results, one after another, are the sorted input: each rank's keys are in
  // order, no key is smaller than one of an earlier rank, and the checksum is that of the input.
  // The same answer on every rank.
  bool is_right();

  std::span<const uint32_t> result() const noexcept { return {result_.data(), result_keys_}; }

 private:
  class Rounds;

  // Range of the rank's input that it exchanges in this round.
  Range place_of(uint32_t round) const noexcept;
  std::span<uint32_t> chunk(uint32_t round) const noexcept;

  Communicator& ranks_;
  const Agent gpu_;
  const Workload workload_;
  const Range share_;
  GpuSorter sorter_;
  PinnedBuffer<uint32_t> keys_, result_;
  PinnedBuffer<uint32_t> arrivals_[2];  // by turns
  Checksum input_;
  uint64_t result_keys_ = 0;
};

}  // namespace uptempo::sample_sort
